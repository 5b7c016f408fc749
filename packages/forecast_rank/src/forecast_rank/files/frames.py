"""Frames of polars, pandas and Arrow, and Parquet files: columns that have types."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from forecast_rank.files.columns import FLAGS, NAMES, NUMBERS, TIMES
from forecast_rank.files.faults import UnreadableFile
from forecast_rank.files.headings import NOT_NAMED, Headings, NamedHeadings, understand_headings
from forecast_rank.files.input_table import UnparsedTable
from forecast_rank.files.limits import check_expansion, check_row_count
from forecast_rank.files.text_files import REFUSED

FRAME = "the frame"
BYTES_PER_CELL = 64
"""Memory that a cell takes at least until it is ranked: 12 million rows of five columns peaked at 91 bytes each."""


def read_frame(source: Any, column_headings: NamedHeadings = NOT_NAMED) -> UnparsedTable:
    """The columns of a polars, pandas or Arrow table. Raises UnreadableFile, and TypeError for anything else."""
    frame = polars_frame(source, column_headings=column_headings)
    return _typed_table(frame.lazy(), understand_headings(FRAME, frame.columns, column_headings=column_headings), FRAME)


def read_parquet(path: Path, column_headings: NamedHeadings = NOT_NAMED) -> UnparsedTable:
    """The columns of a Parquet file. Raises UnreadableFile."""
    try:
        headings = understand_headings(path, list(pl.read_parquet_schema(path)), column_headings=column_headings)
        rows = pl.scan_parquet(path).select(pl.len()).collect().item()
        check_row_count(rows)
        check_expansion(path, rows * len(headings.read) * BYTES_PER_CELL)
    except (*REFUSED, OSError) as error:
        raise UnreadableFile(f"{path} is not a readable Parquet file: {str(error).splitlines()[0]}") from error
    try:
        return _typed_table(pl.scan_parquet(path), headings, str(path))
    except OSError as error:
        raise UnreadableFile(f"{path} is not a readable Parquet file: {str(error).splitlines()[0]}") from error


def check_columns(frame: pl.DataFrame, names: Iterable[str], label: str = FRAME) -> None:
    """Raises UnreadableFile if the frame lacks one of the columns."""
    if missing := [name for name in names if name not in frame.columns]:
        raise UnreadableFile(
            f"{label} has no column {', '.join(map(repr, missing))}; it has {', '.join(frame.columns)}"
        )


def polars_frame(
    source: Any, *, every_column: bool = False, column_headings: NamedHeadings = NOT_NAMED
) -> pl.DataFrame:
    """A polars frame of a table; a pandas column that holds Python objects is read value by value.

    Of a pandas frame the columns that `understand_headings` ignores are left empty, but with `every_column`.
    """
    if isinstance(source, pl.DataFrame):
        return source
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    if hasattr(source, "__arrow_c_stream__") and not type(source).__module__.startswith("pandas"):
        return pl.DataFrame(source)
    if not hasattr(source, "columns") or not hasattr(source, "__getitem__"):
        raise TypeError(f"source: a path, a polars, pandas or Arrow table, not {type(source).__name__}")
    # pl.from_pandas needs pyarrow, which is no dependency of polars or pandas.
    names = list(map(str, source.columns))
    if twice := sorted(name for name, count in Counter(names).items() if count > 1):
        raise UnreadableFile(f"{FRAME} has more than one column {', '.join(map(repr, twice))}")
    read = set(names if every_column else understand_headings(FRAME, names, column_headings=column_headings).read)
    columns: dict[str, pl.Series | list[None]] = {}
    for label, name in zip(source.columns, names, strict=True):
        columns[name] = _pandas_column(name, source[label]) if name in read else [None] * len(source)
    return pl.DataFrame(columns)


def _pandas_column(name: str, column: Any) -> pl.Series:
    """The values of a pandas column; an ordered categorical becomes an Enum, which keeps its order."""
    cells = column.astype(object).where(column.notna(), None).tolist()
    if not getattr(column.dtype, "ordered", False):
        return pl.Series(name, cells, strict=False)
    texts = [None if cell is None else str(cell) for cell in cells]
    return pl.Series(name, texts, dtype=pl.Enum(list(map(str, column.dtype.categories))))


def _typed_table(frame: pl.LazyFrame, headings: Headings, label: str) -> UnparsedTable:
    """The columns that are read of a typed frame, each as the one kind that its cells are parsed from.

    Each column is read when it is asked for, and names are turned into codes part by part, so that the texts and the
    numbers of a file are never in memory together.
    """
    stored = frame.select(headings.read)
    try:
        schema = stored.collect_schema()
        columns, option = [], None
        for heading, name in headings.column_of.items():
            columns.append(typed_column(heading, name, schema[heading]))
            if name == "option":
                option = schema[heading]
        for heading in headings.forecasters:
            columns.append(_forecaster_column(heading, schema[heading]))
        height = frame.select(pl.len()).collect().item()
    except REFUSED as error:
        raise UnreadableFile(f"{label}: {str(error).splitlines()[0]}") from error
    except TypeError as error:
        raise UnreadableFile(f"{label}: {error}") from error
    typed = StoredColumns(stored.with_columns(columns), headings.read, height, label)
    table = UnparsedTable(typed, headings, partial(np.arange, 1, height + 1), texts=stored.collect)
    if isinstance(option, pl.Enum):
        table.option_order = option.categories.to_list()
    return table


@dataclass(frozen=True, slots=True)
class StoredColumns:
    """Columns of a file or frame that are read one at a time. Raises UnreadableFile for one that cannot be read."""

    frame: pl.LazyFrame
    columns: list[str]
    height: int
    label: str

    def __getitem__(self, heading: str) -> pl.Series:
        try:
            return self.frame.select(heading).collect(engine="streaming").to_series()
        except REFUSED as error:
            raise UnreadableFile(f"{self.label}: {str(error).splitlines()[0]}") from error


def typed_column(heading: str, name: str, kind: pl.DataType) -> pl.Expr:
    """The column as the one type that its cells are parsed from. Raises TypeError for a type that cannot hold them."""
    column, text = pl.col(heading), kind in (pl.String, pl.Categorical, pl.Enum, pl.Binary)
    if kind == pl.Null:
        return column.cast(pl.Float64 if name in NUMBERS else pl.Categorical)
    if name in NAMES and (text or kind.is_numeric() or kind == pl.Boolean):
        return column.cast(pl.String).cast(pl.Categorical)
    if name in (*NUMBERS, *TIMES) and (kind.is_numeric() or (kind == pl.Boolean and name in FLAGS)):
        return column.cast(pl.Float64)
    if name in NUMBERS and text:
        return column.cast(pl.String)
    if name in TIMES and kind.is_temporal() and kind not in (pl.Time, pl.Duration):
        zoned = isinstance(kind, pl.Datetime) and kind.time_zone is not None
        at = column.cast(pl.Datetime("us", kind.time_zone if zoned else None))  # type: ignore[attr-defined]
        return at.dt.epoch("us") / 1e6
    if name in TIMES and text:
        return column.cast(pl.String).cast(pl.Categorical)
    expected = "names" if name in NAMES else "numbers" if name in NUMBERS else "times"
    raise TypeError(f"column {name!r} holds {kind}, not {expected}")


def _forecaster_column(heading: str, kind: pl.DataType) -> pl.Expr:
    """The column of a forecaster in wide form; a type that holds no numbers makes an empty column."""
    if kind.is_numeric():
        return pl.col(heading).cast(pl.Float64)
    return pl.col(heading).cast(pl.String) if kind == pl.String else pl.lit(None, pl.String).alias(heading)
