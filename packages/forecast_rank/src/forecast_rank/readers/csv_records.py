"""Records of CSV files, with a clear error for unreadable ones."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from forecast_rank.files.csv_files import csv_reason
from forecast_rank.files.faults import UnreadableFile


def read_csv_records(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each record by heading, with the line where it begins. Raises UnreadableFile if one of `columns` is missing."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as opened:
            yield from csv_records(opened, str(path), columns)
    except OSError as error:
        raise UnreadableFile(f"{path}: {error.strerror or error}") from error


def csv_records(file: TextIO, name: str, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """`read_csv_records` of an open file, which messages call `name`."""
    reader = csv.DictReader(file)
    try:
        if missing := [column for column in columns if column not in (reader.fieldnames or ())]:
            raise UnreadableFile(f"{name} has no column {', '.join(map(repr, missing))}")
        before = reader.line_num
        for record in reader:
            yield before + 1, record
            before = reader.line_num
    except csv.Error as error:
        raise UnreadableFile(f"{name}, line {reader.line_num}: {csv_reason(error)}") from error
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{name}: {error}") from error
