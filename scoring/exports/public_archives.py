"""Public archives: everything, once a day, with each table alone beside the zip file."""

import json
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils._os import safe_join

from agents.records import sha256
from agents.services.signing_keys import record_daily_anchor
from foundation.raw_sql import database_name
from scoring.exports.archive_record import ANCHOR
from scoring.exports.dictionary import FORMATS
from scoring.exports.selection import ExportSelection

DAILY = 7
RETENTION_RULE = f"the last {DAILY} archives, then the first of each month for ever"


def publish_archive(*, at: datetime, progress: Any = lambda count, total, caption: None) -> dict[str, Any]:
    """Builds the archive of a day, which replaces an earlier one of the day whole; removes what the rule drops."""
    from forecast_rank.files.checksums import file_sha256, zip_archive, zip_checksum
    from scoring.exports.archive import build_archive  # polars, which only the worker needs

    folder = public_folder() / published_day(at)
    built = build_archive(folder=folder, selection=ExportSelection(), formats=FORMATS, at=at, progress=progress)
    record_daily_anchor(json.loads((folder / ANCHOR).read_text()), at=at)
    file = zip_archive(folder)
    days = published_days()
    dropped = days_to_drop(days)
    for old in dropped:
        old_file = published_file(old)
        old_file.unlink()
        zip_checksum(old_file).unlink(missing_ok=True)
        shutil.rmtree(public_folder() / old, ignore_errors=True)
    size = {"bytes": file.stat().st_size, "sha256": file_sha256(file)}
    return {"archive": file.name, "rows": built.rows, **size, "published": len(days) - len(dropped), "removed": dropped}


def published_day(at: datetime) -> str:
    """The name of the archive and of the dataset of a day."""
    return f"{at.astimezone(UTC):%Y-%m-%d}"


def days_to_drop(days: Sequence[str]) -> list[str]:
    """The days, newest first, of which nothing is retained."""
    first_of_month = {min(month) for _, month in groupby(days, lambda day: day[:7])}
    return [day for day in days[DAILY:] if day not in first_of_month]


def published_days() -> list[str]:
    """The days with an archive, newest first."""
    return sorted((file.stem for file in public_folder().glob("????-??-??.zip")), reverse=True)


def published_archives() -> list[dict[str, Any]]:
    """Day, size, checksum and path of each archive, newest first."""
    from forecast_rank.files.checksums import zip_checksum

    archives = []
    for day in published_days():
        file = published_file(day)
        checksum = zip_checksum(file).read_text().split()[0]
        archives.append({"day": day, "bytes": file.stat().st_size, "sha256": checksum, "file": f"/data/{day}.zip"})
    return archives


def published_file(day: str, name: str = "") -> Path:
    """The path of the zip file of a day, of a table by its file name, or of another file of the archive.

    Raises SuspiciousFileOperation for a name that leads out of the archive.
    """
    if not name:
        return public_folder() / f"{day}.zip"
    format = Path(name).suffix[1:]
    return Path(safe_join(public_folder() / day, name if "/" in name or format not in FORMATS else f"{format}/{name}"))


def public_folder() -> Path:
    """The folder of what is published, which names its database."""
    database = database_name()
    return Path(settings.ARENA_EXPORT_DIR) / f"public-{Path(database).stem}-{sha256(database)[:8]}"
