"""Parts of the forecast leaderboards' reports as pages and API read them: the stored ones, or those of an instant."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from scoring.competition import last_competition_index
from scoring.constants import ALL_METHODOLOGIES, FORECAST
from scoring.models import Leaderboard

EMPTY: Mapping[str, Mapping[str, Any]] = {
    "time": {"bins": [], "early": None, "revisions": []},
    "costs": {"rows": [], "steps": [], "market": None, "events": 0},
    "after_cutoff": {"entries": [], "report": {}},
    "consistency": {"rows": [], "spearman": None},
    "releases": {"rows": [], "trends": {"released_on": None, "knowledge_cutoff": None}},
}
"""By its name: a part without a resolved question."""


class ReportPart(NamedTuple):
    """The figures of a part under an arm, and their instant."""

    arm: str
    figures: Mapping[str, Any]
    computed_at: datetime | None


def report_part(
    name: str, *, arm: str = "", methodology: str = ALL_METHODOLOGIES, at: datetime | None = None
) -> ReportPart:
    """The part of the leaderboard over all categories, now or as of an instant; by default of the boards' arm."""
    arm = arm or last_competition_index().conditions.board(methodology, at)
    rows = Leaderboard.objects.filter(protocol=FORECAST, arm=arm, methodology=methodology, category="")
    if at is not None:
        rows = rows.filter(computed_at=at)  # the stored leaderboard is the one as of its own instant
    stored, computed_at = rows.values_list(f"report__{name}", "computed_at").first() or (None, None)
    if stored or at is None:
        return ReportPart(arm, stored or EMPTY[name], computed_at)
    from scoring.services.forecast_panels import Selection
    from scoring.services.past_leaderboards import past_report_parts

    return ReportPart(arm, past_report_parts(Selection(arm, methodology, at))[name], at)
