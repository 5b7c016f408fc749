"""The models' record against the market's prices: their lead week by week, and how often each was closer.

All of it rests on alpha, the market's Brier score less the model's on the same question at the prices of that day.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from statistics import fmean
from typing import Any

import numpy as np

from forecast_rank import to_json_value
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.skill import alpha
from forecast_rank.metrics.studentised import studentised_interval
from forecast_rank.metrics.uncertainty import EventSums, event_sums, resample_counts
from scoring.selectors.forecast_panels import ResolvedEntry, panels
from scoring.selectors.performance import EPOCH

WEEK = timedelta(weeks=1)
WINDOW_WEEKS = 4
"""Weeks of forecasts behind a point of the lead over time."""


def market_record(resolved: Sequence[ResolvedEntry], families: Mapping[str, str]) -> dict[str, Any]:
    """The parts `leads` and `closer` of a leaderboard's report, of families by slug."""
    panel = panels(resolved, families).families
    return {
        "leads": _leads(panel, [entry.asked_at for entry in resolved]),
        "closer": _closer(panel, [entry.question for entry in resolved]),
    }


def _leads(panel: Panel, asked_at: Sequence[datetime | None]) -> dict[str, Any]:
    """Mean alpha of the forecasts of the WINDOW_WEEKS before each end of a week, with 95 % intervals.

    Intervals are `studentised_interval` over the events of the window, all forecasters on the same resamples, and never
    beyond -1 and 1, the bounds of alpha; null below four events.
    """
    days = [day for day in asked_at if day is not None]
    if not days or not len(panel):
        return {"ends": [], "forecasters": {}}
    values, weeks = alpha(panel), np.array(list(map(_week, asked_at)))[panel.question]
    ends = range(int(weeks.min()) + 1, int(weeks.max()) + 2)
    points: dict[str, list[Any]] = {name: [] for name in panel.forecasters}
    for end in ends:
        in_window = (weeks < end) & (weeks >= end - WINDOW_WEEKS)
        sums = event_sums(panel, np.where(in_window, values, np.nan))
        has_event = sums.weights.any(axis=0)
        sums = EventSums(sums.sums[:, has_event], sums.weights[:, has_event])
        counts = resample_counts(int(has_event.sum()))
        intervals = np.clip(studentised_interval(sums, counts), -1, 1)
        for place, name in enumerate(panel.forecasters):
            low, high = map(to_json_value, intervals[place])
            lead, events = to_json_value(sums.means[place]), int(sums.events[place])
            points[name].append(None if lead is None else [lead, low, high, events])
    return {"ends": [(EPOCH + end * WEEK).isoformat() for end in ends], "forecasters": points}


def _week(day: datetime | None) -> float:
    return np.nan if day is None else (day - EPOCH) // WEEK


def _closer(panel: Panel, questions: Sequence[int]) -> dict[str, dict[str, int]]:
    """The priced questions of each forecaster, and on how many its own, or the market's, mean Brier score was lower."""
    values = alpha(panel)
    by_question: dict[str, dict[int, list[float]]] = {name: defaultdict(list) for name in panel.forecasters}
    for forecast in np.flatnonzero(~np.isnan(values)).tolist():
        name, question = panel.forecasters[panel.forecaster[forecast]], questions[panel.question[forecast]]
        by_question[name][question].append(float(values[forecast]))
    rows = {}
    for name, answers in by_question.items():
        means = list(map(fmean, answers.values()))
        rows[name] = {
            "questions": len(means),
            "model": sum(mean > 0 for mean in means),
            "market": sum(mean < 0 for mean in means),
        }
    return rows
