"""The data of line charts: curves, single points and events."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from agents.models import Family
from arena_site.pages.charts.markers import marker_of

FEW = 3
"""A line is faded where it is a mean of fewer things than this."""

Value = Decimal | float | None


@dataclass(frozen=True, slots=True)
class Curve:
    """The data of one line: a value for each position of the chart, None for a missing one.

    `dashed` is for references, which are no competitors. A band has its lower and upper end at each position that has
    a value; `numbers` says of how many things a value is the mean.
    """

    name: str
    color: str
    values: Sequence[Value]
    marker: int = 0
    dashed: bool = False
    band: Sequence[tuple[float, float] | None] = ()
    numbers: Sequence[int | None] = ()

    @property
    def first_of_few(self) -> int:
        """The index from which on the curve is a mean of few things; the number of positions if it never is."""
        for index, number in enumerate(self.numbers):
            if number is not None and number < FEW:
                return index
        return len(self.values)


@dataclass(frozen=True, slots=True)
class ChartEvent:
    """An event at an instant and a value: drawn filled if its kind is `buy`, else hollow."""

    at: datetime
    value: Decimal | float
    text: str
    color: str
    marker: int = 0
    kind: str = "buy"
    href: str = ""


def family_curve(family: Family, values: Sequence[Value], **options: Any) -> Curve:
    """A family's curve, in its colour and with its marker."""
    return Curve(family.display_name, family.color, values, marker_of(family), **options)


def single_point(
    name: str, family: Family, place: int, of: int, value: float | None, interval: Sequence[float] | None
) -> Curve:
    """A family's curve of one point with its interval, at one of so many positions."""
    values: list[float | None] = [None] * of
    band: list[tuple[float, float] | None] = [None] * of
    values[place] = value
    band[place] = None if interval is None else (interval[0], interval[1])
    return Curve(name, family.color, values, marker_of(family), band=band)
