"""Line charts over time, over weeks since a start, or over whole numbers."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import chain
from math import log10
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

from agents.models import Family
from arena_site.pages.charts.axes import Tick, log_ticks, tick_decimals, time_ticks, value_range, value_ticks
from arena_site.pages.charts.markers import marker_of, marker_path, readable_color
from arena_site.pages.filters import position_label

WIDTH = 1000
LEFT, RIGHT, TOP, BOTTOM = 76, WIDTH - 160, 36, 52
"""The horizontal ends of the axes, and the vertical margins, which hold the axes' titles."""
NUMBERS_HEIGHT = 16
"""Height of the row below the axis that says how many cohorts there are."""
WHOLE_AXES = ("questions", "days")
"""Axes with ticks at whole numbers alone."""
FEW = 3
"""A line is faded where it is a mean of fewer things than this."""
LABEL_HEIGHT = 18
MARKERS_PER_LINE = 5
"""Markers on a line, besides the one at its end."""
MAXIMUM_ROWS = 60
"""Rows of a chart's table; the API has every point."""
X_TITLES = {
    "time": "Date and time (UTC)",
    "weeks": "Cohort age (weeks since its start)",
    "questions": "Resolved forecasts of a model, in order of resolution",
    "days": "Days from the forecast to the market’s close",
    "cost": "Cost of 1,000 questions (logarithmic)",
    "released_on": "Release of the model",
    "knowledge_cutoff": "End of the model’s knowledge",
}
"""Titles of the horizontal axis by its kind."""
POSITION_COLUMNS = {
    "time": "time_utc", "weeks": "weeks_since_start", "questions": "questions", "days": "bin", "cost": "usd_per_1000",
    "released_on": "released_on", "knowledge_cutoff": "knowledge_cutoff",
}  # fmt: skip
VALUE_COLUMNS = {
    "money": "value_usd", "percent": "return_percent", "fraction": "probability", "price": "price_usd",
    "score": "brier_score", "signed_score": "difference_in_brier_score",
}  # fmt: skip
"""Names of columns by the kind of the axis and by the unit."""

Value = Decimal | float | None


@dataclass(frozen=True, slots=True)
class Curve:
    """The data of one line: a value for each position of the chart, None for a missing one.

    `dashed` is for references, which are no competitors. A band has its lower and upper end at each position that has
    a value; `numbers` says of how many things a value is the mean.
    """

    name: str
    color: str
    values: Sequence[Value]
    marker: int = 0
    dashed: bool = False
    band: Sequence[tuple[float, float] | None] = ()
    numbers: Sequence[int | None] = ()

    @property
    def first_of_few(self) -> int:
        """The index from which on the curve is a mean of few things; the number of positions if it never is."""
        for index, number in enumerate(self.numbers):
            if number is not None and number < FEW:
                return index
        return len(self.values)


@dataclass(frozen=True, slots=True)
class ChartEvent:
    """An event at an instant and a value: drawn filled if its kind is `buy`, else hollow."""

    at: datetime
    value: Decimal | float
    text: str
    color: str
    marker: int = 0
    kind: str = "buy"
    href: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a drawing."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """A curve as drawn: paths of its band, line and markers, its end, and the place of its name.

    `few` is the path of the part that is a mean of few things.
    """

    curve: Curve
    path: str
    markers: str
    end: Point
    end_marker: str
    label: Point
    band: str = ""
    few: str = ""


class CurvePoints(NamedTuple):
    """The points of a curve in a drawing: of its line, of its band (x, low, high), and of its part of few things."""

    curve: Curve
    points: Sequence[tuple[float, float]]
    band: Sequence[tuple[float, float, float]]
    few: Sequence[tuple[float, float]]


class TickNumber(NamedTuple):
    """A position on the axis, and of how many things the curves are means there."""

    position: float
    text: str


@dataclass(frozen=True, slots=True)
class LineChart:
    """A drawn chart for a template; `events` have their paths, `data` is what charts.js redraws the chart from."""

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


def family_curve(family: Family, values: Sequence[Value], **options: Any) -> Curve:
    """A family's curve, in its colour and with its marker."""
    return Curve(family.display_name, family.color, values, marker_of(family), **options)


