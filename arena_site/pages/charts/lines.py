"""Line charts over time, over weeks since a start, or over whole numbers."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import starmap
from math import log10
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

from arena_site.pages.charts.axes import Tick, log_ticks, tick_decimals, time_ticks, value_range, value_ticks
from arena_site.pages.charts.curves import ChartEvent, Curve, Value
from arena_site.pages.charts.line_drawing import BOTTOM, LEFT, RIGHT, TOP, WIDTH, DrawnLine, PlottedCurve, drawn_lines
from arena_site.pages.charts.markers import marker_path, readable_color
from arena_site.pages.filters import position_label

NUMBERS_HEIGHT = 16
"""Height of the row below the axis that says how many cohorts there are."""
WHOLE_AXES = ("questions", "days")
"""Axes with ticks at whole numbers alone."""
MAXIMUM_ROWS = 60
"""Rows of a chart's table; the API has every point."""
X_TITLES = {
    "time": "Date and time (UTC)",
    "weeks": "Cohort age (weeks since its start)",
    "questions": "Resolved forecasts of a model, in order of resolution",
    "days": "Days from the forecast to the market’s close",
    "cost": "Cost of 1,000 questions (logarithmic)",
}
"""Titles of the horizontal axis by its kind."""
POSITION_COLUMNS = {
    "time": "time_utc", "weeks": "weeks_since_start", "questions": "questions", "days": "bin", "cost": "usd_per_1000",
}  # fmt: skip
VALUE_COLUMNS = {
    "money": "value_usd", "percent": "return_percent", "fraction": "probability", "price": "price_usd",
    "score": "brier_score", "signed_score": "difference_in_brier_score",
}  # fmt: skip
"""Names of columns by the kind of the axis and by the unit."""


class TickNumber(NamedTuple):
    """A position on the axis, and of how many things the curves are means there."""

    position: float
    text: str


