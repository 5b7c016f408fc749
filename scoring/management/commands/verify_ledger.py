"""`verify_ledger`: every balance, forecast, chain link and derived row recomputed over the whole database."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import connection

from agents.services.audit import Audit, verify_ledger
from agents.services.chain_audit import verify_chain
from agents.services.fact_audit import verify_facts
from agents.services.forecast_audit import verify_forecasts
from agents.services.receipt_audit import verify_receipts
from markets.foundation.commands import ArenaCommand, CommandResult
from markets.foundation.consistent_reads import consistent_reads
from markets.foundation.guards import unguarded
from scoring.services.derived import comparisons
from scoring.services.snapshot_audit import verify_snapshots


@contextmanager
def unreadable_rows(violations: list[str], name: str) -> Iterator[None]:
    """Adds a line where a rewritten row can not even be read; the other checks go on."""
    try:
        yield
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        violations.append(f"{name}: a row holds what it never could: {type(error).__name__}: {error}")


class Command(ArenaCommand):
    help = "Recomputes every balance, position, payout, forecast, chain link and derived row; names any that differs."
    raises_alert = True

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        # Of one state: read one after the other, rows that a job writes meanwhile would contradict each other.
        with consistent_reads(), self.progress("verifying") as progress:
            violations: list[str] = []
            audit = Audit()
            with unreadable_rows(violations, "accounts"):
                audit = verify_ledger(progress)
                violations += audit.violations
            forecasts, links = 0, 0
            with unreadable_rows(violations, "forecasts"):
                forecasts, forecast_violations = verify_forecasts()
                violations += forecast_violations
            with unreadable_rows(violations, "chains"):
                links, chain_violations = verify_chain()
                violations += chain_violations
            lines = {"facts": verify_facts, "receipts": verify_receipts, "snapshots": verify_snapshots}
            lines |= {str(model._meta.verbose_name_plural): compare for model, compare in comparisons(at).items()}
            for name, compare in lines.items():
                with unreadable_rows(violations, name):
                    violations += compare()
            violations += [f"the database does not guard: {table}" for table in unguarded(connection)]
        for violation in violations:
            self.stdout.write(violation)
        summary = {
            "agents": audit.agents,
            "journal_rows": audit.journal_rows,
            "forecasts": forecasts,
            "chain_links": links,
            "violations": len(violations),
        }
        return CommandResult(summary, log=violations, failed=bool(violations))
