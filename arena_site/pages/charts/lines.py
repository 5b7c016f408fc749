"""Line charts over time, or over whole numbers."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from agents.models import Family
from arena_site.pages.charts.axes import Tick, tick_decimals, time_ticks, value_range, value_ticks
from arena_site.pages.charts.markers import marker_of, marker_path, readable_color

WIDTH = 1000
LEFT, RIGHT, TOP, BOTTOM = 76, 160, 14, 34
LABEL_HEIGHT = 18
MARKERS_PER_LINE = 5
"""Markers on a line, besides the one at its end."""

Value = Decimal | float | None


@dataclass(frozen=True, slots=True)
class Curve:
    """The data of one line: a value for each position of the chart, None for a missing one.

    `annotations` are texts at instants; `dashed` is for references, which are no competitors.
    """

    name: str
    color: str
    values: Sequence[Value]
    annotations: Sequence[tuple[datetime, str]] = ()
    marker: int = 0
    dashed: bool = False


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
    """A point of a drawing, with its text if it is annotated."""

    x: float
    y: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """A curve as drawn: paths of its line and markers, its end, the place of its name, its annotated points."""

    name: str
    color: str
    path: str
    markers: str
    end: Point
    end_marker: str
    label: Point
    annotations: tuple[Point, ...]
    dashed: bool


@dataclass(frozen=True, slots=True)
class DrawnEvent:
    """An event as drawn."""

    event: ChartEvent
    color: str
    path: str


@dataclass(frozen=True, slots=True)
class LineChart:
    """A drawn chart for a template; `data` is what charts.js redraws it from."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    lines: tuple[DrawnLine, ...]
    y_ticks: tuple[Tick, ...]
    x_ticks: tuple[Tick, ...]
    baseline: float | None
    unit: str
    decimals: int
    events: tuple[DrawnEvent, ...]
    data: dict[str, Any]

    @property
    def contains_links(self) -> bool:
        """Whether the chart contains links, which an element of the role `img` may not."""
        return any(drawn.event.href for drawn in self.events)


def family_curve(family: Family, values: Sequence[Value], annotations: Sequence[tuple[datetime, str]] = ()) -> Curve:
    """A family's curve, in its colour and with its marker."""
    return Curve(family.display_name, readable_color(family.color), values, annotations, marker_of(family))


def chart_over_time(
    instants: Sequence[datetime],
    curves: Sequence[Curve],
    *,
    baseline: Decimal | None = None,
    height: int = 380,
    unit: str = "money",
    events: Sequence[ChartEvent] = (),
) -> LineChart | None:
    """The chart of curves over ascending instants; None without values.

    `unit` is a kind that `filters.format_as` knows. `baseline` is drawn as a line of its own, such as the starting
    balance. Events outside the instants are left out.
    """
    if not instants:
        return None
    first, last = instants[0], instants[-1]
    span = (last - first) or timedelta(seconds=1)

    def fraction(at: datetime) -> float:
        return (at - first) / span

    ticks = [(fraction(at), at) for at in time_ticks(first, last)]
    positions = [round(at.timestamp() * 1000) for at in instants]
    inside = [event for event in events if first <= event.at <= last]
    layout = _Layout(curves, ticks, positions, "time", baseline, height, unit, inside)
    return layout.draw([fraction(at) for at in instants], fraction)


def chart_by_order(
    positions: Sequence[int],
    curves: Sequence[Curve],
    *,
    baseline: Decimal | None = None,
    height: int = 380,
    unit: str = "money",
) -> LineChart | None:
    """The chart of curves over ascending whole numbers, such as questions so far; None without values."""
    if not positions:
        return None
    first = positions[0]
    span = max(positions[-1] - first, 1)
    ticks = [((at - first) / span, at) for at in value_ticks(first, first + span) if at == int(at)]
    layout = _Layout(curves, ticks, positions, "order", baseline, height, unit, ())
    return layout.draw([(at - first) / span for at in positions], lambda at: 0.0)


