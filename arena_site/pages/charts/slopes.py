"""Slope charts: a line for each model between its scores on two sides, with the intervals of both."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from agents.models import Family
from arena_site.pages.charts.axes import value_range
from arena_site.pages.charts.intervals import UNKNOWN_COLOR
from arena_site.pages.charts.line_drawing import spread_labels
from arena_site.pages.charts.markers import marker_of, marker_path, readable_color
from arena_site.pages.filters import format_as

WIDTH = 540
LEFT, RIGHT, TOP = 118, 312, 56
"""The horizontal places of the two sides, and the height of the axis' upper end, below the titles."""
ROW_HEIGHT, LEAST_ROWS = 30, 8
DODGE = 5
"""Distance of two models' intervals, which would otherwise lie on each other."""

Interval = Sequence[float] | None


class SlopeRow(NamedTuple):
    """A model, or a reference without a family, and its score on each side, None where it has none."""

    name: str
    family: Family | None
    values: tuple[float | None, float | None]
    intervals: tuple[Interval, Interval] = (None, None)


class SlopeEnd(NamedTuple):
    """A drawn score: its place, the ends of its interval, and the height and text of its label."""

    x: float
    y: float
    low: float
    high: float
    marker: str
    label_x: int
    label_y: float
    text: str


class SlopeLine(NamedTuple):
    """A drawn row; a score without its counterpart is an end without a line."""

    name: str
    color: str
    dashed: bool
    ends: Sequence[SlopeEnd]


@dataclass(frozen=True, slots=True)
class SlopeChart:
    """The lines, and the names of the two sides; `unit` is a kind that `filters.format_as` knows."""

    kind: ClassVar[str] = "slopes"
    width: ClassVar[int] = WIDTH
    edges: ClassVar[Sequence[int]] = (LEFT, RIGHT)
    top: ClassVar[int] = TOP
    rows: Sequence[SlopeRow]
    lines: Sequence[SlopeLine]
    sides: tuple[str, str]
    x_title: str
    y_title: str
    unit: str
    bottom: float

    @property
    def height(self) -> int:
        return round(self.bottom) + 36

    @property
    def columns(self) -> Sequence[str]:
        return ("forecaster", "side", "value", "low", "high")

    @property
    def csv_rows(self) -> Iterator[Sequence[Any]]:
        """The scores of each row on both sides, with their intervals."""
        yield self.columns
        for row in self.rows:
            for side, value, interval in zip(self.sides, row.values, row.intervals, strict=True):
                if value is not None:
                    yield row.name, side, value, *(interval or (None, None))

    @property
    def table(self) -> Iterator[Sequence[str]]:
        """The same as cells of a table."""
        _, *rows = self.csv_rows
        for name, side, *numbers in rows:
            yield [name, side, *(format_as(number, self.unit) for number in numbers)]


def slope_chart(
    rows: Sequence[SlopeRow], sides: tuple[str, str], *, x_title: str, y_title: str, unit: str
) -> SlopeChart | None:
    """The chart of scores on two sides; None without a score on each."""
    ends: list[float] = []
    sides_with_values = set()
    for row in rows:
        for side_label, value, interval in zip(sides, row.values, row.intervals, strict=True):
            if value is not None:
                sides_with_values.add(side_label)
                ends += [value, *(interval or ())]
    if sides_with_values != set(sides):
        return None
    low, high = value_range(ends)
    bottom = TOP + ROW_HEIGHT * max(LEAST_ROWS, len(rows) + 2)
    scale = (bottom - TOP) / (high - low)

    def y(value: float) -> float:
        return round(bottom - (value - low) * scale, 1)

    drawn: list[list[SlopeEnd]] = [[] for _ in rows]
    for side, edge in enumerate((LEFT, RIGHT)):
        places = [place for place, row in enumerate(rows) if row.values[side] is not None]
        labels = spread_labels([y(rows[place].values[side] or 0) for place in places], TOP, bottom)
        for place, label in zip(places, labels, strict=True):
            row = rows[place]
            value = row.values[side] or 0.0
            lower, upper = row.intervals[side] or (value, value)
            x = edge + DODGE * (place - (len(rows) - 1) / 2)
            marker = marker_path(marker_of(row.family) if row.family else 0, x, y(value), 4.5)
            text = format_as(value, unit) if side == 0 else f"{format_as(value, unit)} {row.name}"
            label_x = edge - 30 if side == 0 else edge + 30
            drawn[place].append(SlopeEnd(x, y(value), y(lower), y(upper), marker, label_x, label, text))
    lines = []
    for row, row_ends in zip(rows, drawn, strict=True):
        color = readable_color(row.family.color if row.family else UNKNOWN_COLOR)
        lines.append(SlopeLine(row.name, color, row.family is None, row_ends))
    return SlopeChart(rows, lines, sides, x_title, y_title, unit, bottom)
