"""Scores what is resolved and recomputes the boards."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from markets.commands import ArenaCommand, Result
from scoring.services.past_boards import MANY, past_boards_keep
from scoring.services.scores import compute_scores


class Command(ArenaCommand):
    help = "Scores every purchase and forecast on what resolved by --at, then recomputes the leaderboards."

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--leave-past-boards", action="store_true", help="leave boards of past instants to be made as they are read"
        )

    def perform(self, at: datetime, options: dict[str, Any]) -> Result:
        report = asdict(compute_scores(at=at))
        kept = 0 if options["leave_past_boards"] else past_boards_keep(most=MANY)
        return Result(report, log=[*report.pop("log"), *([f"boards of past instants made: {kept}"] if kept else [])])
