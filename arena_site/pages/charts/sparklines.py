"""Sparklines: line charts without axes, small enough for a table's cell."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

WIDTH, HEIGHT, MARGIN = 96, 28, 3
MAXIMUM_POINTS = 60


@dataclass(frozen=True, slots=True)
class Sparkline:
    """A drawn sparkline; `baseline` is the height of the starting value."""

    width: int
    height: int
    path: str
    end_x: float
    end_y: float
    baseline: float | None


def sparkline(
    values: Sequence[Decimal | float | None],
    baseline: Decimal | float | None = None,
    *,
    low: float | None = None,
    high: float | None = None,
) -> Sparkline | None:
    """The sparkline of values at equal distances; None for fewer than two values.

    `low` and `high` are the bounds of sparklines that share a scale.
    """
    step = max(1, -(-len(values) // MAXIMUM_POINTS))
    shown = [None if value is None else float(value) for value in values[::-1][::step]][::-1]
    known = [value for value in shown if value is not None]
    if len(known) < 2:
        return None
    if baseline is not None:
        known.append(float(baseline))
    bottom = min(known) if low is None else low
    top = max(known) if high is None else high
    span = (top - bottom) or 1.0

    def y(value: float) -> float:
        return HEIGHT - MARGIN - (value - bottom) / span * (HEIGHT - 2 * MARGIN)

    distance = (WIDTH - 2 * MARGIN) / (len(shown) - 1)
    points = [(MARGIN + index * distance, y(value)) for index, value in enumerate(shown) if value is not None]
    path = "M" + "L".join([f"{x:.1f} {height:.1f}" for x, height in points])
    end_x, end_y = (round(coordinate, 1) for coordinate in points[-1])
    return Sparkline(WIDTH, HEIGHT, path, end_x, end_y, None if baseline is None else round(y(float(baseline)), 1))
