"""Scores of forecasts on resolved questions, one row each."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from agents.models import Forecast
from agents.models.forecast import ForecastQuerySet
from forecast_rank.metrics.proper_scores import accuracy, brier, log_score, spherical
from forecast_rank.metrics.skill import market_brier
from foundation.bulk import create_missing
from markets.models import QuestionEntry
from scoring.models import ForecastScore
from scoring.selectors.forecast_panels import (
    ResolvedEntry,
    Vector,
    entries_by_id,
    forecast_vector,
    single_forecasts_panel,
)

MEASURES = {
    "brier": brier,
    "log": log_score,
    "spherical": spherical,
    "accuracy": accuracy,
    "market_brier": market_brier,
}
"""The measures of a forecast, by their columns in `ForecastScore`."""
BATCH = 5_000
"""Forecasts scored at a time, and the rest of those on the last one's entry, which bounds memory after an outage."""


def score_forecasts(*, at: datetime) -> int:
    """Scores every forecast on a question resolved by `at` that has no score yet; returns how many.

    A crash between a question's resolution and its scores loses nothing: the next call finds the unscored forecasts.
    """
    unscored = Forecast.objects.resolved().filter(question__resolved_at__lte=at, score=None)
    entries = list(unscored.order_by("entry").values_list("entry", flat=True))
    position = 0
    while position < len(entries):
        # By the range of their entries: with 5,000 ids in the statement PostgreSQL takes half as long again.
        last = entries[min(position + BATCH, len(entries)) - 1]
        batch = unscored.filter(entry__gte=entries[position], entry__lte=last)
        create_missing(forecast_scores(batch, at=at), "forecast")
        position = bisect_right(entries, last)
    return len(entries)


def forecast_scores(forecasts: ForecastQuerySet, *, at: datetime) -> list[ForecastScore]:
    """The scores of those of the forecasts whose questions have resolved, not stored yet."""
    # Columns, since a model with its entry for each forecast would take half of the time.
    resolved = forecasts.resolved().order_by("entry", "pk")
    rows = list(resolved.values_list("question__resolved_at", "pk", "entry", "probabilities"))
    entries = entries_by_id(QuestionEntry.objects.filter(pk__in={row[-2] for row in rows}))
    vectors = []
    for *_, pk, probabilities in rows:
        vectors.append((entries[pk], forecast_vector(probabilities, entries[pk].options)))
    scores = []
    for (resolved_at, forecast, *_), figures in zip(rows, forecast_figures(vectors), strict=True):
        scores.append(ForecastScore(forecast_id=forecast, resolved_at=resolved_at or at, scored_at=at, **figures))
    return scores


def forecast_figures(rows: Sequence[tuple[ResolvedEntry, Vector]]) -> list[dict[str, Any]]:
    """The measures of single forecasts, given as vectors on entries; null where there is no number."""
    panel = single_forecasts_panel(rows)
    columns = [measure(panel).tolist() for measure in MEASURES.values()]
    rows_of_figures = []
    for figures in zip(*columns, strict=True):
        numbers = (None if math.isnan(figure) else figure for figure in figures)
        rows_of_figures.append(dict(zip(MEASURES, numbers, strict=True)))
    return rows_of_figures
