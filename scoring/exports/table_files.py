"""Table files in CSV and Parquet, written and read in batches."""

import csv
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import polars as pl

from scoring.exports.dictionary import CSV, PARQUET, ArchiveTable
from scoring.exports.encoding import csv_parsers, csv_text, decode

ROW_GROUP_SIZE = 5_000
"""Largest Parquet row group, which is held in memory; smaller where a table's rows are large."""
POLARS_TYPES = {"integer": pl.Int64, "number": pl.Float64, "boolean": pl.Boolean}
csv.field_size_limit(2**31 - 1)


class TableWriter(Protocol):
    """A file that takes rows of encoded values; complete when its context ends."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def write(self, rows: Sequence[tuple[Any, ...]]) -> None: ...


class CsvWriter:
    """CSV by RFC 4180: UTF-8, a header, lines that end with CR LF."""

    def __init__(self, path: Path, table: ArchiveTable) -> None:
        self.kinds = [column.kind for column in table.columns]
        self.file = path.open("w", newline="", encoding="utf-8")
        self.lines = csv.writer(self.file)
        self.lines.writerow(table.names)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def write(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self.lines.writerows(
            [csv_text(value, kind) for value, kind in zip(row, self.kinds, strict=True)] for row in rows
        )


class ParquetWriter:
    """Parquet: each row group is a file of its own until the table ends, then they are joined as a stream."""

    def __init__(self, path: Path, table: ArchiveTable) -> None:
        self.path, self.parts, self.count = path, path.with_suffix(".parts"), 0
        self.schema = _schema(table)
        self.buffer: list[tuple[Any, ...]] = []
        self.row_group_size = _row_group_size(table)
        self.parts.mkdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._close()
        shutil.rmtree(self.parts)

    def write(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self.buffer += rows
        if len(self.buffer) >= self.row_group_size:
            self._flush()

    def _flush(self) -> None:
        frame = pl.DataFrame(self.buffer, schema=self.schema, orient="row")
        frame.write_parquet(self.parts / f"{self.count:06d}.parquet")
        self.buffer, self.count = [], self.count + 1

    def _close(self) -> None:
        if self.buffer or not self.count:
            self._flush()
        if self.count == 1:
            (self.parts / "000000.parquet").replace(self.path)
        else:
            pl.scan_parquet(self.parts / "*.parquet").sink_parquet(self.path, row_group_size=self.row_group_size)


WRITERS: dict[str, Callable[[Path, ArchiveTable], TableWriter]] = {CSV: CsvWriter, PARQUET: ParquetWriter}


def read_table(path: Path, table: ArchiveTable) -> Iterator[dict[str, Any]]:
    """The decoded rows of a table's file by column name. Raises ValueError for a file that does not hold this table."""
    rows, names = (_csv_rows if path.suffix == ".csv" else _parquet_rows), table.names
    for row in rows(path, table):
        yield dict(zip(names, row, strict=True))


def _csv_rows(path: Path, table: ArchiveTable) -> Iterable[Sequence[Any]]:
    parsers = csv_parsers(table.columns)
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
    return {column.name: POLARS_TYPES.get(column.kind, pl.String) for column in table.columns}


def _row_group_size(table: ArchiveTable) -> int:
    return min(ROW_GROUP_SIZE, table.batch_size * 10)
