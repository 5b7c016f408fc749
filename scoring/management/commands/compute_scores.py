"""Scores what is resolved and recomputes the boards."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from markets.commands import ArenaCommand, Result
from scoring.services.scores import compute_scores


class Command(ArenaCommand):
    help = "Scores every purchase and forecast on what resolved by --at, then recomputes the leaderboards."

    def perform(self, at: datetime, options: dict[str, Any]) -> Result:
        report = asdict(compute_scores(at=at))
        return Result(report, log=report.pop("log"))
