"""Square diagrams with both axes from 0 to 1: reliability diagrams and scatter plots."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from agents.models import Family
from arena_site.pages.charts.markers import REFERENCE_COLORS, marker_of, marker_path
from arena_site.pages.filters import fraction

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
    """A named square, its axes from `start` to `end`, with bins, or with markers of points as two paths.

    Markers are filled where the event happened, else hollow.
    """

    side: ClassVar[int] = SIDE
    start: ClassVar[int] = MARGIN
    end: ClassVar[int] = SIDE - MARGIN
    name: str
    color: str
    bins: tuple[ReliabilityBin, ...] = ()
    filled: str = ""
    hollow: str = ""


def _x(fraction: float) -> float:
    return round(MARGIN + fraction * (SIDE - 2 * MARGIN), 1)


def _y(fraction: float) -> float:
    return round(SIDE - MARGIN - fraction * (SIDE - 2 * MARGIN), 1)


def reliability_diagram(
    name: str, bins: Sequence[Mapping[str, Any]], family: Family | None, reference: str = ""
) -> SquareDiagram:
    """Observed frequency (upwards) over forecast probability (to the right), of the bins of a report.

    They are a family's, or those of a reference forecaster.
    """
    color, marker = (family.color, marker_of(family)) if family else (REFERENCE_COLORS[reference], 0)
    drawn = tuple(_bin(each, marker) for each in bins if each["forecast"] is not None and each["outcome"] is not None)
    return SquareDiagram(name, color, drawn)


def _bin(report: Mapping[str, Any], marker: int) -> ReliabilityBin:
    x, y = _x(report["forecast"]), _y(report["outcome"])
    radius = round(max(SMALLEST_RADIUS, LARGEST_RADIUS * math.sqrt(report["weight"])), 1)
    stated, observed = fraction(report["forecast"]), fraction(report["outcome"])
    text = f"forecast {stated}, observed {observed}, {report['pairs']} probabilities"
    return ReliabilityBin(x, y, _y(report["low"]), _y(report["high"]), text, marker_path(marker, x, y, radius))


def scatter_diagram(family: Family, points: Sequence[tuple[float, float, bool | None]]) -> SquareDiagram:
    """The scatter plot of a family's points (x, y, whether the event happened)."""
    paths: dict[bool, list[str]] = {True: [], False: []}
    for x, y, happened in points:
        paths[happened is True].append(marker_path(marker_of(family), _x(x), _y(y), 3))
    filled, hollow = ("".join(paths[happened]) for happened in (True, False))
    return SquareDiagram(family.display_name, family.color, filled=filled, hollow=hollow)
