"""The parts of a forecast leaderboard's report that have pages of their own."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from scoring.services.consistency_report import GroupProfit, consistency_report, stored_profits
from scoring.services.cost_report import AnswerUsage, TaskKey, answer_usage, cost_report
from scoring.services.cutoff_report import cutoff_report
from scoring.services.forecast_panels import ResolvedEntry, Selection
from scoring.services.forecast_ranking import forecast_leaderboard
from scoring.services.release_report import ReleaseRecords, release_report, stored_releases
from scoring.services.time_report import Ranking, time_report


class ReportInputs(NamedTuple):
    """The inputs of a report's parts, besides resolved entries."""

    usage: Mapping[TaskKey, AnswerUsage]
    releases: ReleaseRecords
    profits: Mapping[str, Sequence[GroupProfit]]


def report_parts(
    selection: Selection, resolved: Sequence[ResolvedEntry], families: Mapping[str, str]
) -> dict[str, Any]:
    """Parts of a report: scores by days to the close, cost, release and knowledge cut-off, and consistency."""
    parts = stored_parts(selection, resolved, families)
    return {**parts, "after_cutoff": cutoff_report(resolved, _ranking(families))}


def stored_parts(
    selection: Selection, resolved: Sequence[ResolvedEntry], families: Mapping[str, str]
) -> dict[str, Any]:
    """The parts of a report whose figures are in archives, from stored rows."""
    inputs = ReportInputs(answer_usage(selection), stored_releases(), stored_profits(selection))
    return archived_parts(resolved, families, inputs)


def archived_parts(
    resolved: Sequence[ResolvedEntry], families: Mapping[str, str], inputs: ReportInputs
) -> dict[str, Any]:
    """The parts of a report whose figures are in archives, from what they follow from."""
    return {
        "time": time_report(resolved, families, _ranking(families)),
        "costs": cost_report(resolved, inputs.usage, _ranking(families)),
        "releases": release_report(resolved, inputs.releases),
        "consistency": consistency_report(resolved, families, inputs.profits),
    }


def _ranking(families: Mapping[str, str]) -> Ranking:
    metrics = ("brier", "alpha", "adjusted_brier")
    return partial(forecast_leaderboard, families=families, externals={}, metrics=metrics)
