"""Dot-and-interval charts: a row for each model, a line for each baseline, positions in percent of the width."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple

from agents.models import Family
from arena_site.pages.charts.axes import Tick, tick_decimals, value_range, value_ticks
from arena_site.pages.charts.markers import marker_of, readable_color

UNKNOWN_COLOR = "#586374"


class IntervalRow(NamedTuple):
    """A model's score and interval; `bracket` is its place in the bracket of ties: first, tied, spanned or last.

    mark, mark_x : a second value beside the score, and its place
    href : where the name leads, if not to the family
    """

    name: str
    family: Family | None
    value: float
    interval: Sequence[float] | None
    x: float
    low: float
    high: float
    bracket: str
    mark: float | None = None
    mark_x: float | None = None
    href: str = ""

    @property
    def color(self) -> str:
        return readable_color(self.family.color if self.family else UNKNOWN_COLOR)

    @property
    def marker(self) -> int:
        return marker_of(self.family) if self.family else 0


class Baseline(NamedTuple):
    """A score that is drawn as a vertical line."""

    name: str
    value: float
    x: float


@dataclass(frozen=True, slots=True)
class IntervalChart:
    """The rows, best first, the baselines, and the ticks below; `unit` is a kind that `filters.format_as` knows."""

    kind: ClassVar[str] = "intervals"
    width: ClassVar[int] = 1000
    right_edge: ClassVar[int] = 860
    row_height: ClassVar[int] = 38
    top: ClassVar[int] = 24
    rows: Sequence[IntervalRow]
    baselines: Sequence[Baseline]
    ticks: Sequence[Tick]
    decimals: int
    x_title: str
    unit: str
    column: str
    mark: str = ""
    """The name of the rows' second values, drawn hollow."""
    left_edge: int = 200
    """Width of the names, in an image."""

    @property
    def span(self) -> int:
        """Width of what is 100 % wide, in an image."""
        return self.right_edge - self.left_edge

    @property
    def bottom(self) -> int:
        return self.top + self.row_height * len(self.rows)

    @property
    def height(self) -> int:
        return self.bottom + 52

    @property
    def csv_rows(self) -> Iterator[Sequence[Any]]:
        """The scores with their intervals, the baselines last."""
        if self.mark:
            yield "question", self.column, self.mark
            yield from ((row.name, row.value, row.mark) for row in self.rows)
            return
        yield "forecaster", self.column, "low", "high"
        for row in self.rows:
            yield row.name, row.value, *(row.interval or (None, None))
        for baseline in self.baselines:
            yield baseline.name, baseline.value, None, None


def interval_chart(
    entries: Sequence[Mapping[str, Any]],
    column: str,
    families: Mapping[str, Family],
    *,
    x_title: str,
    unit: str,
    interval: str = "",
    baselines: Mapping[str, float] | None = None,
    tied: Sequence[Mapping[str, Any]] = (),
    mark: str = "",
    left_edge: int = 200,
) -> IntervalChart:
    """The scores of ranked entries in a column, with their intervals; `tied` with the first one.

    The axis includes zero. `interval` is the column of the intervals where it is not `<column>_ci`, `mark` that of a
    second value; an entry's `href` is where its name leads.
    """
    interval, baselines = interval or f"{column}_ci", baselines or {}
    bounds = [entry[interval] or [entry[column]] * 2 for entry in entries]
    ends = list(chain(*bounds))
    low, high = value_range([0.0, *ends, *baselines.values()])
    low = 0.0 if min([0.0, *ends]) >= 0 else low

    def x(value: float) -> float:
        return round(100 * (value - low) / (high - low), 2) + 0.0

    ties = set(map(itemgetter("display_name"), tied))
    last = 0
    for index, entry in enumerate(entries):
        if entry["display_name"] in ties:
            last = index

    def bracket(index: int) -> str:
        if not last or index > last:
            return ""
        if index in (0, last):
            return "last" if index else "first"
        return "tied" if entries[index]["display_name"] in ties else "spanned"

    rows = []
    for index, (entry, (lower, upper)) in enumerate(zip(entries, bounds, strict=True)):
        row = IntervalRow(
            name=entry["display_name"],
            family=families.get(entry["family"]),
            value=entry[column],
            interval=entry[interval],
            x=x(entry[column]),
            low=x(lower),
            high=x(upper),
            bracket=bracket(index),
            mark=entry[mark] if mark else None,
            mark_x=x(entry[mark]) if mark else None,
            href=entry.get("href", ""),
        )
        rows.append(row)
    lines = [Baseline(name, value, x(value)) for name, value in baselines.items()]
    ticks = [Tick(x(value), value) for value in value_ticks(low, high)]
    return IntervalChart(rows, lines, ticks, tick_decimals(low, high), x_title, unit, column, mark, left_edge)
