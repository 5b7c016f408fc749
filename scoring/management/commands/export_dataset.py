"""Writes an archive of the arena: everything, a cohort, or a window of time."""

import argparse
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError

from cohorts.models import Cohort
from markets.commands import ArenaCommand, Result
from markets.rest import InstantField
from scoring.exports.archive import NotOurs, export_build, zipped
from scoring.exports.files import CSV, FORMATS, file_sha256
from scoring.exports.selection import Selection

DAY = timedelta(days=1)


class Command(ArenaCommand):
    help = (
        "Writes an archive to DIR: a file for each table, a data dictionary, and a manifest with the hash of each. "
        "`verify_export DIR` proves it. An archive that is there already is replaced."
    )

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("--out", type=Path, required=True, metavar="DIR")
        parser.add_argument("--cohort", type=int, metavar="N", help="this cohort alone")
        parser.add_argument("--from", dest="start", type=bound, metavar="TIME", help="what happened since, ISO-8601")
        parser.add_argument("--to", dest="end", type=bound, metavar="TIME", help="what happened before")
        parser.add_argument("--day", type=bound, metavar="DAY", help="what happened in the 24 hours from then")
        parser.add_argument("--format", type=formats, default=(CSV,), help="csv, parquet or both with a comma")
        parser.add_argument("--zip", action="store_true", help="DIR.zip beside it too")

    def perform(self, at: datetime, options: dict[str, Any]) -> Result:
        selection = self._selection(options)
        with self.progress("exporting") as progress:
            try:
                made = export_build(
                    folder=options["out"].resolve(),
                    selection=selection,
                    formats=options["format"],
                    at=at,
                    progress=progress,
                )
            except NotOurs as error:
                self.refuse(f"--out: {error}")
        summary = {"rows": made.rows, "rejected": 0, "files": made.files, "bytes": made.bytes, "manifest": made.sha256}
        if options["zip"]:
            archive = zipped(made.folder)
            summary |= {"zip": str(archive), "zip_sha256": file_sha256(archive)}
        return Result(summary)

    def _selection(self, options: dict[str, Any]) -> Selection:
        start, end, cohort = options["start"], options["end"], options["cohort"]
        if options["day"]:
            if start or end:
                self.refuse("--day: goes with neither --from nor --to")
            start, end = options["day"], options["day"] + DAY
        if start and end and start >= end:
            self.refuse(f"--to: {end:%Y-%m-%dT%H:%M:%SZ} is not after --from")
        if cohort is not None and not Cohort.objects.filter(number=cohort).exists():
            self.refuse(f"--cohort: there is no cohort {cohort}")
        return Selection(cohort, start, end)


def bound(text: str) -> datetime:
    """An instant from ISO-8601 text with a zone, or a day's 00:00 UTC. Raises argparse's error for anything else."""
    try:
        at: datetime | None = InstantField(required=False).clean(text)
    except ValidationError as error:
        raise argparse.ArgumentTypeError(" ".join(error.messages)) from None
    if at is None:
        raise argparse.ArgumentTypeError("is empty")
    return at


def formats(text: str) -> tuple[str, ...]:
    """Formats from words with commas, each once. Raises argparse's error for one that there is not."""
    words = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not words or (unknown := [word for word in words if word not in FORMATS]):
        raise argparse.ArgumentTypeError(f"{', '.join(unknown) if words else text!r} is none of {', '.join(FORMATS)}")
    return words
