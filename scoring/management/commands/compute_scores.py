"""`compute_scores`: scores for resolved bets and forecasts, and current leaderboards."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from markets.foundation.commands import ArenaCommand, CommandResult
from scoring.services.history_backfill import DAILY_LIMIT, backfill_history
from scoring.services.scores import compute_scores


class Command(ArenaCommand):
    help = "Scores every purchase and forecast on what resolved by --at, then recomputes the leaderboards."

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--skip-history", action="store_true", help="do not store past leaderboards; they are computed when read"
        )

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        report = compute_scores(at=at)
        stored = 0 if options["skip_history"] else backfill_history(limit=DAILY_LIMIT)
        return CommandResult(asdict(report), log=[f"past leaderboards stored: {stored}"] if stored else [])
