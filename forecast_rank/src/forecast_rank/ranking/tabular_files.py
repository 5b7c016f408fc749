"""Forecast rows of CSV, JSON Lines and Parquet files, and of frames.

Polars reads well-formed files at once. A file that it refuses (a word among the numbers, a line with too many fields,
an incomplete JSON object) is read again with numbers as text, and at last line by line, so that one bad row costs
seconds and not the file. Every row keeps its place, and each unreadable cell has a fault.
"""

import csv
import gzip
import json
import math
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
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
STANDARD_INPUT = "-"
UNPACKED_LIMIT, UNPACKED_TIMES = 1 << 30, 200
"""Bytes, or times its size, that a compressed file may unpack to: whichever is more."""
_TAB = "\t"
_SEPARATORS = (",", ";", _TAB)
_LINES_AT_ONCE = 65_536
_BLOCK = 1 << 22
_REFUSED = (pl.exceptions.PolarsError, pl.exceptions.PanicException)  # it panics over some broken Parquet files
_GZIP = b"\x1f\x8b"
_COMPRESSED = {_GZIP: "gzip", b"\x28\xb5\x2f\xfd": "zstandard", b"PK\x03\x04": "zip"}


class UnreadableFile(ValueError):
    """The file as a whole cannot be used; the message says why."""


@contextmanager
def plain_file(source: Any) -> Iterator[Any]:
    """The source itself, or the path of a plain copy of standard input (`-`), of a pipe or of a gzip file.

    Raises UnreadableFile.
    """
    if not isinstance(source, Path | str):
        yield source
        return
    path = Path(source)
    with TemporaryDirectory() as folder:
        if str(source) == STANDARD_INPUT:
            path = _copy(sys.stdin.buffer, Path(folder, "standard input"))
            path = path.rename(path.with_suffix(FORMATS[_format_of_content(path)][0]))
        elif path.is_fifo():
            with path.open("rb") as pipe:
                path = _copy(pipe, Path(folder, path.name))
        if _first_bytes(path).startswith(_GZIP):
            path = _unpacked(path, Path(folder, "unpacked"))
        yield path


def _unpacked(path: Path, folder: Path) -> Path:
    folder.mkdir()
    limit = max(UNPACKED_LIMIT, UNPACKED_TIMES * path.stat().st_size)
    try:
        with gzip.open(path) as file:
            return _copy(file, folder / (path.stem if path.suffix.lower() == ".gz" else path.name), limit)
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableFile(f"{path} is not a readable gzip file: {error}") from error


def _copy(file: Any, copy: Path, limit: float = math.inf) -> Path:
    size = 0
    with copy.open("wb") as out:
        while block := file.read(_BLOCK):
            size += len(block)
            if size > limit:
                raise UnreadableFile(f"{copy.name} unpacks to more than {limit / 2**20:,.0f} MiB, which is the limit")
            out.write(block)
    return copy


def _first_bytes(path: Path, count: int = 4) -> bytes:
    """The first bytes of a file; none if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError:
        return b""


def _format_of_content(path: Path) -> str:
    start = _first_bytes(path, 64).lstrip(b"\xef\xbb\xbf \t\r\n")
    return "parquet" if start.startswith(b"PAR1") else "jsonl" if start.startswith(b"{") else "csv"


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


def _known_name(column: str) -> str | None:
    """The known column that a heading names, in whatever case; None for another."""
    name = column.strip().lower()
    return name if name in KNOWN else None


def _known_columns(path: Path | str, columns: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Name by heading of the known columns, and the headings of the others.

    Raises UnreadableFile if a required column is missing or a known one is there twice.
    """
    names = [name for column in columns if (name := _known_name(column))]
    if missing := [name for name in REQUIRED if name not in names]:
        shown = ", ".join(repr(column[:40]) for column in columns[:20])
        raise UnreadableFile(f"{path} has no column {', '.join(map(repr, missing))}; it has {shown or 'none'}")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UnreadableFile(f"{path} has more than one column {', '.join(map(repr, twice))}")
    known = {column: name for column in columns if (name := _known_name(column))}
    return known, [column for column in columns if column not in known]


# CSV


def _csv(path: Path) -> UnparsedTable:
    separator, header = _csv_header(path)
    known, ignored = _known_columns(path, header)
    for number in (pl.Float64, pl.String):
        kinds = {column: _kind(name, number) for column, name in known.items()}
        try:
            frame = pl.read_csv(
                path, columns=list(known), separator=separator, schema_overrides=kinds, low_memory=True
            ).rename(known)
        except _REFUSED:
            continue
        blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
        lines = partial(_csv_lines, path, separator, frame.height, ~blank.to_numpy())
        table = UnparsedTable(frame.filter(~blank) if blank.any() else frame, lines, ignored)
        break
    else:
        table = _csv_by_line(path, separator, header, known, ignored)
    if separator != ",":
        table.notes.append(f"columns are separated by {'tabs' if separator == _TAB else repr(separator)}")
    return table


