"""The forecast leaderboard of a selection as pages read it: the stored one, or that of a past instant."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.core.cache import cache

from markets.prompt_conditions import PRICED
from markets.services.cache_versions import Scope, current_versions
from scoring.constants import ALL_METHODOLOGIES, FORECAST
from scoring.leaderboard_entries import Entry, leaderboard_entries
from scoring.models import Leaderboard

PAST_REPORT_LIFETIME_S = 3600
WHOLE_REPORT = ("report",)


class ForecastBoard(NamedTuple):
    """A leaderboard's entries, its report or the parts of it that were asked for, and its instant.

    pk : of the stored leaderboard; None for a past one, whose report has paired tests, numbers of rows and curves only
    """

    entries: Sequence[Entry]
    report: Mapping[str, Any]
    computed_at: datetime | None
    pk: int | None = None


def forecast_board(
    *,
    arm: str = PRICED,
    methodology: str = ALL_METHODOLOGIES,
    category: str = "",
    at: datetime | None = None,
    parts: Sequence[str] = (),
) -> ForecastBoard:
    """The leaderboard now or as of an instant; of the stored report only some parts where `parts` names them."""
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
    entries = leaderboard_entries(FORECAST, methodology=methodology, arm=arm, category=category, at=at)
    return ForecastBoard(entries, _past_report(arm, methodology, category, at), at)


def reliability_bins(forecaster: str, arm: str, at: datetime) -> Sequence[Mapping[str, Any]]:
    """The reliability bins of a forecaster as of an instant."""
    curves = forecast_board(arm=arm, at=at).report.get("curves", {})
    bins: Sequence[Mapping[str, Any]] = curves.get("reliability", {}).get("forecasters", {}).get(forecaster, ())
    return bins


def _past_report(arm: str, methodology: str, category: str, at: datetime) -> Mapping[str, Any]:
    """The report of a past leaderboard, cached until the past changes."""
    from scoring.services.forecast_panels import Selection
    from scoring.services.history_backfill import report_at

    version = current_versions().get(Scope.FORECAST_HISTORY)
    key = f"past-report:{version}:{arm}:{methodology}:{category.encode().hex()}:{at.timestamp()}"
    report: Mapping[str, Any] | None = cache.get(key) if version else None
    if report is None:
        report = report_at(Selection(arm, methodology, at), category)
        cache.set(key, report, PAST_REPORT_LIFETIME_S)
    return report
