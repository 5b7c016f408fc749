"""What samples tell of forecasts: whether their spread goes with error, and what later ones bring for their cost."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from operator import attrgetter, itemgetter
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Sum

from agents.models import Forecast, ModelCall
from arena_verifier.answers import forecast_of_samples
from forecast_rank import bounded_cluster_interval, brier
from foundation.bulk import rows_with_json
from markets.models import QuestionEntry
from scoring.selectors.return_tests import difference_interval
from scoring.services.forecast_panels import ResolvedEntry, entries_by_id, forecast_vector, single_forecasts_panel

BINS = 5


class SampledForecast(NamedTuple):
    """A forecast of several samples: their spread, and the Brier score of those so far, by the last one's number."""

    event: str
    spread: float
    running: dict[int, float]

    @property
    def brier(self) -> float:
        return list(self.running.values())[-1]


def sample_figures(*, at: datetime | None = None) -> dict[str, Any]:
    """Figures of forecasts of several samples that count, on questions resolved now or by an instant.

    spread : fifths of the forecasts by spread, each with its bounds, its mean Brier score and interval
    later : for each sample after the first by how much it lowers the Brier score of the median so far, for a dollar
    """
    forecasts = Forecast.objects.counted().resolved().filter(samples__isnull=False, spread__isnull=False)
    if at is not None:
        forecasts = forecasts.filter(question__resolved_at__lte=at)
    rows = rows_with_json(forecasts.order_by("pk"), "entry", "spread", json_field="samples")
    entries = entries_by_id(QuestionEntry.objects.filter(pk__in=set(map(itemgetter(0), rows))))
    scored = []
    for pk, spread, samples in rows:
        scored.append(SampledForecast(entries[pk].event, spread, _running_scores(entries[pk], samples)))
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


def _by_spread(scored: Sequence[SampledForecast]) -> list[dict[str, Any]]:
    bins = []
    scored = sorted(scored, key=attrgetter("spread"))
    for places in np.array_split(np.arange(len(scored)), BINS):
        if len(places):
            forecasts = scored[places[0] : places[-1] + 1]
            scores = list(map(attrgetter("brier"), forecasts))
            bounds = {"low": forecasts[0].spread, "high": forecasts[-1].spread}
            interval = bounded_cluster_interval(np.minimum(scores, 1.0), list(map(attrgetter("event"), forecasts)))
            bins.append({**bounds, "forecasts": len(scores), "brier": fmean(scores), "brier_ci": interval})
    return bins


def _later_samples(scored: Sequence[SampledForecast]) -> list[dict[str, Any]]:
    gains: dict[int, list[float]] = defaultdict(list)
    events: dict[int, list[str]] = defaultdict(list)
    for forecast in scored:
        for before, number in pairwise(forecast.running):
            gains[number].append(forecast.running[before] - forecast.running[number])
            events[number].append(forecast.event)
    later = []
    for number, values in sorted(gains.items()):
        read = Forecast.objects.filter(samples__has_key=str(number)).count()
        calls = ModelCall.objects.filter(elicitation__sample=number)
        cost = float(calls.aggregate(total=Sum("cost_usd"))["total"] or 0) / read
        interval = difference_interval(values, events[number])
        if cost > 0:
            row = {"sample": number, "forecasts": len(values), "gain": fmean(values), "cost": cost}
            bounds = [bound / cost for bound in interval] if interval else None
            later.append({**row, "per_dollar": row["gain"] / cost, "per_dollar_ci": bounds})
    return later
