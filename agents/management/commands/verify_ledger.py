"""Proves the ledger, the forecasts and the chain over the whole database."""

from datetime import datetime
from typing import Any

from django.db import connection

from agents.services.audit import verify_ledger
from agents.services.chain import verify_chain
from agents.services.forecast_audit import verify_forecasts
from markets.commands import ArenaCommand, Result
from markets.guards import unguarded


class Command(ArenaCommand):
    help = "Recomputes every balance, position, payout and forecast; names each row that disagrees (exit 1 if any)."

    def perform(self, at: datetime, options: dict[str, Any]) -> Result:
        with self.progress("verifying") as progress:
            audit = verify_ledger(progress)
        forecasts, wrong = verify_forecasts()
        links, broken = verify_chain()
        open_tables = [f"the database does not guard: {table}" for table in unguarded(connection)]
        violations = [*audit.violations, *wrong, *broken, *open_tables]
        for violation in violations:
            self.stdout.write(violation)
        summary = {
            "agents": audit.agents,
            "journal_rows": audit.journal_rows,
            "forecasts": forecasts,
            "chain_links": links,
            "violations": len(violations),
        }
        return Result(summary, log=violations, failed=bool(violations))
