"""`verify_ledger`: every balance, forecast, chain link and derived row recomputed over the whole database."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from foundation.commands import ArenaCommand, CommandResult
from foundation.consistent_reads import consistent_reads
from scoring.exports.verification.ledger_audit import verify_ledger


class Command(ArenaCommand):
    help = "Recomputes every balance, position, payout, forecast, chain link and derived row; names any that differs."
    raises_alert = True

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        # Of one state: read one after the other, rows that a job writes meanwhile would contradict each other.
        with consistent_reads(), self.progress("verifying") as progress:
            audit = verify_ledger(at=at, progress=progress)
        for violation in audit.violations:
            self.stdout.write(violation)
        summary = asdict(audit) | {"violations": len(audit.violations)}
        return CommandResult(summary, log=audit.violations, failed=bool(audit.violations))
