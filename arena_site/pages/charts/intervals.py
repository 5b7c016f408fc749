"""Dot-and-interval charts: a row for each model, a line for each baseline, positions in percent of the width."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agents.models import Family
from arena_site.pages.charts.axes import Tick, tick_decimals, value_range, value_ticks


class IntervalRow(NamedTuple):
    """A model's score and interval; `bracket` is its place in the bracket of ties: first, tied, spanned or last."""

    entry: Mapping[str, Any]
    family: Family | None
    x: float
    low: float
    high: float
    bracket: str


class IntervalChart(NamedTuple):
    """The rows, best first, the baselines as vertical lines, and the ticks below."""

    rows: Sequence[IntervalRow]
    baselines: Sequence[tuple[Mapping[str, Any], float]]
    ticks: Sequence[Tick]
    decimals: int


def brier_chart(
    entries: Sequence[Mapping[str, Any]],
    baselines: Sequence[Mapping[str, Any]],
    families: Mapping[str, Family],
    tied: Sequence[Mapping[str, Any]],
) -> IntervalChart | None:
    """The Brier scores of ranked models beside those of baselines; `tied` with the first model. None without scores."""
    if not entries:
        return None
    intervals = [entry["brier_ci"] or [entry["brier"]] * 2 for entry in entries]
    _, high = value_range([0.0, *(high for _, high in intervals), *(baseline["brier"] for baseline in baselines)])

    def x(value: float) -> float:
        return round(100 * max(0.0, value) / high, 2)

    ties = {entry["forecaster"] for entry in tied}
    last = max((index for index, entry in enumerate(entries) if entry["forecaster"] in ties), default=0)

    def bracket(index: int) -> str:
        if not last or index > last:
            return ""
        if index in (0, last):
            return "last" if index else "first"
        return "tied" if entries[index]["forecaster"] in ties else "spanned"

    rows = [
        IntervalRow(entry, families.get(entry["family"]), x(entry["brier"]), x(bounds[0]), x(bounds[1]), bracket(index))
        for index, (entry, bounds) in enumerate(zip(entries, intervals, strict=True))
    ]
    ticks = [Tick(x(value), value) for value in value_ticks(0.0, high)]
    return IntervalChart(rows, [(each, x(each["brier"])) for each in baselines], ticks, tick_decimals(0.0, high))
