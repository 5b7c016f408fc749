"""Past leaderboards: those of forecasts as of an instant, and the backfill of both protocols."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from markets.models import Question
from scoring import leaderboard_history as history
from scoring.constants import FORECAST, TRADING
from scoring.leaderboard_history import LeaderboardKey, LeaderboardPeriod, leaderboard_periods
from scoring.methodologies import arms_asked, separate_versions
from scoring.services.forecast_leaderboards import (
    FIGURES,
    NO_PARTICIPATION,
    REFERENCE_NAMES,
    forecast_leaderboard,
    rank_entries,
)
from scoring.services.forecast_panels import (
    ResolvedEntry,
    Selection,
    family_names,
    resolved_entries,
    selection_families,
)
from scoring.services.trading_leaderboards import past_scored, score_resolutions

REPORTED_METRICS = ("brier", "average_return", "calibration")
"""The metrics of a past report: those of the paired tests and of the curves."""
LIMIT = 1_000
"""Leaderboards of a selection that one backfill computes unless told: each takes a fraction of a second."""
NOBODY = ""
"""A family without a forecast: its entry is that of every family that had none by then."""


def backfill_history(*, limit: int = LIMIT) -> int:
    """Stores the missing past leaderboards, of each arm and methodology the newest `limit`; returns how many."""
    selections = [LeaderboardKey(TRADING, version) for version in separate_versions(TRADING)]
    selections += [
        LeaderboardKey(FORECAST, version, arm) for arm in arms_asked() for version in separate_versions(FORECAST)
    ]
    return sum(backfill(selection, limit=limit) for selection in selections)


def backfill(leaderboard: LeaderboardKey, *, limit: int) -> int:
    """Stores the past leaderboards of every category of a selection that are missing, the newest first."""
    version = history.begin_backfill(leaderboard.protocol)
    periods, compute = past_leaderboards(leaderboard)
    missing = history.missing_periods(leaderboard, periods, version)[:limit]
    return history.store_history(compute(missing), leaderboard.protocol, version) if missing else 0


def past_leaderboards(
    leaderboard: LeaderboardKey,
) -> tuple[list[LeaderboardPeriod], Callable[[Iterable[LeaderboardPeriod]], Iterator[tuple[LeaderboardPeriod, Any]]]]:
    """The periods of a selection's leaderboards, and the function that computes the leaderboards of some periods."""
    if leaderboard.protocol == TRADING:
        resolutions = score_resolutions(leaderboard.methodology)
        return leaderboard_periods(leaderboard, resolutions), partial(past_scored, leaderboard.methodology)
    periods = leaderboard_periods(leaderboard, _resolved().values_list("category", "resolved_at").distinct())
    return periods, partial(past_forecast_entries, Selection(leaderboard.arm, leaderboard.methodology))


def entries_at(selection: Selection, category: str = "") -> list[dict[str, Any]]:
    """The averaged figures of a leaderboard as of the selection's instant; fitted figures and costs are null."""
    key = LeaderboardKey(FORECAST, selection.methodology, selection.arm, category)
    stored = history.stored_entries(key, selection.until)
    if stored is None:
        stored = answered_entries([e for e in resolved_entries(selection) if category in ("", e.category)])
    by_forecaster = {entry["forecaster"]: entry for entry in stored}
    families = selection_families(selection).order_by("pk").values_list("slug", "display_name", "external")
    entries = [
        by_forecaster.get(slug, by_forecaster[NOBODY])
        | {"forecaster": slug, "family": slug, "display_name": name, "external": external}
        for slug, name, external in families
    ]
    entries += [by_forecaster[name] | {"display_name": shown} for name, shown in REFERENCE_NAMES.items()]
    empty = dict.fromkeys(("family", "rank", "rank_low", "rank_high", *FIGURES, *NO_PARTICIPATION))
    return rank_entries([empty | entry for entry in entries])


def report_at(selection: Selection, category: str = "") -> dict[str, Any]:
    """The paired tests, the numbers of rows and the curves of a leaderboard as of the selection's instant."""
    resolved = [entry for entry in resolved_entries(selection) if category in ("", entry.category)]
    leaderboard = forecast_leaderboard(resolved, family_names(selection), {}, metrics=REPORTED_METRICS)
    return {part: leaderboard.report[part] for part in ("pairs", "data", "curves")}


def answered_entries(resolved: Sequence[ResolvedEntry]) -> list[dict[str, Any]]:
    """The entries of the families that answered these questions, of the references and of NOBODY, without nulls.

    Other families and display names are left to the reader: no figure depends on families without a forecast.
    """
    families = sorted({slug for entry in resolved for slug in entry.forecasts})
    externals = sorted({slug for entry in resolved for slug in entry.external_forecasts})
    leaderboard = forecast_leaderboard(
        resolved, dict.fromkeys([*families, NOBODY], ""), dict.fromkeys(externals, ""), reported=False
    )
    return [
        {key: value for key, value in entry.items() if key not in ("rank", "display_name") and value is not None}
        for entry in sorted(leaderboard.entries, key=lambda entry: entry["forecaster"])
    ]


def past_forecast_entries(
    selection: Selection, periods: Iterable[LeaderboardPeriod]
) -> Iterator[tuple[LeaderboardPeriod, list[dict[str, Any]]]]:
    """The entries of past leaderboards, each as of the beginning of its period."""
    resolved = resolved_entries(selection)
    resolved_at = dict(_resolved().values_list("pk", "resolved_at"))
    entries_by_number: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for period in periods:
        of_category = [e for e in resolved if period.key.category in ("", e.category)]
        by_then = [e for e in of_category if (resolved_at.get(e.question) or history.FOREVER) <= period.since]
        number = (period.key.category, len(by_then))  # of a category, later leaderboards hold all earlier entries
        if number not in entries_by_number:
            entries_by_number[number] = answered_entries(by_then)
        yield period, entries_by_number[number]


def _resolved() -> Any:
    return Question.objects.filter(status=Question.Status.RESOLVED).order_by()
