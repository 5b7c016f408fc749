"""Rows of the long form as an importer makes them, and the table they are checked as."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from scoring.ranking.files import NAMES, NUMBERS, TIMES, Table

YES = "YES"
"""The one option of a two-way question given by the probability of its YES."""
SUM_TOLERANCE = 1e-6
SCHEMA: dict[str, Any] = dict.fromkeys(NAMES, pl.Categorical) | dict.fromkeys((*NUMBERS, *TIMES), pl.Float64)
_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True, slots=True)
class Row:
    """A probability of one option, with the line of the file (the item of a JSON list, from 1) that states it.

    None is what the file does not say: without an outcome the question is open. Times are seconds since 1970.
    """

    line: int
    forecaster: str
    question: str
    option: str
    probability: float | None
    outcome: float | None
    odds: float | None = None
    no_odds: float | None = None
    event: str | None = None
    category: str | None = None
    made_at: float | None = None
    closed_at: float | None = None
    weight: float = 1.0
    exclusive: float = 1.0


@dataclass(frozen=True, slots=True)
class Unread:
    """A line that states no forecast that could be used, and why."""

    line: int
    why: str


@dataclass(frozen=True, slots=True)
class Repeated:
    """A line that says nothing new: the same forecast again."""

    line: int


Said = Row | Unread | Repeated


@dataclass(frozen=True, slots=True)
class Titled:
    """What a file says of a question besides forecasts; `happened` is None while the question is open."""

    question: str
    title: str = ""
    options: tuple[str, ...] = ()
    happened: tuple[str, ...] | None = None
    category: str = ""
    closed_at: float | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """What one import is read from: the file with the forecasts, those that explain it, and how it is read."""

    files: tuple[Path, ...]
    read: Callable[[], "Reading"]
    fractional_outcomes: bool = False


@dataclass(slots=True)
class Reading:
    """The rows of a part as one table, what of it could not be read, and the questions it describes.

    `records` counts what the file holds: forecasts, or questions where there are no forecasts in it.
    """

    table: Table
    records: int
    unread: list[Unread] = field(default_factory=list)
    questions: list[Titled] = field(default_factory=list)


def gathered(said: Iterable[Said], questions: Mapping[str, Titled] | None = None) -> Reading:
    """What was said, as a table of columns; `questions` may be filled while the rows are read."""
    sorted_out = _Sorted(said)
    frames: list[pl.DataFrame] = []
    lines: list[NDArray[np.int64]] = []
    while chunk := list(islice(sorted_out, _ROWS_AT_ONCE)):
        frames.append(pl.DataFrame({name: [getattr(row, name) for row in chunk] for name in SCHEMA}, schema=SCHEMA))
        lines.append(np.array([row.line for row in chunk], dtype=np.int64))
    line = np.concatenate([np.zeros(0, dtype=np.int64), *lines])
    other = [item.line for item in sorted_out.unread] + sorted_out.repeated
    records = len(np.unique(np.append(line, np.array(other, dtype=np.int64))))
    return Reading(table_of(frames, line), records, sorted_out.unread, list((questions or {}).values()))


class _Sorted:
    """The rows of what was said, one after another; the rest is kept aside."""

    def __init__(self, said: Iterable[Said]) -> None:
        self.said, self.unread, self.repeated = iter(said), list[Unread](), list[int]()

    def __iter__(self) -> Iterator[Row]:
        for item in self.said:
            if isinstance(item, Row):
                yield item
            elif isinstance(item, Unread):
                self.unread.append(item)
            else:
                self.repeated.append(item.line)


def table_of(frames: Sequence[pl.DataFrame], line: NDArray[np.int64]) -> Table:
    """Frames with the columns of SCHEMA as a table that can be checked."""
    frame = pl.concat([pl.DataFrame(schema=SCHEMA), *frames])
    return Table(
        names={name: frame[name] for name in NAMES},
        numbers={name: _floats(frame[name]) for name in NUMBERS},
        times={name: _floats(frame[name]) for name in TIMES},
        faults={},
        lines=lambda: line,
        ignored=[],
    )


def _floats(column: pl.Series) -> NDArray[np.float64]:
    return column.fill_null(float("nan")).to_numpy().astype(np.float64)


# Cells


class Unusable(ValueError):
    """Why a record states nothing that can be used."""


def required(record: Any, name: str) -> Any:
    """What the record says under `name`. Raises Unusable where it says nothing."""
    if not isinstance(record, dict):
        raise Unusable("the record is no object")
    value = record.get(name)
    if value is None or value == "":
        raise Unusable(f"{name} is missing")
    return value


def number(value: Any, name: str) -> float:
    """A finite number. Raises Unusable for anything else, a truth value too; text is only read as a plain number."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise Unusable(f"{name} {value[:40]!r} is no number") from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unusable(f"{name} is null: nothing was stated" if value is None else f"{name} is no number")
    if not np.isfinite(value):
        raise Unusable(f"{name} is {value}")
    return float(value)


def probability(value: Any, name: str) -> float:
    """A number in [0, 1]. Raises Unusable."""
    p = number(value, name)
    if not 0 <= p <= 1:
        raise Unusable(f"{name} {p:g} is outside [0, 1]")
    return p


def seconds(value: Any, name: str) -> float | None:
    """An instant in seconds since 1970, from such seconds or ISO-8601 text (UTC where it names no zone)."""
    if value is None or value == "":
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    try:
        at = datetime.fromisoformat(str(value).strip())
    except ValueError:
        raise Unusable(f"{name} {str(value)[:40]!r} is no ISO-8601 time") from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def price(value: Any, unit: float = 1.0) -> float | None:
    """A quote inside (0, 1); None where there is none, as thin books and placeholders say 0 or 1."""
    try:
        quote = number(value, "price") / unit
    except Unusable:
        return None
    return quote if 0 < quote < 1 else None


def distribution(vector: Iterable[float]) -> bool:
    """Do the probabilities sum to 1, as those of exclusive and complete options do?"""
    return abs(sum(vector) - 1) <= SUM_TOLERANCE


def text(value: Any) -> str | None:
    """A label, or None where there is none."""
    return None if value is None or str(value).strip() == "" else str(value)
