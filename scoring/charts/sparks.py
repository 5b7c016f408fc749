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
    shown = list(values[::-1][::step])[::-1]
    known = [float(value) for value in shown if value is not None]
    if len(known) < 2:
        return None
    if baseline is not None:
        known.append(float(baseline))
    least = min(known) if low is None else low
    most = max(known) if high is None else high
    reach = (most - least) or 1.0

    def y(value: Decimal | float) -> float:
        return round(HEIGHT - ROOM - (float(value) - least) / reach * (HEIGHT - 2 * ROOM), 1)

    across = (WIDTH - 2 * ROOM) / (len(shown) - 1)
    points = [(round(ROOM + place * across, 1), y(value)) for place, value in enumerate(shown) if value is not None]
    end_x, end_y = points[-1]
    path = "M" + "L".join(f"{x} {height}" for x, height in points)
    return Spark(WIDTH, HEIGHT, path, end_x, end_y, None if baseline is None else y(baseline))
