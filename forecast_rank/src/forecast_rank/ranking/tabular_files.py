"""Forecast rows of CSV, JSON Lines and Parquet files, and of frames.

Polars reads well-formed files at once. A file that it refuses (a word among the numbers, a line with too many fields,
an incomplete JSON object) is read again with numbers as text, and at last line by line, so that one bad row costs
seconds and not the file. Every row keeps its place, and each unreadable cell has a fault.
"""

import csv
import json
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from forecast_rank.metrics.panel import Codes
from forecast_rank.ranking.input_table import (
    FLAGS,
    KNOWN,
    NAMES,
    NUMBERS,
    REQUIRED,
    TIMES,
    InputTable,
    UnparsedTable,
    parse_cells,
)

FORMATS = {"csv": (".csv",), "parquet": (".parquet", ".pq"), "jsonl": (".jsonl", ".ndjson")}
_LINES_AT_ONCE = 65_536
_REFUSED = (pl.exceptions.PolarsError, pl.exceptions.PanicException)  # it panics over some broken Parquet files
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstandard", b"PK\x03\x04": "zip"}


class UnreadableFile(ValueError):
    """The file as a whole cannot be used; the message says why."""


def read_table(source: Any, format: str | None = None) -> InputTable:
    """The known columns of a file, by its format or its suffix, or of a polars or pandas frame.

    Raises UnreadableFile.
    """
    if not isinstance(source, Path | str):
        return parse_cells(_typed(_polars_frame(source), "the frame"))
    path = Path(source)
    format = format or _format_of(path)
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise UnreadableFile(f"{path}: {error.strerror or error}") from error
    for magic, kind in _COMPRESSED.items():
        if start.startswith(magic):
            raise UnreadableFile(f"{path} is compressed ({kind}): unpack it first")
    if not start:
        raise UnreadableFile(f"{path} is empty")
    raw = {"csv": _csv, "parquet": _parquet, "jsonl": _jsonl}[format](path)
    return parse_cells(raw)


def _format_of(path: Path) -> str:
    for format, suffixes in FORMATS.items():
        if path.suffix.lower() in suffixes:
            return format
    raise UnreadableFile(f"{path}: the suffix {path.suffix!r} names no format; use --format {'|'.join(FORMATS)}")


def _check_columns(path: Path | str, columns: list[str]) -> list[str]:
    """The unknown columns. Raises UnreadableFile if a required one is missing."""
    if missing := [name for name in REQUIRED if name not in columns]:
        shown = ", ".join(repr(name[:40]) for name in columns[:20])
        raise UnreadableFile(f"{path} has no column {', '.join(map(repr, missing))}; it has {shown or 'none'}")
    return [name for name in columns if name not in KNOWN]


# CSV


def _csv(path: Path) -> UnparsedTable:
    header = _csv_header(path)
    ignored = _check_columns(path, header)
    if twice := sorted({name for name in header if name in KNOWN and header.count(name) > 1}):
        raise UnreadableFile(f"{path} has more than one column {', '.join(map(repr, twice))}")
    known = [name for name in header if name in KNOWN]
    for number in (pl.Float64, pl.String):
        kinds = {name: _kind(name, number) for name in known}
        try:
            frame = pl.read_csv(path, columns=known, schema_overrides=kinds, low_memory=True)
        except _REFUSED:
            continue
        blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
        lines = partial(_csv_lines, path, frame.height, ~blank.to_numpy())
        return UnparsedTable(frame.filter(~blank) if blank.any() else frame, lines, ignored)
    return _csv_by_line(path, header, known, ignored)


def _kind(name: str, number: type[pl.DataType]) -> type[pl.DataType]:
    return number if name in NUMBERS else pl.Categorical


def _csv_records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Each record, the header too, with the line where it begins. A blank line is a record without fields."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            line = 1
            for record in reader:
                yield line, record
                line = reader.line_num + 1
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error
    except csv.Error as error:
        raise UnreadableFile(f"{path}, line {reader.line_num}: {error}") from error


def _csv_header(path: Path) -> list[str]:
    return next((record for _, record in _csv_records(path)), [])


def _csv_lines(path: Path, rows: int, counted: NDArray[np.bool_]) -> Codes:
    """The line where each counted one of `rows` records begins; quoted fields may hold line breaks."""
    if _line_count(path) == rows + 1:
        return np.arange(2, rows + 2)[counted]
    first_lines = np.fromiter((line for line, _ in islice(_csv_records(path), 1, None)), np.int64)
    if len(first_lines) != rows:
        raise UnreadableFile(f"{path}: quotes are not balanced, so that the end of a row is unknown")
    return first_lines[counted]


def _line_count(path: Path) -> int:
    count, last = 0, b"\n"
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            count, last = count + block.count(b"\n"), block[-1:]
    return count + (last != b"\n")


def _csv_by_line(path: Path, header: list[str], known: list[str], ignored: list[str]) -> UnparsedTable:
    """Reads a file that Polars refuses; lines with too many fields become faults."""
    at = [header.index(name) for name in known]
    frames = [_texts([], known)]
    begins: list[int] = []
    faults: dict[int, str] = {}
    records = islice(_csv_records(path), 1, None)
    while chunk := list(islice(records, _LINES_AT_ONCE)):
        rows = []
        for line, record in chunk:
            if not any(record):
                continue
            if len(record) > len(header):
                faults[len(begins)] = f"the line has {len(record)} fields, the header {len(header)}"
            record.extend([""] * (len(header) - len(record)))
            rows.append([record[k] or None for k in at])
            begins.append(line)
        frames.append(_texts(rows, known))
    return UnparsedTable(pl.concat(frames), lambda: np.array(begins, dtype=np.int64), ignored, faults)


