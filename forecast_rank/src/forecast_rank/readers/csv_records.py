"""Records of CSV files, with a clear error for unreadable ones."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from forecast_rank.files.faults import UnreadableFile


def read_csv_records(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each record by heading, with the line where it begins. Raises UnreadableFile if one of `columns` is missing."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as opened:
            reader = csv.DictReader(opened)
            if missing := [name for name in columns if name not in (reader.fieldnames or ())]:
                raise UnreadableFile(f"{path} has no column {', '.join(map(repr, missing))}")
            before = reader.line_num
            for record in reader:
                yield before + 1, record
                before = reader.line_num
    except OSError as error:
        raise UnreadableFile(f"{path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnreadableFile(f"{path}: {error}") from error
