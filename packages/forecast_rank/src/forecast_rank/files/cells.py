"""Numbers and times parsed from the cells of a column, with a fault for each unreadable one."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import polars as pl
from numpy.typing import NDArray

from forecast_rank.files.columns import FLAGS
from forecast_rank.files.faults import Fault, UnreadableFile
from forecast_rank.metrics.flat_arrays import Floats

_WORDS = {"true": "1", "false": "0", "yes": "1", "no": "0"}
_COMMA = r"^([+-]?\d*),(\d+)$"
_THOUSANDS = r"^[+-]?[1-9]\d{0,2},\d{3}$"
_FIXES = {
    "probability": "write a number in [0, 1] such as 0.62, or a percentage such as 62%",
    "outcome": "write 1 for what happened and 0 for what did not",
    "exclusive": "write 1 if one option excludes the others, else 0",
    "weight": "write a number above 0, with a point for its decimals",
}
TIME_FIX = "write a time such as 2026-03-15T14:30:00Z"

_CLOCK = (
    r"(?:,?[ T]+(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d(?:\.\d+)?))?"
    r"\s*(?P<half>[AP]M)?\s*(?P<zone>Z|UTC|[+-]\d\d:?\d\d)?)?$"
)
_DOTTED = re.compile(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4}|\d{2})" + _CLOCK, re.IGNORECASE)
_SLASHED = re.compile(r"(?P<first>\d{1,2})/(?P<then>\d{1,2})/(?P<year>\d{4}|\d{2})" + _CLOCK, re.IGNORECASE)
_NAMED = re.compile(r"(?P<day>\d{1,2})[ -](?P<name>[A-Z]{3,9})\.?,?[ -](?P<year>\d{4}|\d{2})" + _CLOCK, re.IGNORECASE)
_SECONDS = re.compile(r"-?\d+(\.\d+)?")
_NO_SECONDS = re.compile(r"\d{4}|\d{8}")  # a year, and ISO-8601's basic form of a date
SHORT_YEAR, NEAR = 2, 40
"""Digits of a year without its century, and years from the other times within which the century is certain."""
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_LATEST_SECONDS = 1e11
"""Seconds since 1970 in the year 5138; larger numbers count milliseconds or less."""


@dataclass(slots=True)
class NumberColumn:
    """Numbers of a column, NaN where a cell is empty or at fault.

    Attributes
    ----------
    values : array
    faults : dict of int to Fault
        By the place of the cell.
    percents, commas : int
        Cells with a percent sign, and with a decimal comma.
    """

    values: Floats
    faults: dict[int, Fault] = field(default_factory=dict)
    percents: int = 0
    commas: int = 0


def parse_numbers(cells: pl.Series, name: str, label: str | None = None, *, percent: bool = False) -> NumberColumn:
    """The numbers of the column `name`, which messages call `label`; with `percent` all of them are hundredths."""
    if cells.dtype != pl.String:
        values = _own_numbers(cells)
        return NumberColumn(values / 100 if percent else values)
    text = cells.str.strip_chars()
    if name in FLAGS:
        lower = text.str.to_lowercase()
        text = lower.replace(_WORDS)
    signed = text.str.ends_with("%").fill_null(value=False)
    text = text.str.strip_suffix("%").str.strip_chars()
    comma = text.str.contains(_COMMA).fill_null(value=False)
    if name == "weight":  # where 1,500 may be a thousand and a half
        comma &= ~text.str.contains(_THOUSANDS).fill_null(value=False)
    if comma.any():
        text = pl.select(pl.when(comma).then(text.str.replace(",", ".", literal=True)).otherwise(text)).to_series()
    numbers = text.cast(pl.Float64, strict=False)
    column = NumberColumn(numbers.to_numpy(writable=True), percents=int(signed.sum()), commas=int(comma.sum()))
    column.values[signed.to_numpy() | percent] /= 100
    for place in (numbers.is_null() & text.is_not_null() & (text != "")).arg_true():
        column.faults[place] = Fault("is not a number", label or name, repr(cells[place].strip()), number_fix(name))
    return column


def _own_numbers(cells: pl.Series) -> Floats:
    """A copy of the numbers in memory of NumPy, which gives back what is freed; polars keeps it."""
    values, start = np.empty(len(cells)), 0
    for part in cells.get_chunks():
        values[start : start + len(part)] = part.to_numpy()
        start += len(part)
    return values


def number_fix(name: str) -> str:
    """How to write the cells of a column of numbers."""
    return _FIXES.get(name, "write a number with a point for its decimals, or leave the cell empty")


@dataclass(slots=True)
class TimeColumn:
    """Times of a column in seconds since 1970, NaN where a cell is empty or at fault.

    Attributes
    ----------
    values : array
    faults : dict of int to Fault
        By the place of the cell.
    forms : list of str
        The forms found other than ISO-8601.
    """

    values: Floats
    faults: dict[int, Fault] = field(default_factory=dict)
    forms: list[str] = field(default_factory=list)


def has_short_years(cells: pl.Series) -> bool:
    """Whether a column of texts has dates with years of two digits."""
    return cells.dtype != pl.Float64 and any(map(_short_year, _distinct_texts(cells)[1]))


def _short_year(text: str | None) -> bool:
    date = text and (_DOTTED.match(text) or _SLASHED.match(text) or _NAMED.match(text))
    return bool(date) and len(date["year"]) == SHORT_YEAR  # type: ignore[index]


def _distinct_texts(cells: pl.Series) -> tuple[pl.Series, pl.Series]:
    """The distinct cells, and their texts without outer spaces."""
    kinds = cells.unique()
    return kinds, kinds.cast(pl.String).str.strip_chars()


def parse_times(cells: pl.Series, name: str, beside: Floats | None = None) -> TimeColumn:
    """The times of the column `name`, UTC where they name no zone.

    A year of two digits is in the century that brings it within NEAR years of all times `beside` it, in seconds.

    Raises UnreadableFile if days and months cannot be told apart, or the century of a year is not certain.
    """
    if cells.dtype == pl.Float64:
        column = TimeColumn(_own_numbers(cells))
        for place in np.flatnonzero(np.abs(column.values) >= _LATEST_SECONDS).tolist():
            column.faults[place] = _too_large(name, f"{column.values[place]:.0f}")
        return column
    kinds, texts = _distinct_texts(cells)
    at = texts.str.to_datetime("%+", time_unit="us", time_zone="UTC", strict=False)
    seconds = (at.dt.epoch("us") / 1e6).to_numpy(writable=True)
    column, bad = TimeColumn(seconds), dict[str, Fault]()
    text_by_row = {k: texts[k] for k in (at.is_null() & (texts != "")).arg_true()}
    month_first = _month_first(name, text_by_row.values())
    years = _years(beside)
    for k, text in text_by_row.items():
        full_text = _with_century(name, text, years) if _short_year(text) else text
        try:
            form, seconds[k] = _seconds(full_text, month_first=month_first)
        except (ValueError, OverflowError):
            bad[kinds[k]] = Fault("is not a time", name, repr(text), TIME_FIX)
            continue
        if abs(seconds[k]) >= _LATEST_SECONDS:
            bad[kinds[k]] = _too_large(name, text)
        elif form and form not in column.forms:
            column.forms.append(form)
    if bad:
        for place in cells.cast(pl.String).is_in(list(bad)).arg_true():
            column.faults[place] = bad[cells[place]]
    column.values = by_category(cells, kinds, seconds, np.nan)
    return column


def parse_columns_of_times(cells: Mapping[str, pl.Series]) -> dict[str, TimeColumn]:
    """The times of columns by name; those with years of two digits come last, for the others show their century.

    Raises UnreadableFile.
    """
    short = {name for name, column in cells.items() if has_short_years(column)}
    times = {name: parse_times(column, name) for name, column in cells.items() if name not in short}
    beside = [column.values for column in times.values()]
    for name in cells:
        if name in short:
            times[name] = parse_times(cells[name], name, np.concatenate(beside) if beside else None)
    return times


def by_category(cells: pl.Series, kinds: pl.Series, values: NDArray, missing: float) -> NDArray:
    """The value of each cell's category, `missing` where the cell is empty or its category is none of `kinds`."""
    of_code = np.full(int(cells.to_physical().max() or 0) + 1, missing, values.dtype)  # type: ignore[arg-type]
    is_known = kinds.is_not_null()
    of_code[kinds.filter(is_known).to_physical().to_numpy()] = values[is_known.to_numpy()]
    result, start = np.empty(len(cells), values.dtype), 0
    for part in cells.get_chunks():
        part_values = result[start : start + len(part)]
        part_values[:] = of_code[part.to_physical().fill_null(0).to_numpy()]
        if part.null_count():
            part_values[part.is_null().to_numpy()] = missing
        start += len(part)
    return result


