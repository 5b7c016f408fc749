"""Verification of scores, and of the figures of current leaderboards that follow from scores alone."""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Model, QuerySet
from django.utils import timezone

from agents.models import Forecast
from markets.foundation.bulk import in_batches
from markets.services.cache_versions import Scope, mark_history_stale
from scoring.constants import TRADING
from scoring.models import BrierScore, ForecastScore, Leaderboard
from scoring.services.boards import current_scores, refresh_boards
from scoring.services.forecast_scores import forecast_scores
from scoring.services.scores import brier_scores, scored_trades

BRIER_FIELDS = (
    "agent_id",
    "market_id",
    "probability",
    "outcome",
    "score",
    "market_probability",
    "market_score",
    "resolved_at",
)
FORECAST_FIELDS = ("brier", "log", "spherical", "accuracy", "market_brier", "resolved_at")


def brier_score_drift(*, repair: bool = False) -> Iterator[str]:
    """A line for each score of a bet that differs from what is computed; with `repair`, it is computed anew."""
    for batch in in_batches(BrierScore.objects.all()):
        stored = BrierScore.objects.in_bulk([pk for (pk,) in batch])
        trades = scored_trades().filter(brier_score__in=list(stored)).select_related("market")
        computed = {score.trade_id: score for score in brier_scores(list(trades), at=timezone.now())}
        yield from _compared(stored, "trade_id", computed, BRIER_FIELDS, Scope.TRADING_HISTORY, repair=repair)


def forecast_score_drift(*, repair: bool = False) -> Iterator[str]:
    """A line for each score of a forecast that differs from what is computed; with `repair`, it is computed anew."""
    for batch in in_batches(ForecastScore.objects.all()):
        stored = ForecastScore.objects.in_bulk([pk for (pk,) in batch])
        forecasts: QuerySet[Forecast] = Forecast.objects.resolved().filter(score__in=list(stored))
        computed = {score.forecast_id: score for score in forecast_scores(forecasts, at=timezone.now())}
        yield from _compared(stored, "forecast_id", computed, FORECAST_FIELDS, None, repair=repair)


def leaderboard_drift(*, repair: bool = False) -> Iterator[str]:
    """A line for each entry of a trading leaderboard whose scores differ from what is computed of as many bets."""
    wrong = []
    for board in Leaderboard.objects.filter(protocol=TRADING, category=""):
        slugs = [entry["family"] for entry in board.entries]
        computed = json.loads(json.dumps(current_scores(board.methodology, slugs)))
        for entry in board.entries:
            due = computed.get(entry["family"])
            if due and due["resolved_bets"] == entry["resolved_bets"] and any(entry[f] != due[f] for f in due):
                wrong.append(f"leaderboard {board}: the scores of {entry['family']} are not those of its bets")
    if wrong and repair:
        refresh_boards(at=timezone.now())
    yield from wrong


def _compared(
    stored: dict[int, Any],
    key: str,
    computed: dict[int, Any],
    fields: Sequence[str],
    scope: Scope | None,
    *,
    repair: bool,
) -> Iterator[str]:
    for row in stored.values():
        due = computed.get(getattr(row, key))
        wrong = [name for name in fields if due is not None and not _equal(getattr(row, name), getattr(due, name))]
        if due is not None and not wrong:
            continue
        name = f"{row._meta.verbose_name} {row.pk}"
        if due is None:
            yield f"{name} is of nothing that resolved"
        else:
            figures = ", ".join(f"{field} is {getattr(row, field)}, should be {getattr(due, field)}" for field in wrong)
            yield f"{name}: {figures}"
        if repair:
            _replace(row, due, fields, scope)


def _replace(row: Any, due: Model | None, fields: Sequence[str], scope: Scope | None) -> None:
    """Makes a stored score right, and the past leaderboards stale that were computed from it."""
    instants = [row.resolved_at, *([due.resolved_at] if due is not None else [])]  # type: ignore[attr-defined]
    with transaction.atomic():
        if due is None:
            row.delete()
        else:
            for field in fields:
                setattr(row, field, getattr(due, field))
            row.save()
        if scope is not None:
            mark_history_stale(scope, since=min(instants))


def _equal(stored: Any, due: Any) -> bool:
    if isinstance(stored, float) and isinstance(due, float):
        return math.isclose(stored, due, rel_tol=1e-9, abs_tol=1e-12)
    return bool(stored == due)
