"""The forecast leaderboard of a selection as pages read it: the stored one, or that of a past instant."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from scoring.constants import ALL_METHODOLOGIES, FORECAST
from scoring.leaderboard_keys import Entry
from scoring.models import Leaderboard
from scoring.selectors.competition import last_competition_index

PAST_REPORT = ("pairs", "data", "curves", "market", "leads", "against_market")
"""The parts of a report that a past leaderboard has."""
WHOLE_REPORT = ("report",)
EMPTY_PARTS: Mapping[str, Mapping[str, Any]] = {
    "time": {"bins": [], "early": None, "revisions": []},
    "costs": {"rows": [], "steps": [], "market": None, "events": 0},
    "after_cutoff": {"entries": [], "report": {}},
    "consistency": {"rows": [], "spearman": None},
    "releases": {"rows": [], "trends": {"released_on": None, "knowledge_cutoff": None}},
    "conditions": {"differences": [], "prices": None, "spread": [], "later": []},
}
"""Parts that are read alone, and what they are without a resolved question."""


class ForecastBoard(NamedTuple):
    """A leaderboard's entries, its report or the parts of it that were asked for, and its instant.

    pk : of the stored leaderboard; None for a past one, whose report has tests, numbers of rows and curves only
    """

    entries: Sequence[Entry]
    report: Mapping[str, Any]
    computed_at: datetime | None
    pk: int | None = None


def forecast_board(
    *,
    arm: str = "",
    methodology: str = ALL_METHODOLOGIES,
    category: str = "",
    at: datetime | None = None,
    parts: Sequence[str] = (),
    after_cutoff: bool = False,
) -> ForecastBoard:
    """The leaderboard now or as of an instant; of the stored report only some parts where `parts` names them.

    Without an arm, that of the methodology's boards. `after_cutoff` restricts it to questions that were created after
    each model's knowledge cut-off, of all categories.
    """
    arm = arm or last_competition_index().conditions.board(methodology, at)
    if after_cutoff:
        figures, computed_at = report_part("after_cutoff", arm=arm, methodology=methodology, at=at)
        return ForecastBoard(figures["entries"], figures["report"], computed_at)
    rows = Leaderboard.objects.filter(protocol=FORECAST, arm=arm, methodology=methodology, category=category)
    if at is not None:
        rows = rows.filter(computed_at=at)  # the stored leaderboard is the one as of its own instant
    columns = [f"report__{part}" for part in parts] or WHOLE_REPORT
    row = rows.values_list("pk", "entries", "computed_at", *columns).first()
    if row is not None:
        (pk, entries, computed_at), values = row[:3], row[3:]
        report = {part: value or {} for part, value in zip(parts, values, strict=True)} if parts else values[0]
        return ForecastBoard(entries, report, computed_at, pk)
    if at is None:
        return ForecastBoard([], {}, None)
    from scoring.services.forecast_panels import Selection
    from scoring.services.past_leaderboards import past_condition_report, past_forecast_contents, past_report_parts

    if "conditions" in parts:
        return ForecastBoard([], {"conditions": past_condition_report(at)}, at)
    if not EMPTY_PARTS.keys().isdisjoint(parts):
        return ForecastBoard([], past_report_parts(Selection(arm, methodology, at)), at)
    past = past_forecast_contents(Selection(arm, methodology, at), category)
    return ForecastBoard(past.entries, {part: past.report.get(part, {}) for part in PAST_REPORT}, at)


def report_part(
    name: str, *, arm: str, methodology: str = ALL_METHODOLOGIES, at: datetime | None = None
) -> tuple[Mapping[str, Any], datetime | None]:
    """One of EMPTY_PARTS of the leaderboard over all categories, now or as of an instant, and its instant."""
    board = forecast_board(arm=arm, methodology=methodology, at=at, parts=(name,))
    return board.report.get(name) or EMPTY_PARTS[name], board.computed_at


def reliability_bins(forecaster: str, arm: str, at: datetime) -> Sequence[Mapping[str, Any]]:
    """The reliability bins of a forecaster as of an instant."""
    curves = forecast_board(arm=arm, at=at).report.get("curves", {})
    bins: Sequence[Mapping[str, Any]] = curves.get("reliability", {}).get("forecasters", {}).get(forecaster, ())
    return bins
