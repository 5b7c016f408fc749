"""Table files in CSV and Parquet, written and read in batches."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import polars as pl
from forecast_rank.files.archives import MAX_CSV_CELL
from forecast_rank.files.parquet_parts import WriteRows, parquet_writer

from scoring.exports.dictionary import CSV, PARQUET, ArchiveColumn, ArchiveTable, decimal_places
from scoring.exports.encoding import CSV_PARSERS, csv_text, decode

ROW_GROUP_SIZE = 5_000
"""Largest Parquet row group, which is held in memory; smaller where a table's rows are large."""
POLARS_TYPES: dict[str, Any] = {
    "integer": pl.Int64, "number": pl.Float64, "boolean": pl.Boolean, "time": pl.Datetime("us", "UTC"),
}  # fmt: skip
MAX_DIGITS = 38
"""Of Parquet's decimals of 128 bits."""
csv.field_size_limit(MAX_CSV_CELL)


@contextmanager
def _csv_writer(path: Path, table: ArchiveTable) -> Iterator[WriteRows]:
    """CSV by RFC 4180: UTF-8, a header, lines that end with CR LF."""
    kinds = [column.kind for column in table.columns]
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(table.names)
        yield lambda rows: lines.writerows(
            [csv_text(value, kind) for value, kind in zip(row, kinds, strict=True)] for row in rows
        )


def _parquet_writer(path: Path, table: ArchiveTable) -> AbstractContextManager[WriteRows]:
    return parquet_writer(path, _schema(table), _row_group_size(table))


WRITERS = {CSV: _csv_writer, PARQUET: _parquet_writer}
"""By format, the context of a new table file: a function that writes rows of encoded values."""


def read_table(path: Path, table: ArchiveTable) -> Iterator[dict[str, Any]]:
    """The decoded rows of a table's file by column name. Raises ValueError for a file that does not hold this table."""
    rows, names = (_csv_rows if path.suffix == ".csv" else _parquet_rows), table.names
    for row in rows(path, table):
        yield dict(zip(names, row, strict=True))


def _csv_rows(path: Path, table: ArchiveTable) -> Iterable[Sequence[Any]]:
    parsers = [CSV_PARSERS[column.kind] for column in table.columns]
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.reader(file, strict=True)
        if tuple(next(lines, ())) != table.names:
            raise ValueError(f"{path.name}: its columns are not {', '.join(table.names)}")
        for number, line in enumerate(lines, start=1):
            if len(line) != len(parsers):
                raise ValueError(f"{path.name}: row {number} has {len(line)} cells, not {len(parsers)}")
            yield [parse(text) for parse, text in zip(parsers, line, strict=True)]


def _parquet_rows(path: Path, table: ArchiveTable) -> Iterable[Sequence[Any]]:
    if dict(pl.read_parquet_schema(path)) != _schema(table):
        raise ValueError(f"{path.name}: its columns are not {', '.join(table.names)}")
    step, start = _row_group_size(table), 0
    frame = pl.scan_parquet(path)
    kinds = [column.kind for column in table.columns]
    while rows := frame.slice(start, step).collect().rows():
        for row in rows:
            yield [decode(value, kind) for value, kind in zip(row, kinds, strict=True)]
        start += step


def _schema(table: ArchiveTable) -> dict[str, Any]:
    return {column.name: _parquet_type(table, column) for column in table.columns}


def _parquet_type(table: ArchiveTable, column: ArchiveColumn) -> Any:
    if column.kind == "decimal":
        return pl.Decimal(MAX_DIGITS, decimal_places(table, column))
    return pl.Categorical() if column.is_category else POLARS_TYPES.get(column.kind, pl.String)


def _row_group_size(table: ArchiveTable) -> int:
    return min(ROW_GROUP_SIZE, table.batch_size * 10)