@dataclass(frozen=True, slots=True)
class _Layout:
    """A chart before it is drawn; ticks are fractions of the horizontal axis with their values."""

    curves: Sequence[Curve]
    ticks: Sequence[tuple[float, float | datetime]]
    positions: Sequence[int]
    axis: str
    baseline: Decimal | None
    height: int
    unit: str
    events: Sequence[ChartEvent]

    def draw(self, fractions: Sequence[float], fraction_at: Callable[[datetime], float]) -> LineChart | None:
        values = [[None if value is None else float(value) for value in curve.values] for curve in self.curves]
        known = [value for row in values for value in row if value is not None]
        if not known:
            return None
        if self.baseline is not None:
            known.append(float(self.baseline))
        known.extend(float(event.value) for event in self.events)
        low, high = value_range(known)
        right, bottom = WIDTH - RIGHT, self.height - BOTTOM
        scale = (bottom - TOP) / (high - low)

        def x(fraction: float) -> float:
            return round(LEFT + fraction * (right - LEFT), 1)

        def y(value: Decimal | float) -> float:
            return round(bottom - (float(value) - low) * scale, 1)

        xs = [x(fraction) for fraction in fractions]
        drawn = []
        for curve, row in zip(self.curves, values, strict=True):
            # `y` inlined and not yet rounded: this runs for every point of every curve.
            heights = [bottom - (value - low) * scale for value in row if value is not None]
            if heights:
                drawn.append((curve, _Points([at for at, v in zip(xs, row, strict=True) if v is not None], heights)))
        labels = _spread([points.end.y for _, points in drawn], TOP + LABEL_HEIGHT / 2, float(bottom))
        lines = tuple(
            points.draw(curve, Point(right + 24, label), index / len(drawn), lambda at: x(fraction_at(at)))
            for index, ((curve, points), label) in enumerate(zip(drawn, labels, strict=True))
        )
        places = [(x(fraction_at(event.at)), y(event.value)) for event in self.events]
        return LineChart(
            WIDTH,
            self.height,
            LEFT,
            right,
            TOP,
            bottom,
            lines,
            tuple(Tick(y(value), value) for value in value_ticks(low, high)),
            tuple(Tick(x(fraction), value) for fraction, value in self.ticks),
            None if self.baseline is None else y(self.baseline),
            self.unit,
            tick_decimals(low, high),
            tuple(
                DrawnEvent(event, readable_color(event.color), marker_path(event.marker, *place, 5.5))
                for event, place in zip(self.events, places, strict=True)
            ),
            self._data(values, places),
        )

    def _data(self, values: list[list[float | None]], places: Sequence[tuple[float, float]]) -> dict[str, Any]:
        if self.unit != "money":  # which has two decimals
            values = [[None if value is None else round(value, 4) for value in row] for row in values]
        return {
            "axis": self.axis,
            "unit": self.unit,
            "positions": list(self.positions),
            "baseline": None if self.baseline is None else float(self.baseline),
            "curves": [
                {
                    "name": curve.name,
                    "color": readable_color(curve.color),
                    "marker": marker_path(curve.marker, 0, 0, 3.5),
                    "dashed": curve.dashed,
                    "values": row,
                    "annotations": [[round(at.timestamp() * 1000), text] for at, text in curve.annotations],
                }
                for curve, row in zip(self.curves, values, strict=True)
                if any(value is not None for value in row)
            ],
            "events": [
                [round(event.at.timestamp() * 1000), float(event.value), *place]
                for event, place in zip(self.events, places, strict=True)
            ],
        }


@dataclass(frozen=True, slots=True)
class _Points:
    """The points of a curve from left to right; the heights are not rounded."""

    xs: Sequence[float]
    heights: Sequence[float]

    @property
    def end(self) -> Point:
        return self.at_or_after(self.xs[-1])

    def at_or_after(self, x: float) -> Point:
        """The first point at or after `x`; the last point if there is none."""
        index = min(bisect_left(self.xs, x), len(self.xs) - 1)
        return Point(self.xs[index], round(self.heights[index], 1))

    def spaced(self, offset: float) -> Iterator[Point]:
        """A few points at equal distances, shifted by a fraction so that lines have their markers apart."""
        distance = (WIDTH - RIGHT - LEFT) / MARKERS_PER_LINE
        for index in range(MARKERS_PER_LINE):
            x = LEFT + distance * (index + 0.2 + 0.6 * offset)
            if self.xs[0] <= x < self.xs[-1] - 20:
                yield self.at_or_after(x)

    def draw(self, curve: Curve, label: Point, offset: float, x_at: Callable[[datetime], float]) -> DrawnLine:
        marked = () if curve.dashed else self.spaced(offset)
        return DrawnLine(
            curve.name,
            readable_color(curve.color),
            "M" + " L".join([f"{x} {y:.1f}" for x, y in zip(self.xs, self.heights, strict=True)]),
            "".join(marker_path(curve.marker, point.x, point.y, 3.5) for point in marked),
            self.end,
            marker_path(curve.marker, self.end.x, self.end.y),
            label,
            tuple(replace(self.at_or_after(x_at(at)), text=text) for at, text in curve.annotations),
            curve.dashed,
        )


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
