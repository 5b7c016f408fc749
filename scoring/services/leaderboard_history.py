"""Past leaderboards: the forecast boards as of an instant, the backfill of both protocols, and their verification."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction

from cohorts.models import Methodology
from markets.models import CacheVersion, Question, QuestionBatch, QuestionSet
from markets.services.cache_versions import lock_scope, renew_versions
from scoring import leaderboard_history as history
from scoring.constants import ALL_METHODOLOGIES, FORECAST, REFERENCES, TRADING
from scoring.leaderboard_history import BoardKey, BoardPeriod, ResolutionTimes
from scoring.models import LeaderboardHistory
from scoring.services.boards import backfill_trading_history, past_scored, resolution_times
from scoring.services.forecast_boards import FIGURES, PARTICIPATION, display_names, forecast_board, ranked
from scoring.services.forecast_panels import ResolvedEntry, Selection, board_families, resolved_entries

DAILY_LIMIT, HOURLY_LIMIT = 1_000, 50
"""Boards of an arm that one backfill computes, each in a fraction of a second."""
NOBODY = ""
"""A family without a forecast: its entry is that of every family that had none by then."""


def backfill_history(*, limit: int) -> int:
    """Stores the missing past boards of both protocols, of each arm the newest `limit`; returns how many."""
    used = Methodology.objects.filter(cohorts__isnull=False).order_by("version")
    stored = sum(
        backfill_trading_history(version) for version in _versions(list(used.values_list("version", flat=True)))
    )
    asked = QuestionSet.objects.order_by("methodology").values_list("methodology", flat=True)
    for arm in QuestionBatch.objects.order_by("arm").values_list("arm", flat=True).distinct():
        for version in _versions(list(asked.distinct())):
            stored += backfill_forecast_history(Selection(arm, version), limit=limit)
    return stored


def _versions(methodologies: list[str]) -> list[str]:
    """All methodologies together, and each by itself where there are several: the board of one alone is that of all."""
    several = list(dict.fromkeys(methodologies))
    return [ALL_METHODOLOGIES, *several] if len(several) > 1 else [ALL_METHODOLOGIES]


def entries_at(selection: Selection, category: str = "") -> list[dict[str, Any]]:
    """The averaged figures of a board as of the selection's instant; fitted figures and costs are null."""
    key = BoardKey(FORECAST, _stored_methodology(selection), selection.arm, category)
    stored = history.stored_entries(key, selection.until)
    if stored is None:
        stored = answered_entries([e for e in resolved_entries(selection) if category in ("", e.category)])
    by_forecaster = {entry["forecaster"]: entry for entry in stored}
    families = board_families(selection).order_by("pk").values_list("slug", "display_name", "external")
    names = display_names([])
    entries = [
        by_forecaster.get(slug, by_forecaster[NOBODY])
        | {"forecaster": slug, "family": slug, "display_name": name, "external": external}
        for slug, name, external in families
    ]
    entries += [by_forecaster[name] | {"display_name": names[name]} for name in REFERENCES]
    empty = dict.fromkeys(("family", "rank", "rank_low", "rank_high", *FIGURES, *PARTICIPATION))
    return ranked([empty | entry for entry in entries])


def answered_entries(asked: Sequence[ResolvedEntry]) -> list[dict[str, Any]]:
    """The entries of the families that answered these questions, of the references and of NOBODY, without nulls.

    Other families and display names are left to the reader: no figure depends on families without a forecast.
    """
    families = sorted({slug for entry in asked for slug in entry.forecasts})
    externals = sorted({slug for entry in asked for slug in entry.external_forecasts})
    board = forecast_board(asked, [*families, NOBODY], externals=externals, reported=False)
    return [
        {key: value for key, value in entry.items() if key not in ("rank", "display_name") and value is not None}
        for entry in sorted(board.entries, key=lambda entry: entry["forecaster"])
    ]


