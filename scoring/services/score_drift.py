"""Verification of the scores of bets and forecasts."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from agents.models import Forecast
from arena_verifier.rows import same
from foundation.bulk import in_batches, rows_by
from scoring.models import BrierScore, ForecastScore
from scoring.services.forecast_scores import forecast_scores, score_forecasts
from scoring.services.scores import bet_scores, score_trades, scored_trades, unscored_trades

NOT_COMPARED = {"id", "trade", "forecast", "scored_at", "updated_at"}
GRACE = timedelta(days=2)
"""How long the jobs may take to reach what has resolved or changed."""


def brier_score_drift(*, at: datetime, repair: bool = False) -> Iterator[str]:
    """A line for each score of a bet that is missing or differs; with `repair`, it is computed anew."""
    for batch in in_batches(BrierScore.objects.all()):
        stored = BrierScore.objects.in_bulk(chain.from_iterable(batch))
        trades = scored_trades().filter(brier_score__in=list(stored))
        computed = rows_by("trade_id", bet_scores(trades, at=at))
        yield from _compare_rows(stored, "trade_id", computed, repair=repair)
    missing = unscored_trades(until=at - GRACE)
    yield from _missing(missing, score_trades, at=at, repair=repair)


def forecast_score_drift(*, at: datetime, repair: bool = False) -> Iterator[str]:
    """A line for each score of a forecast that is missing or differs; with `repair`, it is computed anew."""
    for batch in in_batches(ForecastScore.objects.all()):
        stored = ForecastScore.objects.in_bulk(chain.from_iterable(batch))
        forecasts = Forecast.objects.resolved().filter(score__in=list(stored))
        computed = rows_by("forecast_id", forecast_scores(forecasts, at=at))
        yield from _compare_rows(stored, "forecast_id", computed, repair=repair)
    missing = Forecast.objects.resolved().filter(score=None, question__resolved_at__lte=at - GRACE)
    yield from _missing(missing, score_forecasts, at=at, repair=repair)


def _missing(rows: QuerySet, score: Callable[..., int], *, at: datetime, repair: bool) -> Iterator[str]:
    keys = list(rows.order_by("pk").values_list("pk", flat=True))
    yield from (f"{rows.model._meta.verbose_name} {pk} has no score" for pk in keys)
    if keys and repair:
        score(at=at)


def _compare_rows(stored: dict[int, Any], key: str, computed: dict[int, Any], *, repair: bool) -> Iterator[str]:
    for row in stored.values():
        fields = [field for field in row._meta.concrete_fields if field.name not in NOT_COMPARED]
        name, expected = f"{row._meta.verbose_name} {row.pk}", computed.get(getattr(row, key))
        if expected is None:
            yield f"{name} is of nothing that resolved"
        else:
            wrong = []
            for field in fields:
                value, right = getattr(row, field.attname), getattr(expected, field.attname)
                if not same(value, right):
                    wrong.append(f"{field.attname} is {value}, should be {right}")
            if not wrong:
                continue
            yield f"{name}: {', '.join(wrong)}"
        if repair:
            _replace(row, expected)


def _replace(row: Any, expected: Any) -> None:
    """Puts the right score in the place of a stored one.

    The right one is a new row: by its id cached leaderboards of past instants notice that scores have changed.
    """
    with transaction.atomic():
        row.delete()
        if expected is not None:
            expected.scored_at = row.scored_at
            expected.save()
