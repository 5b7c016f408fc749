"""Line charts over time, or over whole numbers."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from agents.models import Family
from scoring.charts.marks import mark_of, readable, shape
from scoring.charts.scales import Tick, places_of, span_of, steps, time_steps

WIDTH = 1000
LEFT, RIGHT, TOP, BOTTOM = 76, 160, 14, 34
LABEL_HEIGHT = 18
SHAPES_A_LINE = 5
"""How often a line carries its shape, besides at its end."""
MONEY = "money"
UNITS = (MONEY, "percent", "share", "price", "score", "count")

Value = Decimal | float | None


@dataclass(frozen=True, slots=True)
class Curve:
    """One line: a value for each instant of the chart, None where it has none. `turns` are worth a mark.

    `mark` is the shape that tells it from others; `dashed` is for what is no competitor, such as a reference.
    """

    name: str
    color: str
    values: Sequence[Value]
    turns: Sequence[tuple[datetime, str]] = ()
    mark: int = 0
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at an instant, at a value: drawn filled where it is a `buy`, else hollow."""

    at: datetime
    value: Decimal | float
    text: str
    color: str
    mark: int = 0
    kind: str = "buy"
    href: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A drawn curve: its path, the shapes on it, where it ends, where its name stands, and its marked points."""

    name: str
    color: str
    path: str
    shapes: str
    end: Point
    end_shape: str
    label: Point
    marks: tuple[Point, ...]
    dashed: bool


@dataclass(frozen=True, slots=True)
class Placed:
    """A drawn event."""

    event: Event
    color: str
    path: str


@dataclass(frozen=True, slots=True)
class LineChart:
    """All that a template needs to draw, and as `data` what a script needs to draw it anew."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    lines: tuple[Line, ...]
    values: tuple[Tick, ...]
    times: tuple[Tick, ...]
    baseline: float | None
    unit: str
    places: int
    events: tuple[Placed, ...]
    data: dict[str, Any]

    @property
    def linked(self) -> bool:
        """Are there links in it? A picture, as screen readers take one, can hold none."""
        return any(placed.event.href for placed in self.events)


def curve_of(family: Family, values: Sequence[Value], turns: Sequence[tuple[datetime, str]] = ()) -> Curve:
    """A family's curve, in its colour and with its shape."""
    return Curve(family.display_name, readable(family.color), values, turns, mark_of(family))


def line_chart(
    instants: Sequence[datetime],
    curves: Sequence[Curve],
    *,
    baseline: Decimal | None = None,
    height: int = 380,
    unit: str = MONEY,
    events: Sequence[Event] = (),
) -> LineChart | None:
    """The chart of `curves` over `instants` (ascending); None where there is nothing to draw.

    `baseline` is a value drawn as a line of its own, such as the starting balance. Events outside the instants are
    left out.
    """
    if not instants:
        return None
    first, last = instants[0], instants[-1]
    span = (last - first) or timedelta(seconds=1)
    share = partial(_share_of_span, first, span)
    ticks = [(share(at), at) for at in time_steps(first, last)]
    places = [round(at.timestamp() * 1000) for at in instants]
    within = [event for event in events if first <= event.at <= last]
    return _Plan(curves, ticks, places, "time", baseline, height, unit, within).chart(
        [share(at) for at in instants], share
    )


def order_chart(
    places: Sequence[int],
    curves: Sequence[Curve],
    *,
    baseline: Decimal | None = None,
    height: int = 380,
    unit: str = MONEY,
) -> LineChart | None:
    """The chart of `curves` over whole numbers (ascending, such as questions so far); None for nothing to draw."""
    if not places:
        return None
    span = max(places[-1] - places[0], 1)
    ticks = [((at - places[0]) / span, at) for at in steps(places[0], places[0] + span) if at == int(at)]
    shares = [(at - places[0]) / span for at in places]
    return _Plan(curves, ticks, places, "order", baseline, height, unit, ()).chart(shares, lambda at: 0.0)


