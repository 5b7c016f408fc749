"""CSV files, read at once by polars, else with numbers as text, and at last line by line."""

import csv
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from forecast_rank.files.faults import Fault, UnreadableFile
from forecast_rank.files.headings import NOT_NAMED, Headings, NamedHeadings, known_name, understand_headings
from forecast_rank.files.input_table import UnparsedTable
from forecast_rank.files.text_files import LINES_AT_ONCE, REFUSED, line_count, not_utf8, schema_of, text_frame
from forecast_rank.metrics.flat_arrays import Codes

SEPARATORS = {",": "commas", ";": "';'", "\t": "tabs"}


def read_csv(path: Path, column_headings: NamedHeadings = NOT_NAMED) -> UnparsedTable:
    """The columns of a CSV file with whatever separator finds most headings. Raises UnreadableFile."""
    separator, header = csv_header(path, column_headings)
    headings = understand_headings(path, header, column_headings=column_headings)
    for number in (pl.Float64, pl.String):
        kinds = schema_of(headings, number)
        try:
            frame = pl.read_csv(
                path, columns=headings.read, separator=separator, schema_overrides=kinds, low_memory=True
            )
        except REFUSED:
            continue
        is_blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
        table = UnparsedTable(
            frame.filter(~is_blank) if is_blank.any() else frame,
            headings,
            partial(_lines, path, separator, frame.height, ~is_blank.to_numpy()),
        )
        if number == pl.Float64:
            table.texts = partial(_texts, path, separator, headings, ~is_blank)
        break
    else:
        table = _read_by_line(path, separator, header, headings)
    table.understood["columns are separated by"] = SEPARATORS[separator]
    if separator != ",":
        table.notes.append(f"columns are separated by {SEPARATORS[separator]}")
    return table


def read_csv_texts(path: Path) -> tuple[pl.DataFrame, Codes]:
    """All columns of a CSV file as texts, without blank rows, and the line of each row. Raises UnreadableFile."""
    separator, header = csv_header(path)
    if len(set(header)) < len(header):
        twice = ", ".join(sorted({repr(name) for name in header if header.count(name) > 1}))
        raise UnreadableFile(f"{path} has more than one column {twice}")
    try:
        frame = pl.read_csv(path, separator=separator, infer_schema=False)
    except REFUSED as error:
        raise UnreadableFile(f"{path}: {str(error).splitlines()[0]}") from error
    is_counted = ~frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    return frame.filter(is_counted), _lines(path, separator, frame.height, is_counted.to_numpy())


def csv_header(path: Path, column_headings: NamedHeadings = NOT_NAMED) -> tuple[str, list[str]]:
    """The separator that finds most known columns, and the headings. Raises UnreadableFile."""
    headers = {sign: next((record for _, record in _records(path, sign)), []) for sign in SEPARATORS}
    separator = max(
        SEPARATORS, key=lambda sign: sum(known_name(heading, column_headings) is not None for heading in headers[sign])
    )
    return separator, headers[separator]


def _records(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Each record, the header too, with the line where it begins. A blank line is a record without fields."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, delimiter=separator)
            line = 1
            for record in reader:
                yield line, record
                line = reader.line_num + 1
    except UnicodeDecodeError as error:
        raise not_utf8(path) from error
    except csv.Error as error:
        raise UnreadableFile(f"{path}, line {reader.line_num}: {csv_reason(error)}") from error


def csv_reason(error: csv.Error) -> str:
    """Why the csv module gave up, in words."""
    if "field larger than" not in str(error):
        return str(error)
    return f"a cell is longer than {csv.field_size_limit():,} characters; is a quote never closed?"


def _texts(path: Path, separator: str, headings: Headings, is_counted: pl.Series) -> pl.DataFrame:
    return pl.read_csv(path, columns=headings.read, separator=separator, infer_schema=False).filter(is_counted)


def _lines(path: Path, separator: str, rows: int, is_counted: NDArray[np.bool_]) -> Codes:
    """The line where each counted one of `rows` records begins; quoted fields may hold line breaks."""
    if line_count(path) == rows + 1:
        return np.arange(2, rows + 2)[is_counted]
    first_lines = np.fromiter((line for line, _ in islice(_records(path, separator), 1, None)), np.int64)
    if len(first_lines) != rows:
        raise UnreadableFile(f"{path}: quotes are not balanced, so that the end of a row is unknown")
    return first_lines[is_counted]


def _read_by_line(path: Path, separator: str, header: list[str], headings: Headings) -> UnparsedTable:
    """Reads a file that polars refuses; lines with too many fields become faults."""
    at = [header.index(heading) for heading in headings.read]
    frames = [text_frame([], headings)]
    begins: list[int] = []
    faults: dict[int, Fault] = {}
    records = islice(_records(path, separator), 1, None)
    while chunk := list(islice(records, LINES_AT_ONCE)):
        rows = []
        for line, record in chunk:
            if not any(record):
                continue
            if len(record) > len(header):
                faults[len(begins)] = Fault(
                    f"the line has {len(record)} fields, the header {len(header)}",
                    fix="quote a cell that holds the separator",
                    group="the line has more fields than the header",
                )
            record.extend([""] * (len(header) - len(record)))
            rows.append([record[k] or None for k in at])
            begins.append(line)
        frames.append(text_frame(rows, headings))
    return UnparsedTable(pl.concat(frames), headings, lambda: np.array(begins, dtype=np.int64), faults)
