"""`verify_ledger`: every balance, forecast, chain link and derived row recomputed over the whole database."""

from datetime import datetime
from typing import Any

from django.db import connection

from agents.services.audit import verify_ledger
from agents.services.chain_audit import verify_chain
from agents.services.forecast_audit import verify_forecasts
from markets.foundation.commands import ArenaCommand, CommandResult
from markets.foundation.consistent_reads import consistent_reads
from markets.foundation.guards import unguarded
from scoring.services.derived import comparisons


class Command(ArenaCommand):
    help = "Recomputes every balance, position, payout, forecast, chain link and derived row; names any that differs."
    raises_alert = True

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        # Of one state: read one after the other, rows that a job writes meanwhile would contradict each other.
        with consistent_reads(), self.progress("verifying") as progress:
            audit = verify_ledger(progress)
            forecasts, forecast_violations = verify_forecasts()
            links, chain_violations = verify_chain()
            drift = [line for compare in comparisons(at).values() for line in compare()]
            unguarded_tables = [f"the database does not guard: {table}" for table in unguarded(connection)]
        violations = [*audit.violations, *forecast_violations, *chain_violations, *drift, *unguarded_tables]
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
