"""Axes: the range of values that a chart spans, and the positions of its ticks."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

VALUE_TICKS, TIME_TICKS = 7, 7
"""The most ticks of an axis of values, and of an axis of time."""
HEADROOM = 0.06
"""Share of the range of values that is left free above and below the lines."""
MINIMUM_RANGE = 0.01
"""Smallest range as a share of the largest value, so that noise on a flat line does not look like mountains."""
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
TIME_STEPS = (
    MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY,
    7 * DAY, 14 * DAY, 28 * DAY, 91 * DAY, 364 * DAY,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tick:
    """A position on an axis, and the value or instant there."""

    position: float
    value: float | datetime


def value_range(values: Sequence[float]) -> tuple[float, float]:
    """The lowest and the highest value of an axis that shows these."""
    low, high = min(values), max(values)
    minimum = max(abs(low), abs(high)) * MINIMUM_RANGE or 1.0
    if high - low < minimum:
        middle = (low + high) / 2
        low, high = middle - minimum / 2, middle + minimum / 2
    headroom = (high - low) * HEADROOM
    return low - headroom, high + headroom


def _tick_step(low: float, high: float) -> float:
    rough = (high - low) / VALUE_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)


def value_ticks(low: float, high: float) -> list[float]:
    """Round values between the bounds."""
    step = _tick_step(low, high)
    return [index * step for index in range(math.ceil(low / step), math.floor(high / step) + 1)]


def tick_decimals(low: float, high: float) -> int:
    """The number of decimals that tells the ticks between the bounds apart."""
    return max(0, -math.floor(math.log10(_tick_step(low, high)) + 1e-9))


def log_ticks(low: float, high: float) -> list[float]:
    """The values 1, 2 and 5 times a power of ten in a range of positive values; over three powers the powers alone."""
    factors = (1, 2, 5) if high < 1000 * low else (1,)
    ticks = []
    for exponent in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        ticks += [factor * 10.0**exponent for factor in factors]
    return [tick for tick in ticks if low <= tick <= high] or [low]


def time_ticks(first: datetime, last: datetime) -> list[datetime]:
    """Round instants in the range at equal distances; its first instant if there is none."""
    index = bisect_left(TIME_STEPS, (last - first) / TIME_TICKS)
    step = TIME_STEPS[min(index, len(TIME_STEPS) - 1)]
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    tick = midnight + step * max(0, math.ceil((first - midnight) / step))
    ticks: list[datetime] = []
    while tick <= last and len(ticks) <= TIME_TICKS:
        ticks.append(tick)
        tick += step
    return ticks or [first]
