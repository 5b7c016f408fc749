"""The manifest of an archive, and its record on the hash chain: digests of tables and documents, rows by week."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from agents.records import ARCHIVE, canonical, sha256
from cohorts.weeks import week_start
from scoring.exports.dictionary import ArchiveTable

MANIFEST, ANCHOR = "manifest.json", "anchor.json"
FORMAT_VERSION = 3


class InvalidManifest(ValueError):
    """The manifest is missing, malformed, of another format version, or has been changed."""


def manifest_text(contents: Mapping[str, Any]) -> str:
    """The text of the manifest file, with its own hash over everything else in it."""
    hashed_contents = {name: value for name, value in contents.items() if name != "sha256"}
    return (
        json.dumps({**hashed_contents, "sha256": sha256(canonical(hashed_contents))}, indent=1, sort_keys=True) + "\n"
    )


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of an archive. Raises InvalidManifest unless it is byte for byte what `manifest_text` gives."""
    try:
        text = (folder / MANIFEST).read_bytes().decode()
        contents = json.loads(text)
        unchanged = isinstance(contents, dict) and manifest_text(contents) == text
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidManifest(f"{MANIFEST}: {error}") from error
    if not unchanged:
        raise InvalidManifest(f"{MANIFEST}: its hash does not match its contents, or it is not in canonical form")
    if contents.get("format") != FORMAT_VERSION:
        raise InvalidManifest(f"{MANIFEST}: format {contents.get('format')}, this program reads {FORMAT_VERSION}")
    return contents


WEEKLY_TABLES = {
    "decisions": "decided_at",
    "trades": "executed_at",
    "settlements": "settled_at",
    "reversals": "reversed_at",
    "journal": "occurred_at",
    "snapshots": "taken_at",
    "prices": "observed_at",
    "brier_scores": "resolved_at",
    "elicitations": "made_at",
    "forecasts": "made_at",
    "forecast_scores": "resolved_at",
    "attempts": "noted_at",
}
"""The tables whose rows are counted by week, and the column of the time that counts."""
DOCUMENTS = ("LICENSE.txt", "README.md", "dictionary.json", "methodologies.json", "verify_arena.py")
"""The files whose hashes the record holds. The others (manifest and descriptions) follow from the archive's files."""


class WeeklyRows:
    """The number of rows of each table by the day on which their week starts."""

    def __init__(self) -> None:
        self._by_day: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, table: ArchiveTable, rows: Iterable[Sequence[Any]]) -> None:
        """Counts rows of encoded values."""
        if name := WEEKLY_TABLES.get(table.name):
            place = table.names.index(name)
            self.add_days(table.name, (row[place].date().isoformat() for row in rows if row[place] is not None))

    def add_days(self, table: str, days: Iterable[str]) -> None:
        self._by_day[table].update(days)

    def as_json(self) -> dict[str, dict[str, int]]:
        """Rows by table and week, without those of a table that has no time."""
        weeks: dict[str, dict[str, int]] = {}
        for table, days in sorted(self._by_day.items()):
            counts: Counter[str] = Counter()
            for day, rows in days.items():
                counts[week_start(datetime.fromisoformat(f"{day}T00:00:00+00:00")).date().isoformat()] += rows
            if counts:
                weeks[table] = dict(sorted(counts.items()))
        return weeks


def archive_record(
    *,
    folder: Path,
    made_at: str,
    selection: Mapping[str, Any],
    chains: Mapping[str, Any],
    tables: Mapping[str, Mapping[str, Any]],
    weeks: Mapping[str, Mapping[str, int]],
) -> dict[str, Any]:
    """The canonical record of the archive in `folder`.

    `chains` are the lengths and heads of the chains of tasks. `tables` has the rows of each table, and the SHA-256 of
    its CSV file, whether or not the archive holds that format.
    """
    from forecast_rank.files.checksums import file_sha256  # the library is not loaded at every start

    return {
        "protocol": ARCHIVE,
        "made_at": made_at,
        "selection": dict(selection),
        "chains": dict(chains),
        "tables": {name: dict(table) for name, table in tables.items()},
        "weeks": {table: dict(counts) for table, counts in weeks.items()},
        "documents": {name: file_sha256(folder / name) for name in DOCUMENTS},
    }
