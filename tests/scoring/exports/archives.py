"""Reading archives of exports."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scoring.exports.table_files import read_table
from scoring.exports.tables import TABLES_BY_NAME


def table_rows(folder: Path, name: str, format: str = "csv") -> list[dict[str, Any]]:
    """The decoded rows of a table."""
    return list(read_table(folder / format / f"{name}.{format}", TABLES_BY_NAME[name]))


def csv_cells(folder: Path, name: str) -> Iterator[dict[str, str]]:
    """The text of the cells of a CSV file, row by row."""
    with (folder / "csv" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)
