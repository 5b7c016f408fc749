"""Square diagrams with both axes from 0 to 1: reliability diagrams and scatter plots."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arena_site.pages.charts.markers import marker_path, readable_color

SIDE, MARGIN = 200, 24
"""Length of a diagram's side, and of the part outside its axes."""
LARGEST_RADIUS, SMALLEST_RADIUS = 9.0, 2.5


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """A drawn bin: its mean forecast, its observed frequency with the interval, and its weight as an area."""

    x: float
    y: float
    low: float
    high: float
    text: str
    path: str


@dataclass(frozen=True, slots=True)
class SquareDiagram:
    """A named square; its axes reach from `start` to `end`."""

    name: str
    color: str
    side: int
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class ReliabilityDiagram(SquareDiagram):
    """Observed frequency (upwards) over forecast probability (to the right)."""

    bins: tuple[ReliabilityBin, ...]


@dataclass(frozen=True, slots=True)
class ScatterDiagram(SquareDiagram):
    """Points as the paths of their markers: filled where the event happened, else hollow."""

    filled: str
    hollow: str
    points: int


def _x(fraction: float) -> float:
    return round(MARGIN + fraction * (SIDE - 2 * MARGIN), 1)


def _y(fraction: float) -> float:
    return round(SIDE - MARGIN - fraction * (SIDE - 2 * MARGIN), 1)


def reliability_diagram(
    name: str, color: str, bins: Sequence[Mapping[str, Any]], marker: int = 0
) -> ReliabilityDiagram:
    """The reliability diagram of one forecaster's bins, as a report holds them."""
    drawn = tuple(_bin(each, marker) for each in bins if each["forecast"] is not None and each["outcome"] is not None)
    return ReliabilityDiagram(name, readable_color(color), SIDE, MARGIN, SIDE - MARGIN, drawn)


def _bin(report: Mapping[str, Any], marker: int) -> ReliabilityBin:
    x, y = _x(report["forecast"]), _y(report["outcome"])
    radius = round(max(SMALLEST_RADIUS, LARGEST_RADIUS * math.sqrt(report["weight"])), 1)
    text = f"said {report['forecast']:.2f}, happened {report['outcome']:.2f}, {report['pairs']} probabilities"
    return ReliabilityBin(x, y, _y(report["low"]), _y(report["high"]), text, marker_path(marker, x, y, radius))


def scatter_diagram(
    name: str, color: str, points: Sequence[tuple[float, float, bool | None]], marker: int = 0
) -> ScatterDiagram:
    """The scatter plot of points (x, y, whether the event happened)."""
    paths: dict[bool, list[str]] = {True: [], False: []}
    for x, y, happened in points:
        paths[happened is True].append(marker_path(marker, _x(x), _y(y), 3))
    filled, hollow = ("".join(paths[happened]) for happened in (True, False))
    color = readable_color(color)
    return ScatterDiagram(name, color, SIDE, MARGIN, SIDE - MARGIN, filled, hollow, len(points))
