"""The tables of a verified archive, read one by one."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from cohorts.models import Methodology
from forecast_rank.files.archives import ArchiveTooLarge
from scoring.exports.dictionary import FORMATS
from scoring.exports.manifest import MANIFEST
from scoring.exports.table_files import read_table
from scoring.exports.tables import TABLES_BY_NAME

BLOCKS = ("markets", "questions", "evidence")

Row = dict[str, Any]


class UnsoundArchive(Exception):
    """The archive is missing, too large, or holds what can not be true; the message says which."""


def check_archive(path: Path, progress: Callable[[int, int, str], None]) -> None:
    """Verifies an archive's folder or zip file. Raises UnsoundArchive."""
    from scoring.exports.verification.verifier import verify_archive

    try:
        report = verify_archive(path, progress)
    except FileNotFoundError:
        raise UnsoundArchive(f"{path}: there is no such archive") from None
    except ArchiveTooLarge as error:
        raise UnsoundArchive(str(error)) from None
    if report.violations:
        raise UnsoundArchive(f"{path}: not a sound archive: {report.violations[0]} (verify_export lists all)")


@dataclass(frozen=True, slots=True)
class ArchiveTables:
    """The tables of a verified archive's folder."""

    folder: Path

    @property
    def manifest(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / MANIFEST).read_text(encoding="utf-8")))

    def rows(self, name: str) -> Iterator[Row]:
        formats = self.manifest["formats"]
        format = next(format for format in FORMATS if format in formats)
        return read_table(self.folder / format / f"{name}.{format}", TABLES_BY_NAME[name])

    def block_texts(self) -> dict[tuple[str, int], str]:
        """The text of each block by its kind, and its universe or question batch."""
        texts = {row["sha256"]: row["text"] for row in self.rows("prompts") if row["kind"] in BLOCKS}
        return {(row["kind"], row["id"]): texts[row["sha256"]] for row in self.rows("blocks")}

    def methodologies(self) -> Iterator[tuple[Methodology, str]]:
        """The methodologies, which are not stored, with their hashes as the archive states them."""
        for row in json.loads((self.folder / "methodologies.json").read_text(encoding="utf-8")):
            published_at = row["published_at"] and instant(row["published_at"])
            values = {field.name: field.to_python(row[field.name]) for field in Methodology.frozen_fields()}
            yield Methodology(**values, title=row["title"], published_at=published_at), row["sha256"]


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