def _share_of_span(first: datetime, span: timedelta, at: datetime) -> float:
    return (at - first) / span


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be drawn; places on the horizontal axis are given as shares of its width."""

    curves: Sequence[Curve]
    ticks: Sequence[tuple[float, float | datetime]]
    places: Sequence[int]
    axis: str
    baseline: Decimal | None
    height: int
    unit: str
    events: Sequence[Event]

    def chart(self, shares: Sequence[float], share_of: Callable[[datetime], float]) -> LineChart | None:
        values = [[None if value is None else float(value) for value in curve.values] for curve in self.curves]
        known = [value for row in values for value in row if value is not None]
        if not known:
            return None
        if self.baseline is not None:
            known.append(float(self.baseline))
        known.extend(float(event.value) for event in self.events)
        low, high = span_of(known)
        right, bottom = WIDTH - RIGHT, self.height - BOTTOM
        span, room = high - low, bottom - TOP

        def x(share: float) -> float:
            return round(LEFT + share * (right - LEFT), 1)

        def y(value: Decimal | float) -> float:
            return round(bottom - (float(value) - low) / span * room, 1)

        across = [x(share) for share in shares]
        drawn = []
        for curve, row in zip(self.curves, values, strict=True):
            whole = None not in row
            at = across if whole else [place for place, value in zip(across, row, strict=True) if value is not None]
            # `y`, written out and not yet rounded: it is done for every point of every curve.
            heights = [bottom - (value - low) / span * room for value in row if value is not None]
            if heights:
                drawn.append((curve, _Path(at, heights)))
        labels = _spread([path.end.y for _, path in drawn], TOP + LABEL_HEIGHT / 2, float(bottom))
        lines = tuple(
            _line(curve, path, Point(right + 24, label), place / len(drawn), lambda at: x(share_of(at)))
            for place, ((curve, path), label) in enumerate(zip(drawn, labels, strict=True))
        )
        return LineChart(
            WIDTH,
            self.height,
            LEFT,
            right,
            TOP,
            bottom,
            lines,
            tuple(Tick(y(value), value) for value in steps(low, high)),
            tuple(Tick(x(share), at) for share, at in self.ticks),
            None if self.baseline is None else y(self.baseline),
            self.unit,
            places_of(low, high),
            tuple(_placed(event, x(share_of(event.at)), y(event.value)) for event in self.events),
            self._data(values, lambda event: [x(share_of(event.at)), y(event.value)]),
        )

    def _data(self, values: Sequence[Sequence[float | None]], place: Callable[[Event], list[float]]) -> dict[str, Any]:
        if self.unit != MONEY:  # that is in cents
            values = [[None if value is None else round(value, 4) for value in row] for row in values]
        return {
            "axis": self.axis,
            "unit": self.unit,
            "places": list(self.places),
            "baseline": None if self.baseline is None else float(self.baseline),
            "curves": [
                {
                    "name": curve.name,
                    "color": readable(curve.color),
                    "shape": shape(curve.mark, 0, 0, 3.5),
                    "dashed": curve.dashed,
                    "values": row,
                    "turns": [[round(at.timestamp() * 1000), text] for at, text in curve.turns],
                }
                for curve, row in zip(self.curves, values, strict=True)
                if any(value is not None for value in row)
            ],
            "events": [
                [round(event.at.timestamp() * 1000), float(event.value), *place(event)] for event in self.events
            ],
        }


@dataclass(frozen=True, slots=True)
class _Path:
    """The places of a curve's points on the chart, from left to right; `heights` are not rounded."""

    across: Sequence[float]
    heights: Sequence[float]

    @property
    def end(self) -> Point:
        return self.at_or_after(self.across[-1])

    @property
    def drawn(self) -> str:
        return "M" + " L".join([f"{x} {y:.1f}" for x, y in zip(self.across, self.heights, strict=True)])

    def at_or_after(self, x: float) -> Point:
        """The first point at or after `x`; the last where there is none."""
        place = min(bisect_left(self.across, x), len(self.across) - 1)
        return Point(self.across[place], round(self.heights[place], 1))

    def spaced(self, offset: float) -> Iterator[Point]:
        """A few of the points, evenly apart, each line's at places of its own."""
        reach = (WIDTH - RIGHT - LEFT) / SHAPES_A_LINE
        for index in range(SHAPES_A_LINE):
            at = LEFT + reach * (index + 0.2 + 0.6 * offset)
            if self.across[0] <= at < self.across[-1] - 20:
                yield self.at_or_after(at)


def _line(curve: Curve, path: _Path, label: Point, offset: float, place: Callable[[datetime], float]) -> Line:
    shapes = () if curve.dashed else path.spaced(offset)
    end = path.end
    return Line(
        curve.name,
        readable(curve.color),
        path.drawn,
        "".join(shape(curve.mark, point.x, point.y, 3.5) for point in shapes),
        end,
        shape(curve.mark, end.x, end.y),
        label,
        tuple(replace(path.at_or_after(place(at)), text=text) for at, text in curve.turns),
        curve.dashed,
    )


def _placed(event: Event, x: float, y: float) -> Placed:
    return Placed(event, readable(event.color), shape(event.mark, x, y, 5.5))


def _spread(heights: Sequence[float], top: float, bottom: float) -> list[float]:
    """The heights moved apart so that labels at them do not overlap, in the same order from top to bottom."""
    order = sorted(range(len(heights)), key=heights.__getitem__)
    placed = list(heights)
    floor = top
    for index in order:
        placed[index] = floor = max(placed[index], floor)
        floor += LABEL_HEIGHT
    ceiling = bottom
    for index in reversed(order):
        placed[index] = ceiling = min(placed[index], ceiling)
        ceiling -= LABEL_HEIGHT
    return [round(height, 1) for height in placed]
