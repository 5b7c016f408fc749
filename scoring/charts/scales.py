"""Axes: which values a chart spans, and where its ticks stand."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

VALUE_TICKS, TIME_TICKS = 5, 7
HEADROOM = 0.06
"""How much of the range of values is left free above and below the lines."""
FLAT = 0.01
"""The least range, as a share of the value, so that a flat line does not show noise as mountains."""
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
STRIDES = (
    MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY,
    7 * DAY, 14 * DAY, 28 * DAY, 91 * DAY, 364 * DAY,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis with the value, the instant or the number that it stands for."""

    at: float
    value: float | datetime


def span_of(values: Sequence[float]) -> tuple[float, float]:
    """The least and the greatest value of an axis that shows these."""
    low, high = min(values), max(values)
    least = max(abs(low), abs(high)) * FLAT or 1.0
    if high - low < least:
        middle = (low + high) / 2
        low, high = middle - least / 2, middle + least / 2
    room = (high - low) * HEADROOM
    return low - room, high + room


def step_of(low: float, high: float) -> float:
    """A round distance between ticks, so that there are about as many as there should be."""
    rough = (high - low) / VALUE_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)


def steps(low: float, high: float) -> list[float]:
    """Round values between the bounds."""
    step = step_of(low, high)
    return [index * step for index in range(math.ceil(low / step), math.floor(high / step) + 1)]


def places_of(low: float, high: float) -> int:
    """How many decimal places tell the ticks between the bounds apart."""
    return max(0, -math.floor(math.log10(step_of(low, high)) + 1e-9))


def time_steps(first: datetime, last: datetime) -> list[datetime]:
    """Round instants inside the chart, evenly spaced; the first instant where there is none."""
    stride = next((each for each in STRIDES if (last - first) / each <= TIME_TICKS), STRIDES[-1])
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    start = midnight + stride * max(0, math.ceil((first - midnight) / stride))
    found = [start + stride * index for index in range(TIME_TICKS + 1)]
    return [at for at in found if first <= at <= last] or [first]
