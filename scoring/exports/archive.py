"""Building an archive: each table in each format, README, licence, data dictionary and manifest."""

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import django
from forecast_rank.atomic_folders import atomic_folder
from forecast_rank.files.checksums import file_sha256, list_files
from forecast_rank.files.descriptions import croissant, data_package

from agents.models import Chain
from agents.records import GENESIS, PROTOCOLS, instant_text
from markets.foundation.consistent_reads import consistent_reads
from scoring.exports.dictionary import CSV, dictionary_json
from scoring.exports.manifest import FORMAT_VERSION, MANIFEST, manifest_text
from scoring.exports.readme import DATASET, license_text, readme_text
from scoring.exports.selection import ExportSelection
from scoring.exports.table_files import WRITERS
from scoring.exports.table_rows import methodology_rows, row_batches
from scoring.exports.tables import TABLES

Progress = Callable[[int, int, str], None]


class NotAnArchive(Exception):
    """The folder to write to holds something else than an archive; nothing was written."""


@dataclass(frozen=True, slots=True)
class BuiltArchive:
    """The numbers of a finished archive's contents."""

    rows: int
    files: int
    bytes: int
    manifest: str
    """The hash of the manifest, which holds the hashes of all other files."""


def build_archive(
    *,
    folder: Path,
    selection: ExportSelection,
    formats: Sequence[str],
    at: datetime,
    progress: Progress = lambda done, of, caption: None,
) -> BuiltArchive:
    """The archive of a selection in `folder`, complete or not there at all; an older archive is replaced.

    Raises NotAnArchive where the folder holds something else.
    """
    if folder.exists() and not (folder.is_dir() and (not any(folder.iterdir()) or (folder / MANIFEST).exists())):
        raise NotAnArchive(f"{folder}: holds something else than an archive")
    with atomic_folder(folder) as draft:
        with consistent_reads():
            rows = _write_tables(draft, selection, formats, progress)
            _write_documents(draft, selection, formats, at)
            manifest = _manifest(draft, selection, formats, at, rows)
        (draft / MANIFEST).write_text(manifest_text(manifest), encoding="utf-8")
    files = [path for path in folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    return BuiltArchive(sum(rows.values()), len(files), size, file_sha256(folder / MANIFEST))


def _write_tables(
    draft: Path, selection: ExportSelection, formats: Sequence[str], progress: Progress
) -> dict[str, int]:
    """The number of rows of each table, after writing each in every format."""
    for format in formats:
        (draft / format).mkdir()
    rows = {table.name: 0 for table in TABLES}
    for done, table in enumerate(TABLES):
        progress(done, len(TABLES), table.name)
        with ExitStack() as open_files:
            writers = [
                open_files.enter_context(WRITERS[format](draft / format / f"{table.name}.{format}", table))
                for format in formats
            ]
            for batch in row_batches(table, selection):
                rows[table.name] += len(batch)
                for write in writers:
                    write(batch)
    progress(len(TABLES), len(TABLES), "")
    return rows


def _write_documents(draft: Path, selection: ExportSelection, formats: Sequence[str], at: datetime) -> None:
    files, format, made_at = list_files(draft, MANIFEST, {}), CSV if CSV in formats else formats[0], instant_text(at)
    for name, contents in {
        "dictionary.json": dictionary_json(TABLES),
        "methodologies.json": methodology_rows(),
        "datapackage.json": data_package(DATASET, TABLES, files, format, at=made_at, whole=selection.is_whole),
        "croissant.json": croissant(DATASET, TABLES, files, format, at=made_at),
    }.items():
        (draft / name).write_text(json.dumps(contents, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (draft / "README.md").write_text(readme_text(selection.as_json(), made_at), encoding="utf-8")
    (draft / "LICENSE.txt").write_text(license_text(), encoding="utf-8")


def _manifest(
    draft: Path, selection: ExportSelection, formats: Sequence[str], at: datetime, rows: dict[str, int]
) -> dict[str, Any]:
    chains = {protocol: {"length": 0, "head": GENESIS} for protocol in PROTOCOLS}
    chains |= {chain.protocol: {"length": chain.length, "head": chain.head} for chain in Chain.objects.all()}
    return {
        "format": FORMAT_VERSION,
        "made_at": instant_text(at),
        "selection": selection.as_json(),
        "formats": list(formats),
        "chains": chains,
        "versions": {
            "python": ".".join(map(str, sys.version_info[:3])),
            "django": django.get_version(),
            **{name: version(name) for name in ("numpy", "polars", "scipy")},
        },
        "files": list_files(
            draft, MANIFEST, {f"{format}/{name}.{format}": count for format in formats for name, count in rows.items()}
        ),
    }
