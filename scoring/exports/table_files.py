"""Table files in CSV and Parquet, written and read in batches."""

import csv
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Self

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


class TableWriter:
    """A new table in every format of an archive, and the digest of its rows: the SHA-256 of its CSV file.

    CSV is by RFC 4180: UTF-8, a header, lines that end with CR LF. The digest is the same without a CSV file.
    """

    def __init__(self, table: ArchiveTable, folder: Path, formats: Sequence[str]) -> None:
        self.table, self.rows = table, 0
        self._hash = hashlib.sha256()
        self._open_files = ExitStack()
        self._csv: IO[str] | None = None
        self._parquet: WriteRows | None = None
        if CSV in formats:
            path = folder / CSV / f"{table.name}.csv"
            self._csv = self._open_files.enter_context(path.open("w", newline="", encoding="utf-8"))
        if PARQUET in formats:
            path = folder / PARQUET / f"{table.name}.parquet"
            self._parquet = self._open_files.enter_context(parquet_writer(path, _schema(table), _row_group_size(table)))
        self._lines = csv.writer(self)
        self._kinds = [column.kind for column in table.columns]
        self._lines.writerow(table.names)

    def write_rows(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Writes rows of encoded values."""
        self.rows += len(rows)
        for row in rows:
            self._lines.writerow(map(csv_text, row, self._kinds))
        if self._parquet is not None:
            self._parquet(rows)

    def write(self, text: str) -> None:
        """A line of CSV; the csv module calls it."""
        self._hash.update(text.encode())
        if self._csv is not None:
            self._csv.write(text)

    def digest(self) -> dict[str, Any]:
        return {"rows": self.rows, "sha256": self._hash.hexdigest()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._open_files.__exit__(*error)


def parquet_digest(path: Path, table: ArchiveTable) -> str:
    """The SHA-256 of the CSV file that a table's Parquet file would have beside it."""
    with TableWriter(table, path.parent, ()) as written:
        for batch in _parquet_batches(path, table):
            written.write_rows(batch)
    return str(written.digest()["sha256"])


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
    kinds = [column.kind for column in table.columns]
    for rows in _parquet_batches(path, table):
        for row in rows:
            yield [decode(value, kind) for value, kind in zip(row, kinds, strict=True)]


def _parquet_batches(path: Path, table: ArchiveTable) -> Iterator[list[tuple[Any, ...]]]:
    step, start = _row_group_size(table), 0
    frame = pl.scan_parquet(path)
    while rows := frame.slice(start, step).collect().rows():
        yield rows
        start += step


def _schema(table: ArchiveTable) -> dict[str, Any]:
    return {column.name: _parquet_type(table, column) for column in table.columns}


def _parquet_type(table: ArchiveTable, column: ArchiveColumn) -> Any:
    if column.kind == "decimal":
        return pl.Decimal(MAX_DIGITS, decimal_places(table, column))
    return pl.Categorical() if column.is_category else POLARS_TYPES.get(column.kind, pl.String)


def _row_group_size(table: ArchiveTable) -> int:
    return min(ROW_GROUP_SIZE, table.batch_size * 10)
