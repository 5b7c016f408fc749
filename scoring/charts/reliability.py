"""Reliability diagrams: what was said beside how often it happened."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scoring.charts.marks import readable, shape

PLOT, EDGE = 200, 24
"""The side of a diagram, and how much of it lies outside the axes."""
LARGEST_DOT, SMALLEST_DOT = 9.0, 2.5


@dataclass(frozen=True, slots=True)
class Dot:
    """A bin of a reliability diagram: what was said, how often it happened with its interval, and how much is in it."""

    x: float
    y: float
    low: float
    high: float
    radius: float
    text: str
    path: str


@dataclass(frozen=True, slots=True)
class Reliability:
    """A square diagram: what was said to the right, what happened upwards, both from 0 to 1."""

    name: str
    color: str
    side: int
    near: float
    far: float
    dots: tuple[Dot, ...]
    mark: int = 0


def reliability_chart(name: str, color: str, bins: Sequence[Mapping[str, Any]], mark: int = 0) -> Reliability:
    """The diagram of one forecaster's bins, as a ranking's report has them."""

    def place(share: float) -> float:
        return EDGE + share * (PLOT - 2 * EDGE)

    dots = tuple(
        _dot(
            round(place(each["forecast"]), 1),
            round(PLOT - place(each["outcome"]), 1),
            round(PLOT - place(each["low"]), 1),
            round(PLOT - place(each["high"]), 1),
            round(max(SMALLEST_DOT, LARGEST_DOT * math.sqrt(each["weight"])), 1),
            f"said {each['forecast']:.2f}, happened {each['outcome']:.2f}, {each['pairs']} probabilities",
            mark,
        )
        for each in bins
        if each["forecast"] is not None and each["outcome"] is not None
    )
    return Reliability(name, readable(color), PLOT, EDGE, PLOT - EDGE, dots, mark)


def _dot(x: float, y: float, low: float, high: float, radius: float, text: str, mark: int) -> Dot:
    return Dot(x, y, low, high, radius, text, shape(mark, x, y, radius))
