"""Long-form rows made by readers, the table that they are checked as, and parsers of single fields."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from forecast_rank.files.columns import NAMES, NUMBERS, TIMES
from forecast_rank.files.input_table import InputTable

YES = "YES"
"""The one option of a two-way question given by the probability of its YES."""
SUM_TOLERANCE = 1e-6
SCHEMA: dict[str, Any] = dict.fromkeys(NAMES, pl.Categorical) | dict.fromkeys((*NUMBERS, *TIMES), pl.Float64)
_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True, slots=True)
class LongFormRow:
    """The probability of one option, with the line of the file (or the item of a JSON list, from 1).

    A field is None where the file has no value: a row without an outcome is of an open question. Times are seconds
    since 1970.
    """

    line: int
    forecaster: str
    question: str
    option: str
    probability: float | None
    outcome: float | None
    odds: float | None = None
    no_odds: float | None = None
    quote: float | None = None
    event: str | None = None
    category: str | None = None
    made_at: float | None = None
    closed_at: float | None = None
    weight: float = 1.0
    exclusive: float = 1.0


@dataclass(frozen=True, slots=True)
class UnreadableRecord:
    """A line without a usable forecast, and why."""

    line: int
    why: str


@dataclass(frozen=True, slots=True)
class RepeatedRecord:
    """A line that repeats an earlier forecast."""

    line: int


ParsedRecord = LongFormRow | UnreadableRecord | RepeatedRecord


@dataclass(frozen=True, slots=True)
class QuestionDescription:
    """Title, options and outcome of a question; `happened` is None while it is open."""

    question: str
    title: str = ""
    options: tuple[str, ...] = ()
    happened: tuple[str, ...] | None = None
    category: str = ""
    closed_at: float | None = None


@dataclass(frozen=True, slots=True)
class ImportSource:
    """The files of one import, that with the forecasts first, and the function that reads them."""

    files: tuple[Path, ...]
    read: Callable[[], "ParsedFile"]
    fractional_outcomes: bool = False


@dataclass(slots=True)
class ParsedFile:
    """The rows of an import source as a table, its unreadable records, and the questions that it describes.

    `records` counts the forecasts of the file, or its questions if it has no forecasts; `notes` are facts about the
    file that a reader should know.
    """

    table: InputTable
    records: int
    unread: list[UnreadableRecord] = field(default_factory=list)
    questions: list[QuestionDescription] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def collect_rows(
    parsed: Iterable[ParsedRecord], questions: Mapping[str, QuestionDescription] | None = None
) -> ParsedFile:
    """The parsed records as a table of columns. `questions` may be filled while the records are read."""
    row_filter = _RowFilter(parsed)
    frames: list[pl.DataFrame] = []
    lines: list[NDArray[np.int64]] = []
    while chunk := list(islice(row_filter, _ROWS_AT_ONCE)):
        frames.append(pl.DataFrame({name: [getattr(row, name) for row in chunk] for name in SCHEMA}, schema=SCHEMA))
        lines.append(np.array([row.line for row in chunk], dtype=np.int64))
    line = np.concatenate([np.zeros(0, dtype=np.int64), *lines])
    other_lines = [item.line for item in row_filter.unread] + row_filter.repeated
    records = len(np.unique(np.append(line, np.array(other_lines, dtype=np.int64))))
    return ParsedFile(input_table(frames, line), records, row_filter.unread, list((questions or {}).values()))


class _RowFilter:
    """Iterates over the rows among parsed records, and collects the others."""

    def __init__(self, records: Iterable[ParsedRecord]) -> None:
        self.records, self.unread, self.repeated = iter(records), list[UnreadableRecord](), list[int]()

    def __iter__(self) -> Iterator[LongFormRow]:
        for item in self.records:
            if isinstance(item, LongFormRow):
                yield item
            elif isinstance(item, UnreadableRecord):
                self.unread.append(item)
            else:
                self.repeated.append(item.line)


def input_table(frames: Sequence[pl.DataFrame], line: NDArray[np.int64]) -> InputTable:
    """Frames with the columns of SCHEMA as a table that can be checked."""
    frame = pl.concat([pl.DataFrame(schema=SCHEMA), *frames])
    return InputTable(
        names={name: frame[name] for name in NAMES},
        numbers={name: _floats(frame[name]) for name in NUMBERS},
        times={name: _floats(frame[name]) for name in TIMES},
        faults={},
        lines=lambda: line,
        ignored=[],
    )


def _floats(column: pl.Series) -> NDArray[np.float64]:
    return column.fill_null(float("nan")).to_numpy().astype(np.float64)


# Records and cells


class InvalidRecord(ValueError):
    """A record without a usable forecast; the message says why."""


def read_each(read: Callable[[Path], ParsedFile]) -> Callable[[Sequence[Path]], list[ImportSource]]:
    """The function that makes an import source of each file."""
    return lambda files: [ImportSource((file,), partial(read, file)) for file in files]


def parse_records(
    records: Iterable[tuple[int, Any]], parse: Callable[[int, Any], Iterable[ParsedRecord]]
) -> Iterator[ParsedRecord]:
    """The rows that `parse` makes of each record and its line; an unreadable record where it raises InvalidRecord."""
    for line, record in records:
        if isinstance(record, UnreadableRecord):
            yield record
            continue
        try:
            yield from list(parse(line, record))
        except InvalidRecord as error:
            yield UnreadableRecord(line, str(error))


def required_field(record: Any, name: str) -> Any:
    """The value of a field. Raises InvalidRecord if it is missing."""
    if not isinstance(record, dict):
        raise InvalidRecord("the record is not an object")
    value = record.get(name)
    if value is None or value == "":
        raise InvalidRecord(f"{name} is missing")
    return value


def parse_number(value: Any, name: str) -> float:
    """A finite number, also from text. Raises InvalidRecord for anything else, booleans included."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise InvalidRecord(f"{name} {value[:40]!r} is not a number") from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidRecord(f"{name} is null: nothing was stated" if value is None else f"{name} is not a number")
    if not np.isfinite(value):
        raise InvalidRecord(f"{name} is {value}")
    return float(value)


def parse_probability(value: Any, name: str) -> float:
    """A number in [0, 1]. Raises InvalidRecord."""
    p = parse_number(value, name)
    if not 0 <= p <= 1:
        raise InvalidRecord(f"{name} {p:g} is outside [0, 1]")
    return p


def parse_time(value: Any, name: str) -> float | None:
    """Seconds since 1970, from such seconds or ISO-8601 text (UTC without a zone)."""
    if value is None or value == "":
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    try:
        at = datetime.fromisoformat(str(value).strip())
    except ValueError:
        raise InvalidRecord(f"{name} {str(value)[:40]!r} is not an ISO-8601 time") from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def parse_price(value: Any, unit: float = 1.0) -> float | None:
    """A price in (0, 1), or None: thin books and placeholders have 0 or 1."""
    try:
        quote = parse_number(value, "price") / unit
    except InvalidRecord:
        return None
    return quote if 0 < quote < 1 else None


def sums_to_one(vector: Iterable[float]) -> bool:
    """Whether probabilities sum to 1, as those of exclusive and complete options do."""
    return abs(sum(vector) - 1) <= SUM_TOLERANCE


def label(value: Any) -> str | None:
    """Text, or None if it is empty."""
    return None if value is None or str(value).strip() == "" else str(value)