def _too_large(name: str, cell: str) -> Fault:
    return Fault("is too large for seconds since 1970", name, cell, "divide milliseconds by 1000")


def _month_first(name: str, texts: Iterable[str]) -> bool:
    """Whether the dates with slashes begin with the month. Raises UnreadableFile if no day above 12 decides."""
    dates = [(int(date["first"]), int(date["then"]), text) for text in texts if (date := _SLASHED.match(text))]
    day_first = next((text for first, _, text in dates if first > 12), None)
    month_first = next((text for _, second, text in dates if second > 12), None)
    if day_first and month_first:
        raise UnreadableFile(
            f"{name}: {month_first!r} begins with the month and {day_first!r} with the day; write them as 2026-03-15"
        )
    if not day_first and not month_first:
        for first, second, text in dates:
            if first != second:
                raise UnreadableFile(
                    f"{name}: {text!r} may be the day {first} of month {second} or the reverse, and no date in the "
                    "column has a day above 12 that decides; write dates as 2026-03-15"
                )
    return not day_first


def _years(times: Floats | None) -> list[int]:
    """The first and the last year of times in seconds; none without any."""
    times_in_range = np.zeros(0) if times is None else times[np.abs(times) < _LATEST_SECONDS]
    if not len(times_in_range):
        return []
    return [datetime.fromtimestamp(at, UTC).year for at in (times_in_range.min(), times_in_range.max())]


