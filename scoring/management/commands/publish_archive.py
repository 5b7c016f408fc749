"""Publishes the archive and the dataset of the day under /data/."""

from datetime import datetime
from typing import Any

from agents.signing import NO_LASTING_KEY, has_lasting_key
from foundation.commands import ArenaCommand, CommandResult
from scoring.exports.public_archives import RETENTION_RULE, publish_archive
from scoring.exports.public_datasets import publish_dataset


class Command(ArenaCommand):
    help = (
        "Builds the day's public archive, listed at /data/, and the week's dataset, listed at /datasets/; keeps "
        f"{RETENTION_RULE}."
    )
    raises_alert = True

    def handle(self, *args: Any, **options: Any) -> None:
        if not has_lasting_key():
            self.refuse(NO_LASTING_KEY)
        super().handle(*args, **options)

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        with self.progress("publishing") as progress:
            return CommandResult(publish_archive(at=at, progress=progress) | publish_dataset(at=at))