def single_point(
    name: str, family: Family, place: int, of: int, value: float | None, interval: Sequence[float] | None
) -> Curve:
    """A family's curve of one point with its interval, at one of so many positions."""
    values: list[float | None] = [None] * of
    band: list[tuple[float, float] | None] = [None] * of
    values[place] = value
    band[place] = None if interval is None else (interval[0], interval[1])
    return Curve(name, family.color, values, marker_of(family), band=band)


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
    rows: list[list[float | None]] = []
    bounds = [] if baseline is None else [float(baseline)]
    for curve in curves:
        row = [None if value is None else float(value) for value in curve.values]
        rows.append(row)
        bounds += [value for value in row if value is not None]
        for ends in filter(None, curve.band):
            bounds += ends
    if set(chain(*rows)) <= {None}:
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

    def y(value: Decimal | float) -> float:
        return round(bottom - (float(value) - low) * y_scale, 1)

    xs = list(map(x, positions))
    drawn, curve_data = [], []
    for curve, row in zip(curves, rows, strict=True):
        # `y` inlined and not yet rounded: this runs for every point of every curve.
        points = [
            (at, bottom - (value - low) * y_scale) for at, value in zip(xs, row, strict=True) if value is not None
        ]
        if points:
            band = [(at, y(ends[0]), y(ends[1])) for at, ends in zip(xs, curve.band, strict=False) if ends]
            start = _start_of_few(curve, xs)
            drawn.append(CurvePoints(curve, points, band, few=[point for point in points if point[0] >= start]))
            curve_data.append(_curve_data(curve, row))
    labels = spread_labels([curve.points[-1][1] for curve in drawn], TOP + LABEL_HEIGHT / 2, float(bottom))
    lines = []
    for index, (curve_points, label) in enumerate(zip(drawn, labels, strict=True)):
        lines.append(_drawn_line(curve_points, label, index / len(drawn)))
    event_paths, event_data = [], []
    for event in events:
        place = (x(event.at), y(event.value))
        event_paths.append((event, marker_path(event.marker, *place, 5.5)))
        event_data.append([_place(event.at), float(event.value), *place])
    numbers = []
    for value in x_values if numbered else ():
        numbers.append(TickNumber(x(value), _numbers_at(curves, positions, value)))
    data = {
        "axis": axis,
        "unit": unit,
        "positions": list(map(coordinate, positions)),
        "labels": [position_label(position, axis) for position in positions] if axis == "days" else None,
        "baseline": None if baseline is None else float(baseline),
        "curves": curve_data,
        "events": event_data,
    }
    return LineChart(
        positions,
        curves,
        height,
        bottom,
        lines,
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


def _start_of_few(curve: Curve, xs: Sequence[float]) -> float:
    """The place at which the part of a curve begins that is a mean of few things: the last point before it."""
    index = curve.first_of_few
    return xs[max(0, index - 1)] if index < len(xs) else xs[-1] + 1


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
        "dashed": curve.dashed,
        "values": [None if value is None else _rounded(value) for value in row],
    }
    if curve.band:
        data["band"] = [ends and [_rounded(ends[0]), _rounded(ends[1])] for ends in curve.band]
    if curve.numbers:
        data["numbers"] = list(curve.numbers)
        data["first_of_few"] = curve.first_of_few
    return data


def _drawn_line(curve_points: CurvePoints, label: float, offset: float) -> DrawnLine:
    """The line through the points, with a few markers at equal distances, its band, and its part of few things.

    Markers are shifted by `offset`, a fraction of their distance, so that lines have them apart.
    """

    curve, points, few = curve_points.curve, curve_points.points, curve_points.few

    def at_or_after(x: float) -> Point:
        at, height = points[min(bisect_left(points, (x,)), len(points) - 1)]
        return Point(at, round(height, 1))

    (first, _), (last, _) = points[0], points[-1]
    end = at_or_after(last)
    distance = (RIGHT - LEFT) / MARKERS_PER_LINE
    markers = ""
    for index in range(0 if curve.dashed else MARKERS_PER_LINE):
        x = LEFT + distance * (index + 0.2 + 0.6 * offset)
        if first <= x < last - 20:
            point = at_or_after(x)
            markers += marker_path(curve.marker, point.x, point.y, 3.5)
    lower, upper = [], []
    for x, low, high in curve_points.band:
        lower.append(f"{x} {low}")
        upper.append(f"{x} {high}")
    if len(lower) == 1:  # the interval of a single point
        x, low, high = curve_points.band[0]
        lower, upper = [f"{x - 3} {low}", f"{x + 3} {low}"], [f"{x - 3} {high}", f"{x + 3} {high}"]
    full = [point for point in points if not few or point[0] <= few[0][0]]
    return DrawnLine(
        curve,
        _line_path(full),
        markers,
        end,
        marker_path(curve.marker, end.x, end.y),
        Point(RIGHT + 24, label),
        "M" + "L".join([*lower, *reversed(upper)]) + "Z" if lower else "",
        _line_path(few),
    )


def _line_path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join([f"{x} {height:.1f}" for x, height in points]) if points else ""


def spread_labels(heights: Sequence[float], top: float, bottom: float) -> list[float]:
    """The heights moved apart so that labels at them do not overlap, in the same order from top to bottom."""
    order = sorted(range(len(heights)), key=heights.__getitem__)
    spread = list(heights)
    minimum = top
    for index in order:
        spread[index] = minimum = max(spread[index], minimum)
        minimum += LABEL_HEIGHT
    maximum = bottom
    for index in reversed(order):
        spread[index] = maximum = min(spread[index], maximum)
        maximum -= LABEL_HEIGHT
    return [round(height, 1) for height in spread]
