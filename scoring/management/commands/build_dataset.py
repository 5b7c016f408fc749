"""Builds a dataset of the past, on which agents are evaluated."""

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from foundation.commands import ArenaCommand, CommandResult
from scoring.management.commands.export_dataset import window_bound
from scoring.services.datasets import NotADataset, build_dataset


class Command(ArenaCommand):
    help = (
        "Writes to DIR the question batches frozen from --from to before --to of which a question has resolved: the "
        "tasks as models saw them, their outcomes, and everyone's forecasts. `arena-agent evaluate` reads it."
    )

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("--from", dest="start", type=window_bound, required=True, metavar="TIME")
        parser.add_argument("--to", dest="end", type=window_bound, required=True, metavar="TIME")
        parser.add_argument("--out", type=Path, required=True, metavar="DIR")

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        start, end = options["start"], options["end"]
        if start >= end:
            self.refuse(f"--to: {end:%Y-%m-%dT%H:%M:%SZ} is not after --from")
        try:
            built = build_dataset(folder=options["out"].resolve(), start=start, end=end, at=at)
        except NotADataset as error:
            self.refuse(f"--out: {error}")
        return CommandResult(asdict(built))
