"""`backfill_leaderboards`: stores past leaderboards, so that nobody who reads one waits until it is computed."""

from datetime import datetime
from typing import Any

from foundation.commands import ArenaCommand, CommandResult
from scoring.services.history_backfill import LIMIT, backfill_history


class Command(ArenaCommand):
    help = "Stores the leaderboards of past instants that are missing, the newest first."
    raises_alert = True
    can_wait = True

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--limit", type=int, default=LIMIT, help=f"leaderboards of each arm and methodology (default {LIMIT:,})"
        )

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        if options["limit"] < 1:
            self.refuse("--limit must be at least 1")
        return CommandResult({"past_leaderboards": backfill_history(limit=options["limit"])})
