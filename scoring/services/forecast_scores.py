"""Scores of forecasts on resolved questions, one row each."""

from collections.abc import Sequence
from datetime import datetime

import numpy as np
from django.db.models import QuerySet
from forecast_rank.metrics.panel import Floats
from forecast_rank.metrics.proper_scores import accuracy, brier, log_score, spherical
from forecast_rank.metrics.skill import market_brier

from agents.models import Forecast
from markets.models import Question
from scoring.models import ForecastScore
from scoring.services.forecast_panels import ResolvedEntry, forecast_vector, resolved_entry, single_forecasts_panel

MEASURES = {
    "brier": brier,
    "log": log_score,
    "spherical": spherical,
    "accuracy": accuracy,
    "market_brier": market_brier,
}
"""The measures of a forecast, by their columns in `ForecastScore`."""
BATCH = 1_000
"""Forecasts scored at a time, which bounds the memory after an outage."""


def score_forecasts(*, at: datetime) -> int:
    """Scores every forecast on a question resolved by `at` that has no score yet; returns how many.

    A crash between a question's resolution and its scores loses nothing: the next call finds the unscored forecasts.
    """
    unscored = Forecast.objects.resolved().filter(question__resolved_at__lte=at, score=None)
    ids = list(unscored.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(ids), BATCH):
        scores = forecast_scores(Forecast.objects.filter(pk__in=ids[start : start + BATCH]), at=at)
        ForecastScore.objects.bulk_create(scores, ignore_conflicts=True)
    return len(ids)


def forecast_scores(forecasts: QuerySet[Forecast], *, at: datetime) -> list[ForecastScore]:
    """The scores of forecasts on resolved questions, not stored yet."""
    # Prefetched, since a join would fetch an entry again with each of its dozens of forecasts.
    rows = forecasts.defer("stated", "rationale").prefetch_related("entry", "question__options").order_by("pk")
    entries: dict[int, ResolvedEntry] = {}
    resolved = []
    for forecast in rows:
        if forecast.question.status == Question.Status.RESOLVED:
            if forecast.entry_id not in entries:
                entries[forecast.entry_id] = _entry(forecast)
            resolved.append((forecast, entries[forecast.entry_id]))
    if not resolved:
        return []
    figures = forecast_figures(
        [(entry, forecast_vector(forecast.probabilities, entry.options)) for forecast, entry in resolved]
    )
    return [
        ForecastScore(forecast=forecast, resolved_at=forecast.question.resolved_at or at, scored_at=at, **measured)
        for (forecast, _), measured in zip(resolved, figures, strict=True)
    ]


def forecast_figures(rows: Sequence[tuple[ResolvedEntry, Floats]]) -> list[dict[str, float | None]]:
    """The measures of single forecasts, given as vectors on entries; null where there is no number."""
    panel = single_forecasts_panel(rows)
    columns = [measure(panel).tolist() for measure in MEASURES.values()]
    return [
        {name: None if np.isnan(figure) else figure for name, figure in zip(MEASURES, figures, strict=True)}
        for figures in zip(*columns, strict=True)
    ]


def _entry(forecast: Forecast) -> ResolvedEntry:
    question = forecast.question
    options = [(option.name, option.happened) for option in question.options.all()]
    return resolved_entry(forecast.entry_id, question.pk, options, forecast.entry.prices, exclusive=question.exclusive)
