"""Writes an archive of the arena's data: everything, a cohort, or a window of time."""

import argparse
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError

from agents.signing import NO_LASTING_KEY, has_lasting_key
from cohorts.models import Cohort
from forecast_rank.files.checksums import file_sha256, zip_archive
from foundation.commands import ArenaCommand, CommandResult
from foundation.rest.filters import InstantField
from scoring.exports.archive import NotAnArchive, build_archive
from scoring.exports.dictionary import CSV, FORMATS
from scoring.exports.selection import ExportSelection

DAY = timedelta(days=1)


class Command(ArenaCommand):
    help = (
        "Writes an archive to DIR: one file per table, a data dictionary, and a manifest with all hashes. "
        "`verify_export DIR` checks it. An earlier archive in DIR is replaced once the new one is complete."
    )

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("--out", type=Path, required=True, metavar="DIR")
        parser.add_argument("--cohort", type=int, metavar="N", help="this cohort only")
        parser.add_argument(
            "--from", dest="start", type=window_bound, metavar="TIME", help="start of a window, ISO-8601"
        )
        parser.add_argument(
            "--to", dest="end", type=window_bound, metavar="TIME", help="end of a window, which is not part of it"
        )
        parser.add_argument("--day", type=window_bound, metavar="DAY", help="a window of 24 hours from this time")
        parser.add_argument("--format", type=format_names, default=(CSV,), help="csv, parquet or both with a comma")
        parser.add_argument("--zip", action="store_true", help="write DIR.zip and its checksum too")

    def handle(self, *args: Any, **options: Any) -> None:
        if not has_lasting_key():
            self.refuse(NO_LASTING_KEY)
        super().handle(*args, **options)

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        selection, folder = self._selection(options), options["out"].resolve()
        with self.progress("exporting") as progress:
            try:
                archive = build_archive(
                    folder=folder,
                    selection=selection,
                    formats=options["format"],
                    at=at,
                    progress=progress,
                )
            except NotAnArchive as error:
                self.refuse(f"--out: {error}")
        summary = {**asdict(archive), "rejected": 0}
        if options["zip"]:
            zip_file = zip_archive(folder)
            summary |= {"zip": str(zip_file), "zip_sha256": file_sha256(zip_file)}
        return CommandResult(summary)

    def _selection(self, options: dict[str, Any]) -> ExportSelection:
        start, end, cohort = options["start"], options["end"], options["cohort"]
        if options["day"]:
            if start or end:
                self.refuse("--day: can not be combined with --from or --to")
            start, end = options["day"], options["day"] + DAY
        if start and end and start >= end:
            self.refuse(f"--to: {end:%Y-%m-%dT%H:%M:%SZ} is not after --from")
        if cohort is not None and not Cohort.objects.filter(number=cohort).exists():
            self.refuse(f"--cohort: there is no cohort {cohort}")
        return ExportSelection(cohort, start, end)


def window_bound(text: str) -> datetime:
    """An instant from ISO-8601 text with a zone, or a day's 00:00 UTC. Raises argparse's error for anything else."""
    try:
        at: datetime = InstantField().clean(text)
    except ValidationError as error:
        raise argparse.ArgumentTypeError(" ".join(error.messages)) from None
    return at


def format_names(text: str) -> tuple[str, ...]:
    """Distinct formats from a comma-separated list. Raises argparse's error for an unknown one."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names or (unknown := [name for name in names if name not in FORMATS]):
        raise argparse.ArgumentTypeError(f"{', '.join(unknown) if names else text!r} is none of {', '.join(FORMATS)}")
    return names
