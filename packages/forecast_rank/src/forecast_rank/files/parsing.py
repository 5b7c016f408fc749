"""Cells of a table in long or wide form parsed into the columns of an InputTable."""

from collections.abc import Callable
from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from forecast_rank.files.cells import NumberColumn, parse_columns_of_times, parse_numbers
from forecast_rank.files.columns import BINARY, NAMES, NUMBERS, TIMES
from forecast_rank.files.faults import Fault, UnreadableFile
from forecast_rank.files.input_table import InputTable, UnparsedTable
from forecast_rank.files.limits import check_row_count
from forecast_rank.metrics.flat_arrays import Codes, Floats


def parse_cells(raw: UnparsedTable) -> InputTable:
    """The names, numbers and times of a table, and a fault for each row with an unreadable cell.

    Raises UnreadableFile.
    """
    height, headings = raw.frame.height, raw.headings
    check_row_count(height * max(1, len(headings.forecasters)))
    heading_of: dict[str, str] = {}
    for heading, name in headings.column_of.items():
        if heading in raw.frame.columns:
            heading_of[name] = heading
    table = InputTable({}, {}, {}, dict(raw.faults), raw.lines, list(headings.ignored), list(raw.notes))
    table.understood = dict(raw.understood)
    parsed: dict[str, NumberColumn] = {}
    for name in NUMBERS:
        table.numbers[name] = np.broadcast_to(np.nan, height)
        if name in heading_of:
            heading = heading_of[name]
            parsed[name] = parse_numbers(raw.frame[heading], name, percent=heading in headings.percent)
            table.numbers[name] = parsed[name].values
            _add_faults(table.faults, parsed[name].faults)
    for name in TIMES:
        table.times[name] = np.broadcast_to(np.nan, height)
    _parse_times(table, raw, heading_of)
    for name in NAMES:
        present = heading_of.get(name)
        table.names[name] = raw.frame[present] if present else _categories(None, height)
    table.written = _cells_as_written(raw, heading_of)
    table.option_order = raw.option_order
    if headings.forecasters:
        table = _long_form(table, raw, parsed)
    if table.names["option"].null_count() == len(table):
        table.names["option"] = _categories(BINARY, len(table))
    table.understood |= _description(raw, table, parsed)
    for name in _empty_columns(table):
        if name in heading_of:
            table.notes.append(f"Warning: {name} is empty in all rows")
    return table


def _parse_times(table: InputTable, raw: UnparsedTable, heading_of: dict[str, str]) -> None:
    """Parses the columns of times. Raises UnreadableFile."""
    columns = {name: raw.frame[heading_of[name]] for name in TIMES if name in heading_of}
    for name, times in parse_columns_of_times(columns).items():
        table.times[name] = times.values
        _add_faults(table.faults, times.faults)
        if times.forms:
            table.notes.append(f"{name} is written as {' and '.join(times.forms)}")


def _add_faults(faults: dict[int, Fault], more: dict[int, Fault]) -> None:
    for place, fault in more.items():
        faults.setdefault(place, fault)


def _categories(value: str | None, height: int) -> pl.Series:
    return pl.Series([value], dtype=pl.Categorical).new_from_index(0, height)


def _cells_as_written(raw: UnparsedTable, heading_of: dict[str, str]) -> Callable[[int, str], tuple[str, str | None]]:
    texts = cache(raw.texts or (lambda: raw.frame))

    def written(place: int, name: str) -> tuple[str, str | None]:
        heading = heading_of.get(name, name)
        return name, _cell_text(texts()[heading], place) if heading in texts().columns else None

    return written


def _cell_text(column: pl.Series, place: int) -> str | None:
    """A cell as text, None if it is empty."""
    text = column.slice(place, 1).cast(pl.String, strict=False).item()
    return (text or "").strip() or None


