"""What samples tell of forecasts: whether their spread goes with error, and what later ones bring for their cost."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np
from django.db.models import Sum

from agents.models import Forecast, ModelCall
from arena_verifier.answers import forecast_of_samples
from forecast_rank import bounded_cluster_interval, brier
from foundation.bulk import rows_with_json
from markets.models import QuestionEntry
from scoring.services.difference_intervals import difference_interval
from scoring.services.forecast_panels import ResolvedEntry, entries_by_id, forecast_vector, single_forecasts_panel

BINS = 5


def sample_figures(*, at: datetime | None = None) -> dict[str, Any]:
    """Figures of forecasts of several samples that count, on questions resolved now or by an instant.

    spread : fifths of the forecasts by spread, each with its bounds, its mean Brier score and interval
    later : for each sample after the first by how much it lowers the Brier score of the median so far, for a dollar
    """
    forecasts = Forecast.objects.counted().resolved().filter(samples__isnull=False, spread__isnull=False)
    if at is not None:
        forecasts = forecasts.filter(question__resolved_at__lte=at)
    rows = rows_with_json(forecasts.order_by("pk"), "entry", "spread", json_field="samples")
    entries = entries_by_id(QuestionEntry.objects.filter(pk__in={entry for entry, *_ in rows}))
    scored = [(entries[entry], spread, _running_scores(entries[entry], samples)) for entry, spread, samples in rows]
    return {"spread": _by_spread(scored), "later": _later_samples(scored)}


def _running_scores(entry: ResolvedEntry, samples: Mapping[str, Mapping[str, float]]) -> dict[int, float]:
    """The Brier score of the forecast of the samples so far, by the number of the last."""
    numbers = sorted(map(int, samples))
    vectors = []
    for count in range(1, len(numbers) + 1):
        so_far = [dict(samples[str(number)]) for number in numbers[:count]]
        probabilities = forecast_of_samples(so_far, exclusive=entry.exclusive)["probabilities"]
        vectors.append((entry, forecast_vector(probabilities, entry.options)))
    return dict(zip(numbers, brier(single_forecasts_panel(vectors)).tolist(), strict=True))


Scored = list[tuple[ResolvedEntry, float, dict[int, float]]]


def _by_spread(scored: Scored) -> list[dict[str, Any]]:
    bins = []
    for rows in np.array_split(np.argsort([spread for _, spread, _ in scored], kind="stable"), BINS):
        if len(rows):
            of_bin = [scored[row] for row in rows.tolist()]
            scores = [list(running.values())[-1] for *_, running in of_bin]
            figures = {"low": of_bin[0][1], "high": of_bin[-1][1], "forecasts": len(of_bin), "brier": fmean(scores)}
            events = [entry.event for entry, *_ in of_bin]
            interval = bounded_cluster_interval([min(score, 1.0) for score in scores], events)
            bins.append(figures | {"brier_ci": interval})
    return bins


def _later_samples(scored: Scored) -> list[dict[str, Any]]:
    gains: dict[int, list[tuple[float, str]]] = defaultdict(list)
    for entry, _, running in scored:
        for before, number in pairwise(running):
            gains[number].append((running[before] - running[number], entry.event))
    later = []
    for number, rows in sorted(gains.items()):
        read = Forecast.objects.filter(samples__has_key=str(number)).count()
        calls = ModelCall.objects.filter(elicitation__sample=number)
        cost = float(calls.aggregate(total=Sum("cost_usd"))["total"] or 0) / read
        values, events = [gain for gain, _ in rows], [event for _, event in rows]
        interval = difference_interval(values, events)
        if cost > 0:
            row = {"sample": number, "forecasts": len(rows), "gain": fmean(values), "cost": cost}
            bounds = [bound / cost for bound in interval] if interval else None
            later.append({**row, "per_dollar": row["gain"] / cost, "per_dollar_ci": bounds})
    return later
