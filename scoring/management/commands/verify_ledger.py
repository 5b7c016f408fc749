"""`verify_ledger`: every balance, forecast, chain link and derived row recomputed over the whole database."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any

from django.db import connection

from agents.services.fact_audit import verify_facts
from foundation.commands import ArenaCommand, CommandResult
from foundation.consistent_reads import consistent_reads
from foundation.guards import unguarded
from foundation.row_hashes import rewritten_rows
from scoring.exports.verification.database_rows import DatabaseRows
from scoring.exports.verification.ledger_audit import (
    Audit,
    verify_chain,
    verify_forecasts,
    verify_ledger,
    verify_receipts,
    verify_snapshots,
)
from scoring.services.derived import comparisons
from scoring.services.published_boards import rewritten_boards


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
            audit, tables = Audit(), DatabaseRows()
            with unreadable_rows(violations, "accounts"):
                audit = verify_ledger(progress, tables)
                violations += audit.violations
            forecasts, links = 0, 0
            with unreadable_rows(violations, "forecasts"):
                forecasts, forecast_violations = verify_forecasts(tables)
                violations += forecast_violations
            with unreadable_rows(violations, "chains"):
                links, chain_violations = verify_chain(tables)
                violations += chain_violations
            lines: dict[str, Callable[[], Iterable[str]]] = {
                "facts": verify_facts,
                "hashes of rows": rewritten_rows,
                "receipts": partial(verify_receipts, tables),
                "snapshots": partial(verify_snapshots, tables),
                "published boards": rewritten_boards,
            }
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
