"""Proves the ledger over the whole database."""

from datetime import datetime
from typing import Any

from agents.services.audit import verify_ledger
from markets.commands import ArenaCommand, Result


class Command(ArenaCommand):
    help = "Recomputes every balance, position and payout; names each row that disagrees (exit 1 if any)."

    def perform(self, at: datetime, options: dict[str, Any]) -> Result:
        with self.progress("verifying") as progress:
            audit = verify_ledger(progress)
        for violation in audit.violations:
            self.stdout.write(violation)
        summary = {
            "agents": audit.agents,
            "journal_rows": audit.journal_rows,
            "violations": len(audit.violations),
        }
        return Result(summary, log=audit.violations, failed=bool(audit.violations))
