"""Scoring stated probabilities on questions that resolved: a row for each forecast, once."""

from collections.abc import Sequence
from datetime import datetime

import numpy as np

from agents.models import Forecast
from markets.models import Question
from scoring.metrics.panel import Floats
from scoring.metrics.proper import accuracy, brier, log_score, spherical
from scoring.metrics.skill import market_brier
from scoring.models import ForecastScore
from scoring.services.forecast_panels import AskedEntry, asked_entry, one_by_one

BATCH = 1_000
"""Forecasts that are scored at a time: keeps the memory small after an outage."""


def score_forecasts(*, at: datetime) -> int:
    """Scores every forecast on a question resolved by `at` that has no score yet; returns how many.

    What it needs is on record, so a crash between a question's end and its scores loses nothing.
    """
    unscored = Forecast.objects.scored().filter(question__resolved_at__lte=at, score=None)
    ids = list(unscored.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(ids), BATCH):
        _score(ids[start : start + BATCH], at)
    return len(ids)


def _score(ids: Sequence[int], at: datetime) -> None:
    # Fetched apart: a dozen families in several arms answer the same entry, and every one of them would bring it along.
    forecasts = (
        Forecast.objects.filter(pk__in=ids)
        .defer("stated", "rationale")
        .prefetch_related("entry", "question__options")
        .order_by("pk")
    )
    asked_by_entry: dict[int, AskedEntry] = {}
    rows = []
    for forecast in forecasts:
        if forecast.question.status == Question.Status.RESOLVED:
            if forecast.entry_id not in asked_by_entry:
                asked_by_entry[forecast.entry_id] = _asked(forecast)
            rows.append((forecast, asked_by_entry[forecast.entry_id]))
    panel = one_by_one([(asked, _vector(forecast, asked)) for forecast, asked in rows])
    columns = [measure(panel).tolist() for measure in (brier, log_score, spherical, accuracy, market_brier)]
    ForecastScore.objects.bulk_create(
        [
            ForecastScore(
                forecast=forecast,
                brier=own,
                log=log,
                spherical=ball,
                accuracy=hit,
                market_brier=None if np.isnan(market) else market,
                resolved_at=forecast.question.resolved_at or at,
                scored_at=at,
            )
            for (forecast, _), own, log, ball, hit, market in zip(rows, *columns, strict=True)
        ],
        ignore_conflicts=True,
    )


def _asked(forecast: Forecast) -> AskedEntry:
    question = forecast.question
    options = [(option.name, option.happened) for option in question.options.all()]
    return asked_entry(forecast.entry_id, question.pk, options, forecast.entry.prices, exclusive=question.exclusive)


def _vector(forecast: Forecast, asked: AskedEntry) -> Floats:
    return np.array([forecast.probabilities[name] for name in asked.options], dtype=np.float64)
