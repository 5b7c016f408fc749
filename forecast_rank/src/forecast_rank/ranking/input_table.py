"""Rows of forecasts as columns of names, numbers and times, parsed from the cells of a file or a frame."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import polars as pl

from forecast_rank.metrics.panel import Codes, Floats

NAMES = ("forecaster", "question", "option", "event", "category")
NUMBERS = ("probability", "outcome", "odds", "no_odds", "weight", "exclusive")
TIMES = ("made_at", "closed_at")
FLAGS = ("outcome", "exclusive")
REQUIRED = ("forecaster", "question", "probability", "outcome")
BINARY = "YES"
"""The option of each row where a file names none: one row for each question."""

KNOWN = NAMES + NUMBERS + TIMES


@dataclass(slots=True)
class InputTable:
    """The rows of a file. A column that the file lacks is empty in all rows.

    Attributes
    ----------
    names : dict of str to polars.Series
        Categorical columns of NAMES.
    numbers, times : dict of str to array
        Columns of NUMBERS and of TIMES (seconds since 1970); NaN is empty.
    faults : dict of int to str
        Reason why a row cannot be read, by its place.
    lines : callable
        Computes the line in the file (the row, in Parquet) of each place; called only if rows must be named.
    ignored : list of str
        Unknown columns.
    notes : list of str
        Facts about the file that a reader should know.
    """

    names: dict[str, pl.Series]
    numbers: dict[str, Floats]
    times: dict[str, Floats]
    faults: dict[int, str]
    lines: Callable[[], Codes]
    ignored: list[str]
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.numbers["probability"])


@dataclass(slots=True)
class UnparsedTable:
    """A file's columns before their cells are parsed."""

    frame: pl.DataFrame
    lines: Callable[[], Codes]
    ignored: list[str]
    faults: dict[int, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def parse_cells(raw: UnparsedTable) -> InputTable:
    """The names, numbers and times of a table, and a fault for each row with an unreadable cell."""
    frame, faults = raw.frame, raw.faults
    numbers: dict[str, Floats] = {}
    times: dict[str, Floats] = {}
    for name in NUMBERS:
        numbers[name] = _numbers(frame, name, faults)
    for name in TIMES:
        times[name] = _times(frame, name, faults)
    names = {
        name: frame[name] if name in frame.columns else pl.repeat(None, frame.height, dtype=pl.Categorical, eager=True)
        for name in NAMES
    }
    if names["option"].null_count() == frame.height:
        names["option"] = pl.repeat(BINARY, frame.height, eager=True).cast(pl.Categorical)
    return InputTable(names, numbers, times, faults, raw.lines, raw.ignored, raw.notes)


def _numbers(frame: pl.DataFrame, name: str, faults: dict[int, str]) -> Floats:
    if name not in frame.columns:
        return np.full(frame.height, np.nan)
    cells = frame[name]
    if cells.dtype == pl.String:
        text = cells.str.strip_chars()
        if name in FLAGS:
            text = text.str.to_lowercase().replace({"true": "1", "false": "0"})
        cells = text.cast(pl.Float64, strict=False)
        for place in (cells.is_null() & text.is_not_null() & (text != "")).arg_true():
            faults.setdefault(place, f"{name} {text[place]!r} is not a number")
    return cells.to_numpy()


def _times(frame: pl.DataFrame, name: str, faults: dict[int, str]) -> Floats:
    """Seconds since 1970 of ISO-8601 texts, UTC where they name no zone."""
    if name not in frame.columns:
        return np.full(frame.height, np.nan)
    cells = frame[name]
    if cells.dtype == pl.Float64:
        return cells.to_numpy()
    kinds = cells.unique()
    texts = kinds.cast(pl.String).str.strip_chars()
    at = texts.str.to_datetime("%+", time_unit="us", time_zone="UTC", strict=False)
    seconds = (at.dt.epoch("us") / 1e6).to_numpy().copy()
    unread = []
    for k in (at.is_null() & (texts != "")).arg_true():
        try:
            seconds[k] = _seconds(texts[k])
        except (ValueError, OverflowError):
            unread.append(kinds[k])
    if unread:
        for place in cells.cast(pl.String).is_in(unread).arg_true():
            faults.setdefault(place, f"{name} {cells[place]!r} is not an ISO-8601 time")
    codes, empty = cells.to_physical(), cells.is_null().to_numpy()
    of_code = np.full(int(codes.max() or 0) + 1, np.nan)  # type: ignore[arg-type]
    of_code[kinds.to_physical().fill_null(0).to_numpy()] = seconds
    return np.where(empty, np.nan, of_code[codes.fill_null(0).to_numpy()])


def _seconds(text: str) -> float:
    at = datetime.fromisoformat(text)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
