"""Sparklines, which are small enough for a table's cell."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from arena_site.pages.charts.curves import Value
from arena_site.pages.charts.line_drawing import Point

SPARKLINE_WIDTH, SPARKLINE_HEIGHT, SPARKLINE_MARGIN = 96, 28, 3
SPARKLINE_POINTS = 60


@dataclass(frozen=True, slots=True)
class Sparkline:
    """A drawn sparkline; `baseline` is the height of the starting value."""

    width: ClassVar[int] = SPARKLINE_WIDTH
    height: ClassVar[int] = SPARKLINE_HEIGHT
    path: str
    end: Point
    baseline: float


def sparkline(values: Sequence[Value], baseline: Decimal | float, low: float, high: float) -> Sparkline | None:
    """The sparkline of values at equal distances, on a scale from `low` to `high`; None for fewer than two values."""
    step = max(1, -(-len(values) // SPARKLINE_POINTS))
    sample = values[::-1][::step][::-1]
    if sum(value is not None for value in sample) < 2:
        return None
    scale = (SPARKLINE_HEIGHT - 2 * SPARKLINE_MARGIN) / ((high - low) or 1.0)
    distance = (SPARKLINE_WIDTH - 2 * SPARKLINE_MARGIN) / (len(sample) - 1)

    def y(value: Decimal | float) -> float:
        return round(SPARKLINE_HEIGHT - SPARKLINE_MARGIN - (float(value) - low) * scale, 1)

    points = [
        Point(round(SPARKLINE_MARGIN + index * distance, 1), y(value))
        for index, value in enumerate(sample)
        if value is not None
    ]
    return Sparkline("M" + "L".join([f"{point.x} {point.y}" for point in points]), points[-1], y(baseline))