@dataclass(frozen=True, slots=True)
class LineChart:
    """A drawn chart for a template; `events` have their paths, `data` is what charts.js reads out."""

    kind: ClassVar[str] = "lines"
    width: ClassVar[int] = WIDTH
    left_edge: ClassVar[int] = LEFT
    right_edge: ClassVar[int] = RIGHT
    top: ClassVar[int] = TOP
    positions: Sequence[Any]
    curves: Sequence[Curve]
    height: int
    bottom: int
    lines: Sequence[DrawnLine]
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    baseline: float | None
    axis: str
    unit: str
    y_title: str
    decimals: int
    events: Sequence[tuple[ChartEvent, str]]
    data: dict[str, Any]
    numbers: Sequence[TickNumber] = ()
    """Below each tick of the axis: how many things the curves are means of there."""

    @property
    def x_title_place(self) -> int:
        """The height of the title of the horizontal axis."""
        return self.bottom + 44 + (NUMBERS_HEIGHT if self.numbers else 0)

    @property
    def x_title(self) -> str:
        return X_TITLES[self.axis]

    @property
    def contains_links(self) -> bool:
        """True for a chart with links, which an element of the role `img` may not contain."""
        return any(event.href for event, _ in self.events)

    @property
    def rows(self) -> list[tuple[Any, list[Value]]]:
        """The rows of the chart's table, newest first, thinned to MAXIMUM_ROWS."""
        step = max(1, -(-len(self.positions) // MAXIMUM_ROWS))
        rows = []
        for index in range(len(self.positions) - 1, -1, -step):
            rows.append((self.positions[index], [curve.values[index] for curve in self.curves]))
        return rows

    @property
    def csv_rows(self) -> Iterator[Sequence[Any]]:
        """The names of the columns, a row for each point of each curve, and one for each event."""
        banded = any(map(attrgetter("band"), self.curves))
        numbered = any(map(attrgetter("numbers"), self.curves))
        columns = ["series", POSITION_COLUMNS[self.axis], VALUE_COLUMNS[self.unit]]
        if banded:
            columns += ["lower_quartile", "upper_quartile"] if self.axis == "weeks" else ["low", "high"]
        columns += ["cohorts"] if numbered else []
        yield columns
        for curve in self.curves:
            for index, (position, value) in enumerate(zip(self.positions, curve.values, strict=True)):
                if value is None:
                    continue
                ends = curve.band[index] if curve.band else None
                row = [curve.name, position, value, *((ends or ("", "")) if banded else ())]
                yield [*row, curve.numbers[index]] if numbered else row
        for event, _ in self.events:
            yield [event.text, event.at, event.value]


def line_chart(
    positions: Sequence[Any],
    curves: Sequence[Curve],
    *,
    y_title: str,
    axis: str = "time",
    baseline: Decimal | None = None,
    height: int = 420,
    unit: str = "money",
    events: Sequence[ChartEvent] = (),
) -> LineChart | None:
    """The chart of curves over ascending positions: instants, or numbers for another axis of X_TITLES.

    None without values. `unit` is a kind that `filters.format_as` knows. `baseline` is drawn as a line of its own, such
    as the starting balance. Events outside the instants are left out.
    """
    plotted: list[PlottedCurve] = []
    bounds = [] if baseline is None else [float(baseline)]
    for curve in curves:
        row = [None if value is None else float(value) for value in curve.values]
        values = [value for value in row if value is not None]
        if values:
            plotted.append(PlottedCurve(curve, row))
            bounds += values
        for ends in filter(None, curve.band):
            bounds += ends
    if not plotted:
        return None
    first, last = positions[0], positions[-1]
    coordinate: Callable[[Any], float] = _log_coordinate if axis == "cost" else _place
    x_values: list[Any]
    if isinstance(first, datetime):
        x_values = time_ticks(first, last)
    elif axis == "cost":
        x_values = log_ticks(first, last)
    else:
        round_values = value_ticks(first, max(last, first + 1))
        x_values = [value for value in round_values if axis not in WHOLE_AXES or value % 1 == 0]
    events = [event for event in events if first <= event.at <= last]
    bounds += map(float, map(attrgetter("value"), events))
    low, high = value_range(bounds)
    numbered = any(map(attrgetter("numbers"), curves))
    bottom = height - BOTTOM - (NUMBERS_HEIGHT if numbered else 0)
    x_scale = (RIGHT - LEFT) / ((coordinate(last) - coordinate(first)) or 1)
    y_scale = (bottom - TOP) / (high - low)

    def x(position: datetime | float) -> float:
        return round(LEFT + (coordinate(position) - coordinate(first)) * x_scale, 1)

    def exact_y(value: Decimal | float) -> float:
        return bottom - (float(value) - low) * y_scale

    def y(value: Decimal | float) -> float:
        return round(exact_y(value), 1)

    event_paths = []
    for event in events:
        event_paths.append((event, marker_path(event.marker, x(event.at), y(event.value), 5.5)))
    numbers = []
    for value in x_values if numbered else ():
        numbers.append(TickNumber(x(value), _numbers_at(curves, positions, value)))
    data = {
        "axis": axis,
        "unit": unit,
        "positions": list(map(coordinate, positions)),
        "labels": [position_label(position, axis) for position in positions] if axis == "days" else None,
        "curves": list(starmap(_curve_data, plotted)),
        "left": LEFT,
        "right": RIGHT,
        "top": TOP,
        "bottom": bottom,
    }
    return LineChart(
        positions,
        curves,
        height,
        bottom,
        drawn_lines(plotted, list(map(x, positions)), exact_y, bottom),
        [Tick(x(value), value) for value in x_values],
        [Tick(y(value), value) for value in value_ticks(low, high)],
        None if baseline is None else y(baseline),
        axis,
        unit,
        y_title,
        tick_decimals(low, high),
        event_paths,
        data,
        tuple(numbers),
    )


def _numbers_at(curves: Sequence[Curve], positions: Sequence[Any], place: Any) -> str:
    """Of how many things the curves are means at a place of the axis; a range where they differ."""
    index = max(0, bisect_right(positions, place + 1e-9) - 1)
    numbers = {number for curve in curves if curve.numbers and (number := curve.numbers[index])}
    return "–".join(map(str, sorted({min(numbers), max(numbers)}))) if numbers else "0"


def _place(position: Any) -> float:
    """A position as charts.js has it: an instant is its milliseconds since 1970."""
    return round(position.timestamp() * 1000) if isinstance(position, datetime) else position


def _log_coordinate(position: float) -> float:
    """A cost as charts.js has it: its decimal logarithm."""
    return round(log10(position), 6)


def _rounded(value: float) -> float:
    """A value without more digits than charts.js shows, and without a negative zero."""
    return round(value, 4) + 0.0


def _curve_data(curve: Curve, row: Sequence[float | None]) -> dict[str, Any]:
    """A curve as charts.js reads it."""
    data: dict[str, Any] = {
        "name": curve.name,
        "color": readable_color(curve.color),
        "marker": marker_path(curve.marker, 0, 0, 3.5),
        "values": [None if value is None else _rounded(value) for value in row],
    }
    if curve.numbers:
        data["numbers"] = list(curve.numbers)
    return data
