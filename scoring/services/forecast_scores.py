"""Scores of forecasts on resolved questions, one row each."""

from collections.abc import Sequence
from datetime import datetime

import numpy as np
from forecast_rank.metrics.panel import Floats
from forecast_rank.metrics.proper_scores import accuracy, brier, log_score, spherical
from forecast_rank.metrics.skill import market_brier

from agents.models import Forecast
from agents.models.forecast import ForecastQuerySet
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


def forecast_scores(forecasts: ForecastQuerySet, *, at: datetime) -> list[ForecastScore]:
    """The scores of those of the forecasts whose questions have resolved, not stored yet."""
    # Prefetched, since a join would fetch an entry again with each of its dozens of forecasts.
    rows = forecasts.resolved().defer("stated", "rationale").prefetch_related("entry", "question__options")
    resolved = list(rows.order_by("pk"))
    entries = {pk: _entry(forecast) for pk, forecast in {row.entry_id: row for row in resolved}.items()}
    vectors = [forecast_vector(row.probabilities, entries[row.entry_id].options) for row in resolved]
    figures = forecast_figures([(entries[row.entry_id], vector) for row, vector in zip(resolved, vectors, strict=True)])
    return [
        ForecastScore(forecast=row, resolved_at=row.question.resolved_at or at, scored_at=at, **measured)
        for row, measured in zip(resolved, figures, strict=True)
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
