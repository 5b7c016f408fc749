"""Sparklines: the course of one value, small enough for a table's cell."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

WIDTH, HEIGHT, ROOM = 96, 28, 3
MOST_POINTS = 60


@dataclass(frozen=True, slots=True)
class Spark:
    """A line without axes; `baseline` is the height of the value it began from, where that lies inside."""

    width: int
    height: int
    path: str
    end_x: float
    end_y: float
    baseline: float | None


def spark(
    values: Sequence[Decimal | float | None],
    baseline: Decimal | float | None = None,
    *,
    low: float | None = None,
    high: float | None = None,
) -> Spark | None:
    """The sparkline of values at equal distances; None without two of them.

    `low` and `high` are the bounds of several that shall be compared.
    """
    step = max(1, -(-len(values) // MOST_POINTS))
    shown = [None if value is None else float(value) for value in values[::-1][::step]][::-1]
    known = [value for value in shown if value is not None]
    if len(known) < 2:
        return None
    if baseline is not None:
        known.append(float(baseline))
    least = min(known) if low is None else low
    most = max(known) if high is None else high
    reach = (most - least) or 1.0

    def y(value: float) -> float:
        return HEIGHT - ROOM - (value - least) / reach * (HEIGHT - 2 * ROOM)

    across = (WIDTH - 2 * ROOM) / (len(shown) - 1)
    points = [(ROOM + place * across, y(value)) for place, value in enumerate(shown) if value is not None]
    path = "M" + "L".join([f"{x:.1f} {height:.1f}" for x, height in points])
    end_x, end_y = (round(place, 1) for place in points[-1])
    return Spark(WIDTH, HEIGHT, path, end_x, end_y, None if baseline is None else round(y(float(baseline)), 1))
