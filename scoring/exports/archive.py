"""Building an archive: each table in each format, README, licence, data dictionary and manifest."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import django

from agents.letters import first_sealed_freeze
from agents.models import ChainLink
from agents.records import ARCHIVE, BOARD, FORECAST, GENESIS, RECEIPT, TRADING
from agents.services.chain import append_archive
from agents.services.envelopes import open_envelopes
from agents.services.signing_keys import anchor, chain_heads
from arena_verifier.standalone import program_text
from forecast_rank.atomic_folders import atomic_folder
from forecast_rank.files.checksums import file_sha256, list_files
from forecast_rank.files.descriptions import Dataset, croissant, data_package
from foundation.consistent_reads import consistent_reads
from foundation.json_lines import instant_text
from foundation.version import VERSION
from markets.sources.registry import SOURCES
from scoring.exports.archive_record import ANCHOR, FORMAT_VERSION, MANIFEST, WeeklyRows, archive_record, manifest_text
from scoring.exports.dictionary import CSV, dictionary_json
from scoring.exports.selection import ExportSelection
from scoring.exports.table_files import TableWriter
from scoring.exports.table_rows import methodology_rows, row_batches
from scoring.exports.tables import TABLES
from scoring.exports.tables.receipts import RECEIPTS
from scoring.exports.tables.results import CHAIN, PUBLISHED_BOARDS
from scoring.services.published_boards import publish_for_archive

STANDALONE_VERIFIER = "verify_arena.py"
"""Part of every archive: verifies one with the standard library alone."""
TASK_PROTOCOLS = (TRADING, FORECAST)
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
    progress: Progress = lambda count, total, caption: None,
) -> BuiltArchive:
    """The archive of a selection in `folder`, complete or not there at all; an older archive is replaced.

    While answers are sealed, it ends where the first seal begins. Raises NotAnArchive where the folder holds something
    else.
    """
    if folder.exists() and not (folder.is_dir() and (not any(folder.iterdir()) or (folder / MANIFEST).exists())):
        raise NotAnArchive(f"{folder}: holds something else than an archive")
    open_envelopes(at=at)
    with atomic_folder(folder) as draft:
        rows = _write_archive(draft, selection.before(first_sealed_freeze(at)), formats, at, progress)
    files = [path for path in folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    return BuiltArchive(sum(rows.values()), len(files), size, file_sha256(folder / MANIFEST))


def _write_archive(
    draft: Path, selection: ExportSelection, formats: Sequence[str], at: datetime, progress: Progress
) -> dict[str, int]:
    """Writes all files and links the archive to its chain; the number of rows of each table."""
    for format in formats:
        (draft / format).mkdir()
    with TableWriter(CHAIN, draft, formats) as chain:
        with consistent_reads():
            publication = publish_for_archive(at=at) if selection.is_whole else _last_publication()
            tables, weeks = _write_tables(draft, selection, formats, progress)
            heads = chain_heads() | {RECEIPT: _receipt_head(selection)}
            for batch in row_batches(CHAIN, selection, protocol__in=TASK_PROTOCOLS):
                chain.write_rows(batch)
            _write_documents(draft, selection, at)
        published = publication.sequence if publication else 0
        with TableWriter(PUBLISHED_BOARDS, draft, formats) as boards:
            for batch in row_batches(PUBLISHED_BOARDS, selection, link__sequence__lte=published):
                boards.write_rows(batch)
        tables[PUBLISHED_BOARDS.name] = boards.digest()
        for batch in row_batches(CHAIN, selection, protocol=BOARD, sequence__lte=published):
            chain.write_rows(batch)
        del heads[ARCHIVE]
        heads[BOARD] = {"length": published, "head": publication.sha256 if publication else GENESIS}
        link = append_archive(
            archive_record(
                folder=draft,
                made_at=instant_text(at),
                selection=selection.as_json(),
                chains=heads,
                tables=tables,
                weeks=weeks.as_json(),
            )
        )
        for batch in row_batches(CHAIN, selection, protocol=ARCHIVE, sequence__lte=link.sequence):
            chain.write_rows(batch)
    rows = {name: table["rows"] for name, table in tables.items()} | {CHAIN.name: chain.rows}
    heads[ARCHIVE] = {"length": link.sequence, "head": link.sha256}
    _write_json(draft / ANCHOR, anchor(heads=heads, at=at))
    _write_descriptions(draft, selection, formats, at)
    manifest = _manifest(draft, selection, formats, at, rows, heads)
    (draft / MANIFEST).write_text(manifest_text(manifest), encoding="utf-8")
    return rows


def _write_tables(
    draft: Path, selection: ExportSelection, formats: Sequence[str], progress: Progress
) -> tuple[dict[str, dict[str, Any]], WeeklyRows]:
    """The digest of each table of facts, after writing each in every format, and the rows by week.

    The chain and the published boards grow while an archive is written.
    """
    tables = [table for table in TABLES if table not in (CHAIN, PUBLISHED_BOARDS)]
    digests, weeks = {}, WeeklyRows()
    for index, table in enumerate(tables):
        progress(index, len(tables), table.name)
        with TableWriter(table, draft, formats) as written:
            for batch in row_batches(table, selection):
                written.write_rows(batch)
                weeks.add(table, batch)
        digests[table.name] = written.digest()
    progress(len(tables), len(tables), "")
    return digests, weeks


def _last_publication() -> ChainLink | None:
    return ChainLink.objects.filter(protocol=BOARD).order_by("-sequence").first()


def _receipt_head(selection: ExportSelection) -> dict[str, Any]:
    """The end of the register as far as the archive holds it."""
    last = selection.rows(RECEIPTS).order_by("-sequence").first()
    return {"length": last.sequence, "head": last.sha256} if last else {"length": 0, "head": GENESIS}


def _write_documents(draft: Path, selection: ExportSelection, at: datetime) -> None:
    for name, contents in (("dictionary.json", dictionary_json(TABLES)), ("methodologies.json", methodology_rows())):
        _write_json(draft / name, contents)
    readme = readme_text(selection.as_json(), instant_text(at))
    (draft / "README.md").write_text(readme, encoding="utf-8")
    (draft / "LICENSE.txt").write_text(license_text(), encoding="utf-8")
    (draft / STANDALONE_VERIFIER).write_text(program_text(), encoding="utf-8")


def _write_descriptions(draft: Path, selection: ExportSelection, formats: Sequence[str], at: datetime) -> None:
    files, format, made_at = list_files(draft, MANIFEST, {}), CSV if CSV in formats else formats[0], instant_text(at)
    package = data_package(DATASET, TABLES, files, format, at=made_at, whole=selection.is_whole)
    _write_json(draft / "datapackage.json", package)
    _write_json(draft / "croissant.json", croissant(DATASET, TABLES, files, format, at=made_at))


def _write_json(path: Path, contents: Any) -> None:
    path.write_text(json.dumps(contents, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _manifest(
    draft: Path,
    selection: ExportSelection,
    formats: Sequence[str],
    at: datetime,
    rows: dict[str, int],
    heads: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    rows_by_file = {}
    for format in formats:
        for name, count in rows.items():
            rows_by_file[f"{format}/{name}.{format}"] = count
    return {
        "format": FORMAT_VERSION,
        "made_at": instant_text(at),
        "selection": selection.as_json(),
        "formats": list(formats),
        "chains": heads,
        "versions": {
            "forecaster-arena": VERSION,
            "python": ".".join(map(str, sys.version_info[:3])),
            "django": django.get_version(),
            **{name: version(name) for name in ("numpy", "polars", "scipy")},
        },
        "files": list_files(draft, MANIFEST, rows_by_file),
    }


DATASET = Dataset(
    name="forecaster-arena",
    title="Forecaster Arena: forecasts and paper trades of language models",
    summary="Decisions, forecasts, trades, prices and scores of language models that forecast real events.",
    url="/data/",
    creator="Forecaster Arena",
    license="CC-BY-4.0",
    license_url="https://creativecommons.org/licenses/by/4.0/",
    terms="CC BY 4.0 for the arena's own data; venues' texts and prices and models' outputs by their owners' terms.",
)
TEXTS = Path(__file__).parents[2] / "templates" / "archive"


def license_text() -> str:
    """The terms of reuse."""
    venues = ", ".join(source.label for source in SOURCES.values())
    return (TEXTS / "LICENSE.txt").read_text(encoding="utf-8").format(venues=venues)


def readme_text(selection: Mapping[str, Any], at: str) -> str:
    """The README of an archive."""
    narrowed_by = ", ".join(f"{name} {value}" for name, value in selection.items() if value is not None)
    return (TEXTS / "README.md").read_text(encoding="utf-8").format(at=at, selection=narrowed_by or "everything")
