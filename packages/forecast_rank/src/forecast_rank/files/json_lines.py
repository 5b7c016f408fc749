"""JSON Lines files, read at once by polars, else with numbers as text, and at last line by line."""

import json
from collections.abc import Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np
import polars as pl

from forecast_rank.files.columns import KNOWN, REQUIRED
from forecast_rank.files.faults import Fault, UnreadableFile
from forecast_rank.files.headings import NOT_NAMED, Headings, NamedHeadings, understand_headings
from forecast_rank.files.input_table import Columns, UnparsedTable
from forecast_rank.files.text_files import LINES_AT_ONCE, REFUSED, line_count, not_utf8, schema_of, text_frame
from forecast_rank.metrics.flat_arrays import Codes


def read_json_lines(path: Path, column_headings: NamedHeadings = NOT_NAMED) -> UnparsedTable:
    """The columns of a JSON Lines file; the first object has the keys of long form. Raises UnreadableFile."""
    first = next(_keys(path), [])
    headings = understand_headings(path, first, complete=False, column_headings=column_headings)
    if headings.forecasters:  # not every line need have a forecast of everybody
        keys = list(dict.fromkeys(chain.from_iterable(_keys(path))))
        return _read_by_line(path, understand_headings(path, keys, column_headings=column_headings))
    column_of = dict(headings.column_of)
    for name in KNOWN:
        if name not in headings.column_of.values():  # a key of later lines
            column_of[column_headings.get(name, name)] = name
    headings = Headings(column_of, {}, headings.percent, headings.ignored)
    for number in (pl.Float64, pl.String):
        try:
            frame = pl.read_ndjson(path, schema=schema_of(headings, number), low_memory=True)
        except REFUSED:
            continue
        table = UnparsedTable(frame, headings, partial(object_lines, path, frame.height))
        if number == pl.Float64:
            table.texts = partial(_texts, path, headings)
        break
    else:
        table = _read_by_line(path, headings)
    rows, missing = table.frame.height, []
    for heading, name in headings.column_of.items():
        if name in REQUIRED and table.frame[heading].null_count() == rows:
            missing.append(name)
    if rows and missing:
        raise UnreadableFile(f"{path}: no line has {', '.join(map(repr, sorted(missing, key=REQUIRED.index)))}")
    return table


def _keys(path: Path) -> Iterator[list[str]]:
    """The keys of each line that is an object."""
    for _, item in _objects(path):
        if isinstance(item, dict):
            yield list(item)


def _objects(path: Path) -> Iterator[tuple[int, object]]:
    """The value of each line that is not blank, with its number; None if it is not JSON. Numbers are left as text."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            for line, text in enumerate(file, start=1):
                if text.strip():
                    try:
                        yield line, json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
                    except (ValueError, RecursionError):
                        yield line, None
    except UnicodeDecodeError as error:
        raise not_utf8(path) from error


def object_lines(path: Path, rows: int) -> Codes:
    """The line of each of `rows` objects."""
    if line_count(path) == rows:
        return np.arange(1, rows + 1)
    with path.open("rb") as file:
        return np.fromiter((line for line, text in enumerate(file, start=1) if text.strip()), np.int64)


def _read_by_line(path: Path, headings: Headings) -> UnparsedTable:
    frames = [text_frame([], headings)]
    begins: list[int] = []
    faults: dict[int, Fault] = {}
    objects = _objects(path)
    while chunk := list(islice(objects, LINES_AT_ONCE)):
        rows = []
        for line, item in chunk:
            if not isinstance(item, dict):
                faults[len(begins)], item = Fault("the line is not a JSON object", fix="write one object to a line"), {}
            rows.append([_text(item.get(heading)) for heading in headings.read])
            begins.append(line)
        frames.append(text_frame(rows, headings))
    return UnparsedTable(pl.concat(frames), headings, lambda: np.array(begins, dtype=np.int64), faults)


def _texts(path: Path, headings: Headings) -> Columns:
    return _read_by_line(path, headings).frame


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