def _with_century(name: str, text: str, years: list[int]) -> str:
    """The date with a year of four digits. Raises UnreadableFile if the century is not certain."""
    date = _DOTTED.match(text) or _SLASHED.match(text) or _NAMED.match(text)
    start, end = date.span("year")  # type: ignore[union-attr]
    near = [
        year for year in range(int(text[start:end]), 10_000, 100)
        if years and max(abs(year - near_year) for near_year in years) <= NEAR
    ]  # fmt: skip
    if len(near) != 1:
        raise UnreadableFile(
            f"{name}: {text!r} has a year of two digits, and no other column of times shows its century; write years "
            "with four digits, as 2026-03-15"
        )
    return f"{text[:start]}{near[0]:04}{text[end:]}"


def _seconds(text: str, *, month_first: bool) -> tuple[str, float]:
    """The form of a time, "" for ISO-8601, and its seconds since 1970. Raises ValueError."""
    if _SECONDS.fullmatch(text) and not _NO_SECONDS.fullmatch(text):
        return "seconds since 1970", float(text)
    if date := _DOTTED.match(text):
        return "D.M.YYYY", _timestamp(date, date["month"], date["day"])
    if date := _SLASHED.match(text):
        parts = (date["first"], date["then"]) if month_first else (date["then"], date["first"])
        return "M/D/YYYY" if month_first else "D/M/YYYY", _timestamp(date, *parts)
    if date := _NAMED.match(text):
        name = date["name"].lower()
        month = next((k for k, month_name in enumerate(_MONTHS, start=1) if name in (month_name, month_name[:3])), 0)
        return "D Mon YYYY", _timestamp(date, month, date["day"])
    at = datetime.fromisoformat(text)
    return "", (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _timestamp(date: re.Match[str], month: str | int, day: str) -> float:
    hour = int(date["hour"] or 0)
    if date["half"]:
        hour = hour % 12 + 12 * (date["half"].upper() == "PM")
    zone = date["zone"] or "Z"
    clock = f"{hour:02}:{date['minute'] or '00'}:{date['second'] or '00'}{'Z' if zone.upper() == 'UTC' else zone}"
    return datetime.fromisoformat(f"{date['year']}-{int(month):02}-{int(day):02}T{clock}").timestamp()
