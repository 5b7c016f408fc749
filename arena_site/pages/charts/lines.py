"""Line charts over time, over weeks since a start, or over whole numbers."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple

from agents.models import Family
from arena_site.pages.charts.axes import Tick, tick_decimals, time_ticks, value_range, value_ticks
from arena_site.pages.charts.markers import marker_of, marker_path, readable_color

WIDTH = 1000
LEFT, RIGHT, TOP, BOTTOM = 76, WIDTH - 160, 36, 52
"""The horizontal ends of the axes, and the vertical margins, which hold the axes' titles."""
NUMBERS_HEIGHT = 16
"""Height of the row below the axis that says how many cohorts there are."""
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
}
"""Titles of the horizontal axis by its kind."""
POSITION_COLUMNS = {"time": "time_utc", "weeks": "weeks_since_start", "questions": "questions"}
VALUE_COLUMNS = {
    "money": "value_usd", "percent": "return_percent", "fraction": "probability", "price": "price_usd",
    "score": "brier_score",
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
        few = (index for index, number in enumerate(self.numbers) if number is not None and number < FEW)
        return next(few, len(self.values))


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
    lines: tuple[DrawnLine, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    baseline: float | None
    axis: str
    unit: str
    y_title: str
    decimals: int
    events: tuple[tuple[ChartEvent, str], ...]
    data: dict[str, Any]
    numbers: tuple[TickNumber, ...] = ()
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
        """Whether the chart contains links, which an element of the role `img` may not."""
        return any(event.href for event, _ in self.events)

    @property
    def rows(self) -> list[tuple[Any, list[Value]]]:
        """The rows of the chart's table, newest first, thinned to MAXIMUM_ROWS."""
        step = max(1, -(-len(self.positions) // MAXIMUM_ROWS))
        rows = [*enumerate(self.positions)][::-1][::step]
        return [(at, [curve.values[index] for curve in self.curves]) for index, at in rows]

    @property
    def csv_rows(self) -> Iterator[Sequence[Any]]:
        """The names of the columns, a row for each point of each curve, and one for each event."""
        banded, numbered = (any(getattr(curve, name) for curve in self.curves) for name in ("band", "numbers"))
        columns = ["series", POSITION_COLUMNS[self.axis], VALUE_COLUMNS[self.unit]]
        yield [*columns, *(["lower_quartile", "upper_quartile"] if banded else []), *(["cohorts"] if numbered else [])]
        for curve in self.curves:
            for index, (position, value) in enumerate(zip(self.positions, curve.values, strict=True)):
                if value is None:
                    continue
                row = [curve.name, position, value, *((curve.band[index] or ("", "")) if banded else ())]
                yield [*row, curve.numbers[index]] if numbered else row
        for event, _ in self.events:
            yield [event.text, event.at, event.value]


def family_curve(family: Family, values: Sequence[Value], **options: Any) -> Curve:
    """A family's curve, in its colour and with its marker."""
    return Curve(family.display_name, family.color, values, marker_of(family), **options)


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
    rows = [[None if value is None else float(value) for value in curve.values] for curve in curves]
    values = [value for row in rows for value in row if value is not None]
    if not values:
        return None
    first, last = positions[0], positions[-1]
    x_values: list[Any] = time_ticks(first, last) if axis == "time" else value_ticks(first, max(last, first + 1))
    if axis == "questions":
        x_values = [value for value in x_values if value == int(value)]
    events = [event for event in events if first <= event.at <= last]
    ends = [end for curve in curves for band in curve.band if band for end in band]
    bases = [] if baseline is None else [float(baseline)]
    low, high = value_range([*values, *ends, *bases, *(float(event.value) for event in events)])
    numbered = any(curve.numbers for curve in curves)
    bottom = height - BOTTOM - (NUMBERS_HEIGHT if numbered else 0)
    x_scale = (RIGHT - LEFT) / ((_place(last) - _place(first)) or 1)
    y_scale = (bottom - TOP) / (high - low)

    def x(position: datetime | float) -> float:
        return round(LEFT + (_place(position) - _place(first)) * x_scale, 1)

    def y(value: Decimal | float) -> float:
        return round(bottom - (float(value) - low) * y_scale, 1)

    xs = [x(position) for position in positions]
    drawn = []
    for curve, row in zip(curves, rows, strict=True):
        # `y` inlined and not yet rounded: this runs for every point of every curve.
        points = [
            (at, bottom - (value - low) * y_scale) for at, value in zip(xs, row, strict=True) if value is not None
        ]
        if points:
            band = [(at, y(ends[0]), y(ends[1])) for at, ends in zip(xs, curve.band, strict=False) if ends]
            few = [(at, height) for at, height in points if at >= _start_of_few(curve, xs)]
            drawn.append((curve, points, band, few, row))
    labels = _spread([points[-1][1] for _, points, *_ in drawn], TOP + LABEL_HEIGHT / 2, float(bottom))
    lines = tuple(
        _drawn_line(curve, points, band, few, label, index / len(drawn))
        for index, ((curve, points, band, few, _), label) in enumerate(zip(drawn, labels, strict=True))
    )
    places = [(x(event.at), y(event.value)) for event in events]
    data = {
        "axis": axis,
        "unit": unit,
        "positions": [_place(position) for position in positions],
        "baseline": None if baseline is None else float(baseline),
        "curves": [_curve_data(curve, row) for curve, *_, row in drawn],
        "events": [[_place(event.at), float(event.value), *place] for event, place in zip(events, places, strict=True)],
    }
    return LineChart(
        positions,
        curves,
        height,
        bottom,
        lines,
        tuple(Tick(x(value), value) for value in x_values),
        tuple(Tick(y(value), value) for value in value_ticks(low, high)),
        None if baseline is None else y(baseline),
        axis,
        unit,
        y_title,
        tick_decimals(low, high),
        tuple((e, marker_path(e.marker, *place, 5.5)) for e, place in zip(events, places, strict=True)),
        data,
        tuple(TickNumber(x(value), _numbers_at(curves, positions, value)) for value in x_values) if numbered else (),
    )


def _start_of_few(curve: Curve, xs: Sequence[float]) -> float:
    """Where the part of a curve begins that is a mean of few things: at the last point before it."""
    index = curve.first_of_few
    return xs[max(0, index - 1)] if index < len(xs) else xs[-1] + 1


def _numbers_at(curves: Sequence[Curve], positions: Sequence[Any], place: Any) -> str:
    """Of how many things the curves are means at a place of the axis; a range where they differ."""
    index = max(0, bisect_right(positions, place + 1e-9) - 1)
    numbers = {number for curve in curves if curve.numbers and (number := curve.numbers[index])}
    return "–".join(str(number) for number in sorted({min(numbers), max(numbers)})) if numbers else "0"


def _place(position: Any) -> float:
    """A position as charts.js has it: an instant is its milliseconds since 1970."""
    return round(position.timestamp() * 1000) if isinstance(position, datetime) else position


def _curve_data(curve: Curve, row: Sequence[float | None]) -> dict[str, Any]:
    """A curve as charts.js reads it."""
    data: dict[str, Any] = {
        "name": curve.name,
        "color": readable_color(curve.color),
        "marker": marker_path(curve.marker, 0, 0, 3.5),
        "dashed": curve.dashed,
        "values": [None if value is None else round(value, 4) + 0.0 for value in row],
    }
    if curve.band:
        data["band"] = [ends and [round(end, 4) + 0.0 for end in ends] for ends in curve.band]
    if curve.numbers:
        data["numbers"] = list(curve.numbers)
        data["first_of_few"] = curve.first_of_few
    return data


def _drawn_line(
    curve: Curve,
    points: Sequence[tuple[float, float]],
    band: Sequence[tuple[float, float, float]],
    few: Sequence[tuple[float, float]],
    label: float,
    offset: float,
) -> DrawnLine:
    """The line through the points, with a few markers at equal distances, its band, and its part of few things.

    Markers are shifted by `offset`, a fraction of their distance, so that lines have them apart.
    """

    def at_or_after(x: float) -> Point:
        at, height = points[min(bisect_left(points, (x,)), len(points) - 1)]
        return Point(at, round(height, 1))

    (first, _), (last, _) = points[0], points[-1]
    end = at_or_after(last)
    distance = (RIGHT - LEFT) / MARKERS_PER_LINE
    spaced = [LEFT + distance * (index + 0.2 + 0.6 * offset) for index in range(MARKERS_PER_LINE)]
    marked = [] if curve.dashed else [at_or_after(x) for x in spaced if first <= x < last - 20]
    around = [*((x, low) for x, low, _ in band), *((x, high) for x, _, high in reversed(band))]
    full = [(x, height) for x, height in points if not few or x <= few[0][0]]
    return DrawnLine(
        curve,
        _line_path(full),
        "".join(marker_path(curve.marker, point.x, point.y, 3.5) for point in marked),
        end,
        marker_path(curve.marker, end.x, end.y),
        Point(RIGHT + 24, label),
        "M" + "L".join([f"{x} {height}" for x, height in around]) + "Z" if around else "",
        _line_path(few),
    )


def _line_path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join([f"{x} {height:.1f}" for x, height in points]) if points else ""


def _spread(heights: Sequence[float], top: float, bottom: float) -> list[float]:
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
