"""`rebuild_derived`: every derived row computed from the facts, and replaced where it differs."""

from datetime import datetime
from typing import Any

from foundation.commands import ArenaCommand, CommandResult
from scoring.services.derived import rebuild_derived


class Command(ArenaCommand):
    help = "Computes all derived rows anew and replaces those that differ, each of which is named. Safe while live."

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        with self.progress("rebuilding") as progress:
            rows, drift = rebuild_derived(at=at, progress=progress)
        return CommandResult({"rebuilt": rows, "corrected": len(drift)}, log=drift)
