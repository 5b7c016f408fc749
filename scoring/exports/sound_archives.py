"""Archives that are read after a verification: the texts of prompts and the methodologies beside their tables."""

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from cohorts.models import Methodology
from forecast_rank.files.archives import ArchiveTooLarge
from scoring.exports.archive_record import read_manifest
from scoring.exports.verification.archive_reader import Archive

BLOCKS = ("markets", "questions", "evidence")


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


def open_archive(folder: Path) -> Archive:
    """The tables of a verified archive's folder."""
    manifest = read_manifest(folder)
    return Archive(folder, manifest, manifest["formats"])


def block_texts(archive: Archive) -> dict[tuple[str, int], str]:
    """The text of each block by its kind, and its universe or question batch."""
    texts = {row["sha256"]: row["text"] for row in archive.rows("prompts") if row["kind"] in BLOCKS}
    return {(row["kind"], row["id"]): texts[row["sha256"]] for row in archive.rows("blocks")}


def methodologies(archive: Archive) -> Iterator[tuple[Methodology, str]]:
    """The methodologies, which are not stored, with their hashes as the archive states them."""
    for row in archive.methodologies():
        published_at = row["published_at"] and instant(row["published_at"])
        values = {field.name: field.to_python(row[field.name]) for field in Methodology.frozen_fields()}
        yield Methodology(**values, title=row["title"], published_at=published_at), row["sha256"]


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