def backfill_forecast_history(selection: Selection, *, limit: int) -> int:
    """Stores the past boards of a selection that are missing, the newest first; returns how many."""
    version = history.begin_backfill(FORECAST)
    board = BoardKey(FORECAST, selection.methodology, selection.arm)
    missing = history.missing_boards(board, _question_times(), version)[:limit]
    return history.store_boards(_past_forecast_boards(selection, missing), FORECAST, version) if missing else 0


def _past_forecast_boards(
    selection: Selection, periods: Iterable[BoardPeriod]
) -> Iterator[tuple[BoardPeriod, list[dict[str, Any]]]]:
    """The entries of past boards, each as of the beginning of its period."""
    asked = resolved_entries(selection)
    resolved_at = dict(_resolved().values_list("pk", "resolved_at"))
    known: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for period in periods:
        of_category = [e for e in asked if period.key.category in ("", e.category)]
        by_then = [e for e in of_category if (resolved_at.get(e.question) or history.FOREVER) <= period.since]
        cache_key = (period.key.category, len(by_then))  # of a category, later boards hold all earlier entries
        if cache_key not in known:
            known[cache_key] = answered_entries(by_then)
        yield period, known[cache_key]


def _resolved() -> Any:
    return Question.objects.filter(status=Question.Status.RESOLVED).order_by()


def _question_times() -> ResolutionTimes:
    return ResolutionTimes.of(_resolved().values_list("category", "resolved_at").distinct())


def _stored_methodology(selection: Selection) -> str:
    """The methodology under which a selection's past boards are stored: the board of one alone is that of all."""
    version = selection.methodology
    others = QuestionSet.objects.exclude(methodology=version)
    return version if version and others.exists() else ALL_METHODOLOGIES


# ── verification ──────────────────────────────────────────────────────────────────────────────────


def leaderboard_history_drift(*, repair: bool = False) -> Iterator[str]:
    """A line for each stored past board, not marked as stale, that differs from what is computed; `repair` deletes it.

    The next backfill stores it anew; until then it is computed for each reader.
    """
    boards = LeaderboardHistory.objects.order_by("protocol", "methodology", "arm")
    for protocol, methodology, arm in boards.values_list("protocol", "methodology", "arm").distinct():
        yield from _selection_drift(BoardKey(protocol, methodology, arm), repair=repair)


def _selection_drift(board: BoardKey, *, repair: bool) -> Iterator[str]:
    """The drift of the boards of every category of a selection."""
    scope = history.SCOPES[board.protocol]
    version = CacheVersion.objects.filter(scope=scope).values_list("version", flat=True).first()
    rows = LeaderboardHistory.objects.filter(protocol=board.protocol, methodology=board.methodology, arm=board.arm)
    stored = {(row.category, row.since): row for row in rows}
    if board.protocol == TRADING:
        times = resolution_times(board.methodology)
        periods = {(period.key.category, period.since): period for period in times.periods(board)}
        computed: Any = past_scored(board.methodology, [period for key, period in periods.items() if key in stored])
    else:
        selection = Selection(board.arm, board.methodology)
        periods = {(period.key.category, period.since): period for period in _question_times().periods(board)}
        computed = _past_forecast_boards(selection, [period for key, period in periods.items() if key in stored])
    wrong = dict.fromkeys(stored.keys() - periods.keys(), "no resolution begins there")
    for period, entries in computed:
        key = (period.key.category, period.since)
        if stored[key].until > period.until:
            wrong[key] = f"it should end at {period.until:%Y-%m-%d %H:%M:%S}"
        elif stored[key].entries != json.loads(json.dumps(entries, cls=DjangoJSONEncoder)):
            wrong[key] = "its entries are not those of the scores by then"
    with transaction.atomic():
        lock_scope(scope)
        row = CacheVersion.objects.get(scope=scope)
        if row.version != version:
            return  # scores came meanwhile: what was computed is of a past state, and the next run compares anew
        current = {key for key in wrong if row.stale_from is None or key[1] < row.stale_from}
        if repair and current:
            LeaderboardHistory.objects.filter(pk__in=[stored[key].pk for key in current]).delete()
            renew_versions(scope)
    for key in sorted(current):
        yield f"past leaderboard {stored[key]}: {wrong[key]}"
