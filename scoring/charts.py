"""Line charts as geometry: numbers in, coordinates out. A template turns them into SVG."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

WIDTH = 1000
LEFT, RIGHT, TOP, BOTTOM = 76, 150, 14, 34
LABEL_HEIGHT = 18
VALUE_TICKS, TIME_TICKS = 5, 6
HEADROOM = 0.06
"""How much of the range of values is left free above and below the lines."""
FLAT = 0.01
"""The least range, as a share of the value, so that a flat line does not show noise as mountains."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One line: a value for each instant of the chart, None where it has none. `turns` are worth a mark."""

    name: str
    color: str
    values: Sequence[Decimal | None]
    turns: Sequence[tuple[datetime, str]] = ()


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A drawn curve: its path, where it ends, where its name stands, and its marked points."""

    name: str
    color: str
    path: str
    end: Point
    label: Point
    marks: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis with the value or the instant that it stands for."""

    at: float
    value: float | datetime


@dataclass(frozen=True, slots=True)
class LineChart:
    """All that a template needs to draw."""

    width: int
    height: int
    left: int
    right: int
    bottom: int
    lines: tuple[Line, ...]
    values: tuple[Tick, ...]
    times: tuple[Tick, ...]
    baseline: float | None


def line_chart(
    instants: Sequence[datetime],
    curves: Sequence[Curve],
    *,
    baseline: Decimal | None = None,
    height: int = 380,
) -> LineChart | None:
    """The chart of `curves` over `instants` (ascending); None where there is nothing to draw.

    `baseline` is a value drawn as a line of its own, such as the starting balance.
    """
    known = [float(value) for curve in curves for value in curve.values if value is not None]
    if not known:
        return None
    if baseline is not None:
        known.append(float(baseline))
    low, high = _range(known)
    first, span = instants[0], (instants[-1] - instants[0]) or timedelta(seconds=1)
    right, bottom = WIDTH - RIGHT, height - BOTTOM

    def x(at: datetime) -> float:
        return round(LEFT + (at - first) / span * (right - LEFT), 1)

    def y(value: Decimal | float) -> float:
        return round(bottom - (float(value) - low) / (high - low) * (bottom - TOP), 1)

    drawn = []
    for curve in curves:
        points = [Point(x(at), y(value)) for at, value in zip(instants, curve.values, strict=True) if value is not None]
        if points:
            drawn.append((curve, points))
    heights = _spread([points[-1].y for _, points in drawn], TOP + LABEL_HEIGHT / 2, float(bottom))
    lines = tuple(
        Line(
            curve.name,
            curve.color,
            "M" + " L".join(f"{point.x} {point.y}" for point in points),
            points[-1],
            Point(right + 22, label),
            tuple(_mark(instants, points, x(at), text) for at, text in curve.turns),
        )
        for (curve, points), label in zip(drawn, heights, strict=True)
    )
    return LineChart(
        WIDTH,
        height,
        LEFT,
        right,
        bottom,
        lines,
        tuple(Tick(y(value), value) for value in _steps(low, high)),
        tuple(Tick(x(at), at) for at in _days(instants)),
        None if baseline is None else y(baseline),
    )


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    least = max(abs(low), abs(high)) * FLAT or 1.0
    if high - low < least:
        middle = (low + high) / 2
        low, high = middle - least / 2, middle + least / 2
    room = (high - low) * HEADROOM
    return low - room, high + room


def _steps(low: float, high: float) -> list[float]:
    """Round values between the bounds, about as many as there should be ticks."""
    rough = (high - low) / VALUE_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [index * step for index in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _days(instants: Sequence[datetime]) -> list[datetime]:
    """Midnights inside the chart, evenly spaced; the first instant where there is none."""
    first, last = instants[0], instants[-1]
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    stride = timedelta(days=max(1, math.ceil((last - first) / timedelta(days=TIME_TICKS))))
    days = [midnight + stride * index for index in range(TIME_TICKS + 2)]
    return [at for at in days if first <= at <= last] or [first]


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


def _mark(instants: Sequence[datetime], points: Sequence[Point], x: float, text: str) -> Point:
    """The first drawn point at or after `x`, with its text."""
    at = next((point for point in points if point.x >= x), points[-1])
    return Point(at.x, at.y, text)
