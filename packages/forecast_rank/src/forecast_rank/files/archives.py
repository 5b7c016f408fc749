"""Archives of tables from strangers: zip files and folders, with limits that are checked before anything is read."""

import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

EXPANDED_TIMES, EXPANDED_LEAST = 100, 1 << 28
"""Times its size, or bytes, that a zip file may expand to: whichever is more. Archives expand to some 10 times."""
MAX_FILES = 1_000
MAX_DOCUMENT_BYTES = 1 << 26
"""Of a JSON document, which is read whole."""
MAX_CSV_CELL = 1 << 26
ROWS_PER_BYTE, ROWS_LEAST = 4, 100_000
"""Rows that a Parquet table may have by its size, or in any case. A row of ours takes 6 bytes or more (prices)."""


class ArchiveTooLarge(Exception):
    """The archive is beyond a limit, which the message names."""


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The folder of an archive; a zip file is unpacked for as long as needed.

    Raises zipfile.BadZipFile, and ArchiveTooLarge before anything is read.
    """
    if path.is_dir():
        check_folder(path)
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="archive-") as folder:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if len(set(names)) < len(names):
                raise zipfile.BadZipFile("it holds two files of one name")
            check_zip(path, archive)
            archive.extractall(folder)
        check_folder(Path(folder))
        yield Path(folder)


def check_zip(path: Path, archive: zipfile.ZipFile) -> None:
    """Raises ArchiveTooLarge by what the zip file declares; Python unpacks no more of a member than that."""
    members, size = archive.infolist(), path.stat().st_size
    limit = max(EXPANDED_LEAST, EXPANDED_TIMES * size)
    _check(path.name, f"{len(members):,} files", len(members), MAX_FILES, "files")
    declared = sum(member.file_size for member in members)
    _check(path.name, f"{size:,} bytes expand to {declared:,} bytes", declared, limit, "bytes")


def check_folder(folder: Path) -> None:
    """Raises ArchiveTooLarge for too many files, a document too long, or a Parquet table of absurdly many rows."""
    count = 0
    for path in folder.rglob("*"):
        count += 1
        _check(folder.name, f"{count:,} files", count, MAX_FILES, "files")
        if not path.is_file():
            continue
        name, size = path.relative_to(folder).as_posix(), path.stat().st_size
        if path.suffix == ".json":
            _check(name, f"{size:,} bytes", size, MAX_DOCUMENT_BYTES, "bytes")
        elif path.suffix == ".parquet":
            rows = _stated_rows(path)
            _check(name, f"{rows:,} rows in {size:,} bytes", rows, max(ROWS_LEAST, ROWS_PER_BYTE * size), "rows")


def _stated_rows(path: Path) -> int:
    """The rows that a Parquet file's footer states; 0 where it can not be read, which verification will report."""
    try:
        return int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return 0


def _check(name: str, description: str, value: int, limit: int, unit: str) -> None:
    if value > limit:
        raise ArchiveTooLarge(f"{name}: {description}, above the limit of {limit:,} {unit}")