def _texts(rows: list[list[str | None]], columns: list[str]) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")
    return frame.with_columns(pl.col(name).cast(pl.Categorical) for name in columns if name not in NUMBERS)


def _not_utf8(path: Path) -> UnreadableFile:
    with path.open("rb") as file:
        for line, text in enumerate(file, start=1):
            try:
                text.decode("utf-8")
            except UnicodeDecodeError:
                return UnreadableFile(f"{path}, line {line}: not UTF-8; save the file as UTF-8")
    return UnreadableFile(f"{path} is not UTF-8; save it as UTF-8")


# JSON Lines


def _jsonl(path: Path) -> UnparsedTable:
    first: list[str] = []
    for _, item in _json_objects(path):
        if isinstance(item, dict):
            first = list(item)
            break
    ignored = [name for name in first if name not in KNOWN]
    for number in (pl.Float64, pl.String):
        try:
            frame = pl.read_ndjson(path, schema={name: _kind(name, number) for name in KNOWN}, low_memory=True)
        except _REFUSED:
            continue
        raw = UnparsedTable(frame, partial(_jsonl_lines, path, frame.height), ignored)
        break
    else:
        raw = _jsonl_by_line(path, ignored)
    rows = raw.frame.height
    if rows and (missing := [name for name in REQUIRED if raw.frame[name].null_count() == rows]):
        raise UnreadableFile(f"{path}: no line has {', '.join(map(repr, missing))}")
    return raw


def _json_objects(path: Path) -> Iterator[tuple[int, object]]:
    """The value of each line that is not blank, with its number; None if it is not JSON."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            for line, text in enumerate(file, start=1):
                if text.strip():
                    try:
                        yield line, json.loads(text)
                    except ValueError:
                        yield line, None
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error


def _jsonl_lines(path: Path, rows: int) -> Codes:
    if _line_count(path) == rows:
        return np.arange(1, rows + 1)
    with path.open("rb") as file:
        return np.fromiter((line for line, text in enumerate(file, start=1) if text.strip()), np.int64)


def _jsonl_by_line(path: Path, ignored: list[str]) -> UnparsedTable:
    frames = [_texts([], list(KNOWN))]
    begins: list[int] = []
    faults: dict[int, str] = {}
    objects = _json_objects(path)
    while chunk := list(islice(objects, _LINES_AT_ONCE)):
        rows = []
        for line, item in chunk:
            if not isinstance(item, dict):
                faults[len(begins)], item = "the line is not a JSON object", {}
            rows.append([_text(item.get(name)) for name in KNOWN])
            begins.append(line)
        frames.append(_texts(rows, list(KNOWN)))
    return UnparsedTable(pl.concat(frames), lambda: np.array(begins, dtype=np.int64), ignored, faults)


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


# Parquet and frames


def _parquet(path: Path) -> UnparsedTable:
    try:
        columns = list(pl.read_parquet_schema(path))
        ignored = _check_columns(path, columns)
        frame = pl.read_parquet(path, columns=[name for name in columns if name in KNOWN])
    except (*_REFUSED, OSError) as error:
        raise UnreadableFile(f"{path} is not a readable Parquet file: {str(error).splitlines()[0]}") from error
    raw = _typed(frame, str(path))
    raw.ignored = ignored
    return raw


def _polars_frame(source: Any) -> pl.DataFrame:
    """A polars or pandas frame as a polars frame; a pandas column that holds Python objects is read value by value."""
    if isinstance(source, pl.DataFrame):
        return source
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    if not hasattr(source, "columns") or not hasattr(source, "__getitem__"):
        raise TypeError(f"source: a path, a polars or a pandas frame, not {type(source).__name__}")
    # pl.from_pandas needs pyarrow, which is no dependency of polars or pandas.
    values = {str(name): source[name] for name in source.columns}
    return pl.DataFrame(
        {
            name: pl.Series(name, column.astype(object).where(column.notna(), None).tolist(), strict=False)
            for name, column in values.items()
            if name in KNOWN
        }
        | {name: [None] * len(source) for name in values if name not in KNOWN}
    )


def _typed(frame: pl.DataFrame, label: str) -> UnparsedTable:
    """The known columns of a typed frame, each as the one kind that its cells are read from."""
    ignored = _check_columns(label, frame.columns)
    frame = frame.select(name for name in frame.columns if name in KNOWN)
    try:
        frame = frame.with_columns(_typed_column(name, kind) for name, kind in frame.schema.items())
    except _REFUSED as error:
        raise UnreadableFile(f"{label}: {str(error).splitlines()[0]}") from error
    except TypeError as error:
        raise UnreadableFile(f"{label}: {error}") from error
    return UnparsedTable(frame, partial(np.arange, 1, frame.height + 1), ignored)


def _typed_column(name: str, kind: pl.DataType) -> pl.Expr:
    """The column as the one type that its cells are parsed from. Raises TypeError for a type that cannot hold them."""
    column, text = pl.col(name), kind in (pl.String, pl.Categorical, pl.Enum, pl.Binary)
    if kind == pl.Null:
        return column.cast(pl.Float64 if name in NUMBERS else pl.Categorical)
    if name in NAMES and (text or kind.is_numeric() or kind == pl.Boolean):
        return column.cast(pl.String).cast(pl.Categorical)
    if name in NUMBERS and (kind.is_numeric() or (kind == pl.Boolean and name in FLAGS)):
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
