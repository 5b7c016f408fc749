"""The returns of traders before and after costs: a sentence and a chart."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from agents.models import Family
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.intervals import interval_chart
from arena_site.pages.filters import count, fraction, signed_percent

Entry = Mapping[str, Any]
NOTE = (
    "The dot is the mean return after spreads, the depth of the order books and the venue’s fee; the line leads to that"
    " of the same trades at midpoints, by which the game is played and ranked."
)


def costs_sentence(entries: Sequence[Entry], condition: str) -> str:
    """A sentence on the loss of the first entry to costs, and on the number of models that keep a profit.

    `condition` tells of the cohorts.
    """
    first = entries[0]
    before, share = first["return_before_costs"], first["vanished_share"]
    cost_note = (
        "" if share is None else f": they take {'more than all' if share > 1 else fraction(share)} of its profit"
    )
    sentence = (
        f"After costs {first['display_name']} has a mean return of {signed_percent(first['return_after_costs'])}"
        f" instead of {signed_percent(before)} {condition}{cost_note}."
    )
    with_profit = [entry for entry in entries if entry["return_before_costs"] > 0]
    keep = sum(entry["return_after_costs"] > 0 for entry in with_profit)
    if len(with_profit) > 1:
        sentence += f" Of the {count(len(with_profit))} models with a profit at midpoints {count(keep)} keep one."
    return sentence


def costs_figure(entries: Sequence[Entry], families: Mapping[str, Family], *, query: str, at: datetime) -> Figure:
    """The returns of the entries with books after and before costs."""
    rows = []
    for entry in sorted(entries, key=lambda entry: -entry["return_after_costs"]):
        ends = sorted((entry["return_after_costs"], entry["return_before_costs"]))
        rows.append({**entry, "returns": ends})
    chart = interval_chart(
        rows, "return_after_costs", families, interval="returns", x_title="Mean return (%)", unit="percent",
        baselines={"Break-even": 0.0},
    )  # fmt: skip
    lowered = sum(entry["return_after_costs"] < entry["return_before_costs"] for entry in entries)
    title = f"Costs lower the mean return of {count(lowered)} of {count(len(entries))} models."
    return Figure("after-costs", title, chart, NOTE, at=at, query=query)
