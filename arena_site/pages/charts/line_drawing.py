"""The drawing of curves: paths of their lines, bands and markers, and the places of their names."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from arena_site.pages.charts.curves import Curve
from arena_site.pages.charts.markers import marker_path

WIDTH = 1000
LEFT, RIGHT, TOP, BOTTOM = 76, WIDTH - 160, 36, 52
"""The horizontal ends of the axes, and the vertical margins, which hold the axes' titles."""
LABEL_HEIGHT = 18
MARKERS_PER_LINE = 5
"""Markers on a line, besides the one at its end."""


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


class PlottedCurve(NamedTuple):
    """A curve that has values, and its values as numbers."""

    curve: Curve
    values: Sequence[float | None]


def drawn_lines(
    plotted: Sequence[PlottedCurve], xs: Sequence[float], y: Callable[[float], float], bottom: int
) -> list[DrawnLine]:
    """The curves at the horizontal places `xs` and the heights `y`, their names beside their ends."""
    drawn = []
    for curve, values in plotted:
        points, band = [], []
        for at, value in zip(xs, values, strict=True):
            if value is not None:
                points.append((at, y(value)))
        for at, ends in zip(xs, curve.band, strict=False):
            if ends:
                band.append((at, round(y(ends[0]), 1), round(y(ends[1]), 1)))
        start = _start_of_few(curve, xs)
        drawn.append(CurvePoints(curve, points, band, few=[point for point in points if point[0] >= start]))
    labels = spread_labels([curve.points[-1][1] for curve in drawn], TOP + LABEL_HEIGHT / 2, float(bottom))
    lines = []
    for index, (curve_points, label) in enumerate(zip(drawn, labels, strict=True)):
        lines.append(_drawn_line(curve_points, label, index / len(drawn)))
    return lines


def _start_of_few(curve: Curve, xs: Sequence[float]) -> float:
    """The place at which the part of a curve begins that is a mean of few things: the last point before it."""
    index = curve.first_of_few
    return xs[max(0, index - 1)] if index < len(xs) else xs[-1] + 1


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
