"""Building an archive: every table in every format asked for, what explains them, and the manifest over all of it."""

import json
import shutil
import sys
import uuid
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import django
from django.db import connection, transaction

from agents.models import Chain
from agents.records import GENESIS, PROTOCOLS, instant_text
from scoring.exports import manifest, notes
from scoring.exports.contents import chunks, methodology_rows
from scoring.exports.dictionary import Table, as_json
from scoring.exports.files import WRITERS, TableWriter, file_sha256, seal_of
from scoring.exports.selection import Selection
from scoring.exports.tables import TABLES

Progress = Callable[[int, int, str], None]


class NotOurs(Exception):
    """A place that holds something else than an archive; nothing was written."""


@dataclass(frozen=True, slots=True)
class Exported:
    """An archive as it lies on disk."""

    folder: Path
    rows: int
    files: int
    bytes: int
    sha256: str
    """Of the manifest, which holds the hash of all else."""


def export_build(
    *,
    folder: Path,
    selection: Selection,
    formats: Sequence[str],
    at: datetime,
    progress: Progress = lambda done, of, what: None,
) -> Exported:
    """The archive of a selection in `folder`, which becomes whole at once or not at all; an older one is replaced.

    Raises NotOurs where the folder holds something else.
    """
    if folder.exists() and not (
        folder.is_dir() and (not any(folder.iterdir()) or (folder / manifest.MANIFEST).exists())
    ):
        raise NotOurs(f"{folder}: holds something else than an archive")
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}")
    try:
        with one_instant():
            rows = _fill(draft, selection, formats, at, progress)
            contents = _manifest(draft, selection, formats, at, rows)
        (draft / manifest.MANIFEST).write_text(manifest.written(contents), encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        draft.replace(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    files = [path for path in folder.rglob("*") if path.is_file()]
    counted = rows if len(formats) == 1 else {name: n for name, n in rows.items() if name.startswith(formats[0])}
    size = sum(path.stat().st_size for path in files)
    return Exported(folder, sum(counted.values()), len(files), size, file_sha256(folder / manifest.MANIFEST))


def zipped(folder: Path) -> Path:
    """The archive as one file beside its folder, and its hash beside that, as `sha256sum -c` reads it.

    The members' hashes do not cover what a zip file holds between them. All members bear one date, so that equal
    contents give equal files.
    """
    target = folder.with_name(f"{folder.name}.zip")
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
    try:
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    member = zipfile.ZipInfo(f"{path.relative_to(folder).as_posix()}")
                    member.compress_type = zipfile.ZIP_DEFLATED
                    with path.open("rb") as source, archive.open(member, "w", force_zip64=True) as sink:
                        shutil.copyfileobj(source, sink, 1 << 20)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    seal_of(target).write_text(f"{file_sha256(target)}  {target.name}\n", encoding="utf-8")
    return target


@contextmanager
def one_instant() -> Iterator[None]:
    """Inside, the database is seen as it stood at one instant, and nobody who writes is kept waiting."""
    if connection.in_atomic_block:
        yield  # whoever began the transaction answers for what it sees
        return
    if connection.vendor == "sqlite":
        connection.ensure_connection()  # which sets the mode
        usual: Any = connection.transaction_mode  # type: ignore[attr-defined]
        connection.transaction_mode = None  # type: ignore[attr-defined]
        try:
            with transaction.atomic():
                connection.transaction_mode = usual  # type: ignore[attr-defined]
                yield
        finally:
            connection.transaction_mode = usual  # type: ignore[attr-defined]
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def _fill(
    draft: Path, selection: Selection, formats: Sequence[str], at: datetime, progress: Progress
) -> dict[str, int]:
    """Writes everything but the manifest; returns the number of rows of each table's file."""
    rows: dict[str, int] = {}
    for format in formats:
        (draft / format).mkdir(parents=True)
    for done, table in enumerate(TABLES):
        progress(done, len(TABLES), table.name)
        count = _write(draft, table, selection, formats)
        rows |= {f"{format}/{table.name}.{format}": count for format in formats}
    progress(len(TABLES), len(TABLES), "")
    for name, contents in (("dictionary.json", as_json(TABLES)), ("methodologies.json", methodology_rows())):
        (draft / name).write_text(json.dumps(contents, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (draft / "README.md").write_text(notes.readme(selection.as_json(), instant_text(at)), encoding="utf-8")
    (draft / "LICENSE.txt").write_text(notes.LICENSE, encoding="utf-8")
    return rows


def _write(draft: Path, table: Table, selection: Selection, formats: Sequence[str]) -> int:
    count = 0
    with ExitStack() as open_files:
        writers: list[TableWriter] = [
            open_files.enter_context(WRITERS[format](draft / format / f"{table.name}.{format}", table))
            for format in formats
        ]
        for rows in chunks(table, selection):
            count += len(rows)
            for writer in writers:
                writer.write(rows)
    return count


def _manifest(
    draft: Path, selection: Selection, formats: Sequence[str], at: datetime, rows: dict[str, int]
) -> dict[str, Any]:
    ends = {chain.protocol: (chain.length, chain.head) for chain in Chain.objects.all()}
    return {
        "format": manifest.FORMAT,
        "made_at": instant_text(at),
        "selection": selection.as_json(),
        "formats": list(formats),
        "chains": {
            protocol: dict(zip(("length", "head"), ends.get(protocol, (0, GENESIS)), strict=True))
            for protocol in PROTOCOLS
        },
        "versions": {
            "python": ".".join(map(str, sys.version_info[:3])),
            "django": django.get_version(),
            **{name: version(name) for name in ("numpy", "polars", "scipy")},
        },
        "files": manifest.listed(draft, rows),
    }