def _kind(name: str, number: type[pl.DataType]) -> type[pl.DataType]:
    return number if name in NUMBERS else pl.Categorical


def _csv_records(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Each record, the header too, with the line where it begins. A blank line is a record without fields."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, delimiter=separator)
            line = 1
            for record in reader:
                yield line, record
                line = reader.line_num + 1
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error
    except csv.Error as error:
        raise UnreadableFile(f"{path}, line {reader.line_num}: {error}") from error


def _csv_header(path: Path) -> tuple[str, list[str]]:
    """The separator that finds most known columns, and the headings."""
    headers = {sign: next((record for _, record in _csv_records(path, sign)), []) for sign in _SEPARATORS}
    separator = max(_SEPARATORS, key=lambda sign: sum(_known_name(column) is not None for column in headers[sign]))
    return separator, headers[separator]


def _csv_lines(path: Path, separator: str, rows: int, counted: NDArray[np.bool_]) -> Codes:
    """The line where each counted one of `rows` records begins; quoted fields may hold line breaks."""
    if _line_count(path) == rows + 1:
        return np.arange(2, rows + 2)[counted]
    first_lines = np.fromiter((line for line, _ in islice(_csv_records(path, separator), 1, None)), np.int64)
    if len(first_lines) != rows:
        raise UnreadableFile(f"{path}: quotes are not balanced, so that the end of a row is unknown")
    return first_lines[counted]


def _line_count(path: Path) -> int:
    count, last = 0, b"\n"
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            count, last = count + block.count(b"\n"), block[-1:]
    return count + (last != b"\n")


def _csv_by_line(
    path: Path, separator: str, header: list[str], known: dict[str, str], ignored: list[str]
) -> UnparsedTable:
    """Reads a file that Polars refuses; lines with too many fields become faults."""
    at, names = [header.index(column) for column in known], list(known.values())
    frames = [_texts([], names)]
    begins: list[int] = []
    faults: dict[int, str] = {}
    records = islice(_csv_records(path, separator), 1, None)
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
        frames.append(_texts(rows, names))
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
    first: dict[str, object] = next((item for _, item in _json_objects(path) if isinstance(item, dict)), {})
    key_of = {name: name for name in KNOWN} | {name: key for key in first if (name := _known_name(key))}
    ignored = [key for key in first if _known_name(key) is None]
    for number in (pl.Float64, pl.String):
        try:
            schema = {key: _kind(name, number) for name, key in key_of.items()}
            frame = pl.read_ndjson(path, schema=schema, low_memory=True)
        except _REFUSED:
            continue
        frame.columns = list(key_of)
        raw = UnparsedTable(frame, partial(_jsonl_lines, path, frame.height), ignored)
        break
    else:
        raw = _jsonl_by_line(path, key_of, ignored)
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


def _jsonl_by_line(path: Path, key_of: dict[str, str], ignored: list[str]) -> UnparsedTable:
    frames = [_texts([], list(KNOWN))]
    begins: list[int] = []
    faults: dict[int, str] = {}
    objects = _json_objects(path)
    while chunk := list(islice(objects, _LINES_AT_ONCE)):
        rows = []
        for line, item in chunk:
            if not isinstance(item, dict):
                faults[len(begins)], item = "the line is not a JSON object", {}
            rows.append([_text(item.get(key_of[name])) for name in KNOWN])
            begins.append(line)
        frames.append(_texts(rows, list(KNOWN)))
    return UnparsedTable(pl.concat(frames), lambda: np.array(begins, dtype=np.int64), ignored, faults)


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


# Parquet and frames


def _parquet(path: Path) -> UnparsedTable:
    try:
        known, ignored = _known_columns(path, list(pl.read_parquet_schema(path)))
        frame = pl.read_parquet(path, columns=list(known))
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
            if _known_name(name)
        }
        | {name: [None] * len(source) for name in values if not _known_name(name)}
    )


def _typed(frame: pl.DataFrame, label: str) -> UnparsedTable:
    """The known columns of a typed frame, each as the one kind that its cells are read from."""
    known, ignored = _known_columns(label, frame.columns)
    frame = frame.select(list(known)).rename(known)
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
