"""The parts of a forecast leaderboard's report that have pages of their own."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from scoring.selectors.forecast_panels import ResolvedEntry, Selection
from scoring.services.cost_report import answer_usage, cost_report
from scoring.services.cutoff_report import cutoff_report
from scoring.services.forecast_ranking import forecast_leaderboard
from scoring.services.time_report import Ranking, time_report


def report_parts(
    selection: Selection, resolved: Sequence[ResolvedEntry], families: Mapping[str, str]
) -> dict[str, Any]:
    """Parts of a report: scores by days to the close, by cost, and after the knowledge cut-off."""
    return {
        "time": time_report(resolved, _ranking(families)),
        "costs": cost_report(resolved, answer_usage(selection), _ranking(families)),
        "after_cutoff": cutoff_report(resolved, _ranking(families)),
    }


def _ranking(families: Mapping[str, str]) -> Ranking:
    metrics = ("brier", "alpha", "adjusted_brier")
    return partial(forecast_leaderboard, families=families, externals={}, metrics=metrics)
