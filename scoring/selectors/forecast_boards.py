"""The forecast leaderboard of a selection as pages read it: the current one, or a published one."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from scoring.constants import ALL_METHODOLOGIES, FORECAST
from scoring.leaderboard_keys import Entry
from scoring.models import Leaderboard
from scoring.selectors.competition import last_competition_index
from scoring.selectors.published_boards import published_board

WHOLE_REPORT = ("report",)
EMPTY_PARTS: Mapping[str, Mapping[str, Any]] = {
    "time": {"bins": []},
    "costs": {"rows": [], "steps": [], "market": None, "events": 0},
    "after_cutoff": {"entries": [], "report": {}},
    "conditions": {"differences": [], "prices": None},
}
"""Parts that are read alone, and what they are without a resolved question."""


class ForecastBoard(NamedTuple):
    """A leaderboard's entries, its report or the parts of it that were asked for, and its instant.

    pk : of the current leaderboard; None for a published one, whose report has tests and numbers only
    """

    entries: Sequence[Entry]
    report: Mapping[str, Any]
    computed_at: datetime | None
    pk: int | None = None


NO_BOARD = ForecastBoard([], {}, None)


def forecast_board(
    *,
    arm: str = "",
    methodology: str = ALL_METHODOLOGIES,
    category: str = "",
    at: datetime | None = None,
    parts: Sequence[str] = (),
    after_cutoff: bool = False,
) -> ForecastBoard:
    """The current leaderboard, its report whole or in `parts`, or with `at` the last one published by then.

    Without an arm, that of the methodology's boards. `after_cutoff` restricts it to questions that were created after
    each model's knowledge cut-off, of all categories.
    """
    arm = arm or last_competition_index().conditions.board(methodology, at)
    if after_cutoff:
        figures, computed_at = report_part("after_cutoff", arm=arm, methodology=methodology)
        return ForecastBoard(figures["entries"], figures["report"], computed_at)
    if at is not None:
        published = published_board(FORECAST, at, methodology=methodology, arm=arm, category=category)
        return ForecastBoard(published.entries, published.report, published.at) if published else NO_BOARD
    rows = Leaderboard.objects.filter(protocol=FORECAST, arm=arm, methodology=methodology, category=category)
    columns = [f"report__{part}" for part in parts] or WHOLE_REPORT
    row = rows.values_list("pk", "entries", "computed_at", *columns).first()
    if row is None:
        return NO_BOARD
    (pk, entries, computed_at), values = row[:3], row[3:]
    report = {part: value or {} for part, value in zip(parts, values, strict=True)} if parts else values[0]
    return ForecastBoard(entries, report, computed_at, pk)


def report_part(
    name: str, *, arm: str, methodology: str = ALL_METHODOLOGIES
) -> tuple[Mapping[str, Any], datetime | None]:
    """One of EMPTY_PARTS of the leaderboard over all categories, and its instant."""
    board = forecast_board(arm=arm, methodology=methodology, parts=(name,))
    return board.report.get(name) or EMPTY_PARTS[name], board.computed_at
