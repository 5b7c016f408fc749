"""Builds a dataset of the past, on which agents are evaluated."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from agents.signing import NO_LASTING_KEY, has_lasting_key
from forecast_rank.files.archives import unpacked
from foundation.commands import ArenaCommand, CommandResult
from markets.models import Question
from scoring.exports.archive import build_archive
from scoring.exports.archive_record import read_manifest
from scoring.exports.datasets import NotADataset, build_dataset
from scoring.exports.dictionary import CSV
from scoring.exports.public_archives import public_folder, published_days
from scoring.exports.selection import ExportSelection
from scoring.exports.sound_archives import UnsoundArchive, check_archive
from scoring.management.commands.export_dataset import window_bound


class Command(ArenaCommand):
    help = (
        "Writes to DIR the question batches frozen from --from to before --to of which a question has resolved: the "
        "tasks as models saw them, their outcomes, and everyone's forecasts, all cut from an archive. "
        "`arena-agent evaluate` reads it."
    )

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("--from", dest="start", type=window_bound, required=True, metavar="TIME")
        parser.add_argument("--to", dest="end", type=window_bound, required=True, metavar="TIME")
        parser.add_argument("--out", type=Path, required=True, metavar="DIR")
        parser.add_argument(
            "--archive", type=Path, metavar="DIR",
            help="cut from this one (default: the newest published one, or a new one if a question resolved since)",
        )  # fmt: skip

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        start, end = options["start"], options["end"]
        if start >= end:
            self.refuse(f"--to: {end:%Y-%m-%dT%H:%M:%SZ} is not after --from")
        try:
            with self._archive(options["archive"], at) as archive:
                built = build_dataset(archive, folder=options["out"].resolve(), start=start, end=end, at=at)
        except UnsoundArchive as error:
            self.refuse(f"--archive: {error}")
        except NotADataset as error:
            self.refuse(f"--out: {error}")
        return CommandResult(asdict(built))

    @contextmanager
    def _archive(self, archive: Path | None, at: datetime) -> Iterator[Path]:
        """The folder of the archive to cut from: the one given, the newest published one, or a new one."""
        published = None if archive else _published_archive(at)
        if published:
            yield published
        elif archive:
            with self.progress("verifying the archive") as progress:
                check_archive(archive, progress)
            with unpacked(archive) as folder:
                yield folder
        elif not has_lasting_key():
            self.refuse(NO_LASTING_KEY)
        else:
            with tempfile.TemporaryDirectory(prefix="archive-") as name, self.progress("exporting") as progress:
                folder = Path(name) / "archive"
                build_archive(folder=folder, selection=ExportSelection(), formats=(CSV,), at=at, progress=progress)
                yield folder


def _published_archive(at: datetime) -> Path | None:
    """The folder of the newest published archive, unless a question resolved by `at` and after it was made."""
    for day in published_days()[:1]:
        archive = public_folder() / day
        made_at = read_manifest(archive)["made_at"]
        if not Question.objects.filter(resolved_at__gt=made_at, resolved_at__lte=at).exists():
            return archive
    return None
