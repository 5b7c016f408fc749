"""Parts that CSV and JSON Lines share: lines, encodings, and columns of text."""

from pathlib import Path
from typing import Any

import polars as pl

from forecast_rank.files.faults import UnreadableFile
from forecast_rank.files.headings import Headings

LINES_AT_ONCE = 65_536
REFUSED = (pl.exceptions.PolarsError, pl.exceptions.PanicException)  # it panics over some broken Parquet files
_BLOCK = 1 << 22


def schema_of(headings: Headings, number: type[pl.DataType]) -> dict[str, type[pl.DataType]]:
    """The types to read columns as: `number` for numbers, categories for names and times."""
    numbers = headings.numbers
    return {heading: number if heading in numbers else pl.Categorical for heading in headings.read}


def text_frame(rows: list[list[str | None]], headings: Headings) -> pl.DataFrame:
    """Rows of texts, with a cell for each column that is read."""
    schema: dict[str, Any] = dict.fromkeys(headings.read, pl.String)
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.cast({heading: pl.Categorical for heading in headings.read if heading not in headings.numbers})  # type: ignore[arg-type]


def line_count(path: Path) -> int:
    """The lines of a file, with a last one that is not ended."""
    count, last = 0, b"\n"
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            count, last = count + block.count(b"\n"), block[-1:]
    return count + (last != b"\n")


def not_utf8(path: Path) -> UnreadableFile:
    """The error of a file that is not UTF-8, with the first such line."""
    with path.open("rb") as file:
        for line, text in enumerate(file, start=1):
            try:
                text.decode("utf-8")
            except UnicodeDecodeError:
                return UnreadableFile(f"{path}, line {line}: not UTF-8; save the file as UTF-8")
    return UnreadableFile(f"{path} is not UTF-8; save it as UTF-8")
