"""The forecast of record of several samples: medians, the mean of log odds, and the spread. Needs no database."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median, stdev
from typing import NamedTuple

CLIP = 0.001
"""Log odds are of probabilities clipped to [CLIP, 1 - CLIP]."""

Vector = Mapping[str, float]
"""Option to probability."""


class SampleForecast(NamedTuple):
    """The combined forecast of samples.

    medians : option to the median, as it is
    probabilities : the medians, normalised where options are exclusive
    log_odds_mean : option to the probability that the mean of the clipped log odds stands for
    spread : the standard deviation (n - 1) of the clipped log odds, the mean over options; None of a single sample
    """

    medians: dict[str, float]
    probabilities: dict[str, float]
    log_odds_mean: dict[str, float]
    spread: float | None

    @property
    def normalised(self) -> bool:
        return self.medians != self.probabilities


def combine_samples(samples: Sequence[Vector], *, exclusive: bool) -> SampleForecast:
    """The forecast of at least one sample; each states a probability for the same options."""
    medians: dict[str, float] = {}
    log_odds_mean: dict[str, float] = {}
    deviations: list[float] = []
    for option in samples[0]:
        values = [sample[option] for sample in samples]
        odds = list(map(log_odds, values))
        medians[option] = median(values)
        log_odds_mean[option] = 1 / (1 + math.exp(-fmean(odds)))
        if len(odds) > 1:
            deviations.append(stdev(odds))
    return SampleForecast(
        medians, _normalise(medians, exclusive=exclusive), log_odds_mean, fmean(deviations) if deviations else None
    )


def log_odds(probability: float) -> float:
    """The natural logarithm of the clipped odds."""
    clipped = min(max(probability, CLIP), 1 - CLIP)
    return math.log(clipped / (1 - clipped))


def _normalise(medians: Mapping[str, float], *, exclusive: bool) -> dict[str, float]:
    """Divided by their sum where options are exclusive; equal shares where all medians are 0."""
    total = math.fsum(medians.values())
    if not exclusive or abs(total - 1) <= 1e-12:
        return dict(medians)
    if total == 0:
        return dict.fromkeys(medians, 1 / len(medians))
    return {option: value / total for option, value in medians.items()}