def _long_form(base: InputTable, raw: UnparsedTable, parsed: dict[str, NumberColumn]) -> InputTable:
    """The table with a row for each cell of a forecaster that is not empty; columns without a number are ignored.

    Raises UnreadableFile if no column holds numbers.
    """
    headings: list[str] = []
    for heading, name in raw.headings.forecasters.items():
        percent = heading in raw.headings.percent
        column = parse_numbers(raw.frame[heading], "probability", name, percent=percent)
        if np.isnan(column.values).all():
            base.ignored.append(heading)
        else:
            headings.append(heading)
            parsed[name] = column
    if not headings and raw.frame.height:
        listed = ", ".join(map(repr, raw.headings.forecasters))
        raise UnreadableFile(f"no column 'forecaster', and no column of {listed} holds probabilities")
    names, rows_of_heading = [], [np.zeros(0, dtype=np.int64)]
    for heading in headings:
        names.append(raw.headings.forecasters[heading])
        rows_of_heading.append(np.flatnonzero(_stated(raw.frame[heading])))
    row = np.concatenate(rows_of_heading)
    forecaster = np.repeat(np.arange(len(names)), list(map(len, rows_of_heading[1:])))
    order = np.argsort(row, kind="stable")
    row, forecaster = row[order], forecaster[order]
    columns = _rows_of(base.numbers, row)
    faults: dict[int, Fault] = {}
    _add_faults(faults, _faults_of(base.faults, row, np.ones(len(row), dtype=bool)))
    for k, name in enumerate(names):
        columns["probability"][forecaster == k] = parsed[name].values[row[forecaster == k]]
        _add_faults(faults, _faults_of(parsed[name].faults, row, forecaster == k))
    texts = cache(raw.texts or (lambda: raw.frame))

    def written(place: int, name: str) -> tuple[str, str | None]:
        if name != "probability":
            return base.written(int(row[place]), name)  # type: ignore[misc]
        return names[forecaster[place]], _cell_text(texts()[headings[forecaster[place]]], int(row[place]))

    return InputTable(
        names={name: column.gather(row) for name, column in base.names.items()}
        | {"forecaster": pl.Series(names, dtype=pl.Categorical).gather(forecaster)},
        numbers=columns,
        times=_rows_of(base.times, row),
        faults=faults,
        lines=lambda: base.lines()[row],
        ignored=base.ignored,
        notes=[*base.notes, f"wide form: a column for each of {len(names)} forecasters"],
        understood=base.understood,
        written=written,
        option_order=base.option_order,
    )


def _rows_of(columns: dict[str, Floats], row: Codes) -> dict[str, Floats]:
    """The values of the columns in these rows."""
    return {name: values[row] for name, values in columns.items()}


def _faults_of(faults: dict[int, Fault], row: Codes, is_concerned: NDArray[np.bool_]) -> dict[int, Fault]:
    """The faults of rows by the places, of those concerned, that the rows have in `row`."""
    places = np.flatnonzero(is_concerned & np.isin(row, list(faults)))
    return {place: faults[int(row[place])] for place in places.tolist()}


def _stated(cells: pl.Series) -> pl.Series:
    if cells.dtype == pl.String:
        return (cells.str.strip_chars() != "").fill_null(value=False)
    return cells.is_not_null()


def _empty_columns(table: InputTable) -> list[str]:
    """The columns without a cell, of a table that has rows."""
    columns = table.numbers | table.times
    empty = [name for name, values in columns.items() if len(values) and np.isnan(values).all()]
    return empty + [name for name, cells in table.names.items() if len(cells) and cells.null_count() == len(cells)]


def _description(raw: UnparsedTable, table: InputTable, parsed: dict[str, NumberColumn]) -> dict[str, str]:
    """How the columns were understood, for people."""
    headings = raw.headings
    columns = []
    for heading, name in headings.column_of.items():
        columns.append(name if heading == name else f"{name} ({heading!r})")
    percents, commas = [], []
    for name, column in parsed.items():
        if column.percents:
            percents.append(f"{name} ({column.percents:,} cells)")
        if column.commas:
            commas.append(f"{name} ({column.commas:,} cells)")
    facts = {
        "form": ["wide, a column for each forecaster" if headings.forecasters else "long, a row for each option"],
        "columns": columns,
        "forecasters": list(filter(parsed.__contains__, headings.forecasters.values())),
        "hundredths by heading": sorted(headings.percent),
        "percent signs": percents,
        "decimal commas": commas,
        "ignored columns": table.ignored,
    }
    always = ("form", "columns", "forecasters") if headings.forecasters else ("form", "columns")
    return {name: ", ".join(parts) for name, parts in facts.items() if parts or name in always}
