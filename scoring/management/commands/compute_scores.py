"""`compute_scores`: scores for resolved bets and forecasts, and current leaderboards."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from foundation.commands import ArenaCommand, CommandResult
from scoring.services.scores import compute_scores


class Command(ArenaCommand):
    help = "Scores every purchase and forecast on what resolved by --at, then recomputes the leaderboards."
    raises_alert = True
    can_wait = True

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        return CommandResult(asdict(compute_scores(at=at)))
