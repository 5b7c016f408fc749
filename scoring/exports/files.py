"""Tables as files, written and read a piece at a time: CSV, and Parquet by way of polars."""

import csv
import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import polars as pl

from scoring.exports.cells import meant, readers, written
from scoring.exports.dictionary import Table

CSV, PARQUET = "csv", "parquet"
FORMATS = (CSV, PARQUET)
GROUP = 5_000
"""Rows of a Parquet row group that are held before they are written; fewer where a table's rows are large."""
BLOCK = 1 << 20
TYPES = {"integer": pl.Int64, "number": pl.Float64, "boolean": pl.Boolean}
csv.field_size_limit(2**31 - 1)


class TableWriter(Protocol):
    """A file that takes rows of stored values and is whole once it is left."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def write(self, rows: Sequence[tuple[Any, ...]]) -> None: ...


class CsvWriter:
    """Comma-separated, UTF-8, a header, lines ended by CR LF (RFC 4180)."""

    def __init__(self, path: Path, table: Table) -> None:
        self.kinds = [column.kind for column in table.columns]
        self.file = path.open("w", newline="", encoding="utf-8")
        self.lines = csv.writer(self.file)
        self.lines.writerow(table.names)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def write(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self.lines.writerows([written(v, kind) for v, kind in zip(row, self.kinds, strict=True)] for row in rows)


class ParquetWriter:
    """Parquet: row groups are files of their own until the table ends, then they are joined as a stream."""

    def __init__(self, path: Path, table: Table) -> None:
        self.path, self.parts, self.count = path, path.with_suffix(".parts"), 0
        self.schema = _schema(table)
        self.held: list[tuple[Any, ...]] = []
        self.most = min(GROUP, table.chunk * 10)
        self.parts.mkdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._close()
        shutil.rmtree(self.parts)

    def write(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self.held += rows
        if len(self.held) >= self.most:
            self._flush()

    def _flush(self) -> None:
        frame = pl.DataFrame(self.held, schema=self.schema, orient="row")
        frame.write_parquet(self.parts / f"{self.count:06d}.parquet")
        self.held, self.count = [], self.count + 1

    def _close(self) -> None:
        if self.held or not self.count:
            self._flush()
        if self.count == 1:
            (self.parts / "000000.parquet").replace(self.path)
        else:
            pl.scan_parquet(self.parts / "*.parquet").sink_parquet(self.path, row_group_size=self.most)


WRITERS: dict[str, Callable[[Path, Table], TableWriter]] = {CSV: CsvWriter, PARQUET: ParquetWriter}


def read_table(path: Path, table: Table) -> Iterator[dict[str, Any]]:
    """The rows of a table's file by column name. Raises ValueError for a file that does not hold this table."""
    rows, names = (_csv_rows if path.suffix == ".csv" else _parquet_rows), table.names
    for row in rows(path, table):
        yield dict(zip(names, row, strict=True))


def _csv_rows(path: Path, table: Table) -> Iterable[Sequence[Any]]:
    columns = readers(table.columns)
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.reader(file, strict=True)
        if tuple(next(lines, ())) != table.names:
            raise ValueError(f"{path.name}: its columns are not {', '.join(table.names)}")
        for number, line in enumerate(lines, start=1):
            if len(line) != len(columns):
                raise ValueError(f"{path.name}: row {number} has {len(line)} cells, not {len(columns)}")
            yield [value_of(text) for value_of, text in zip(columns, line, strict=True)]


def _parquet_rows(path: Path, table: Table) -> Iterable[Sequence[Any]]:
    if dict(pl.read_parquet_schema(path)) != _schema(table):
        raise ValueError(f"{path.name}: its columns are not {', '.join(table.names)}")
    step, start = min(GROUP, table.chunk * 10), 0
    frame = pl.scan_parquet(path)
    kinds = [column.kind for column in table.columns]
    while rows := frame.slice(start, step).collect().rows():
        for row in rows:
            yield [meant(value, kind) for value, kind in zip(row, kinds, strict=True)]
        start += step


def _schema(table: Table) -> dict[str, Any]:
    return {column.name: TYPES.get(column.kind, pl.String) for column in table.columns}


def seal_of(archive: Path) -> Path:
    """Where the hash of a zip file is written down."""
    return archive.with_name(f"{archive.name}.sha256")


def file_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
