"""Scores by the days to a market's close: a part of the reports of forecast leaderboards."""

from collections.abc import Callable, Sequence
from math import inf
from operator import attrgetter
from typing import Any

from foundation.bulk import subset
from scoring.constants import DAYS_AHEAD
from scoring.selectors.claims import LEAST_EVENTS
from scoring.selectors.forecast_panels import ResolvedEntry
from scoring.services.trading_leaderboards import LeaderboardContents

Ranking = Callable[[Sequence[ResolvedEntry]], LeaderboardContents]
"""The leaderboard over some entries."""
INTERVALS = ("brier_ci", "alpha_ci", "adjusted_brier_ci")
FIGURES = (
    "forecaster", "family", "display_name", "reference", "external", "rank", "rank_low", "rank_high", "ranked_by", "n",
    "forecasts", "coverage", "brier", "brier_ci", "alpha", "alpha_ci", "adjusted_brier", "adjusted_brier_ci",
)  # fmt: skip


def time_report(resolved: Sequence[ResolvedEntry], rank: Ranking) -> dict[str, Any]:
    """The leaderboards of the forecasts of each bin of days ahead, without forecasters that answered none of them.

    A bin of fewer than LEAST_EVENTS events has no intervals: of six they go from 0 to 1.
    """
    bins = []
    for low, high in DAYS_AHEAD:
        entries = [entry for entry in resolved if low <= entry.days_ahead < (high or inf)]
        questions, events = set(map(attrgetter("question"), entries)), set(map(attrgetter("event"), entries))
        without = INTERVALS if len(events) < LEAST_EVENTS else ()
        scored = []
        for row in rank(entries).entries if entries else ():
            if row["brier"] is not None:
                scored.append(subset(row, FIGURES) | dict.fromkeys(without))
        numbers = {"questions": len(questions), "events": len(events)}
        bins.append({"days_from": low, "days_to": high, **numbers, "entries": scored})
    return {"bins": bins}
