"""Each forecaster's pairs of a probability and an outcome summed by probability, and what is fitted to the sums."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from forecast_rank.metrics.flat_arrays import Floats, spans, stable_order
from forecast_rank.metrics.panel import Panel

LOGIT_CLIP = 1e-6
STEPS = 50


class DistinctPairs(NamedTuple):
    """The pairs of one forecaster summed by probability: K different ones in ascending order, all of shape (K,).

    Attributes
    ----------
    probability : array
    mass, happened : arrays
        Sums of the weights, and of weight x outcome.
    spread : array
        Sums of weight x (outcome - mean outcome)^2.
    any_happened, any_failed : arrays of bool
        Whether an outcome is above 0, and whether one is below 1.
    """

    probability: Floats
    mass: Floats
    happened: Floats
    spread: Floats
    any_happened: NDArray[np.bool_]
    any_failed: NDArray[np.bool_]


def distinct_pairs(panel: Panel) -> Iterator[tuple[int, DistinctPairs]]:
    """The forecasters with forecasts, each with the sums of their pairs; weighted as in `bin_pairs`.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> [(person, pairs)] = distinct_pairs(from_arrays([[[0.7], [0.2], [0.2]]], [[1], [0], [1]], exclusive=False))
    >>> pairs.probability.tolist(), pairs.mass.tolist(), pairs.happened.tolist()
    ([0.2, 0.7], [2.0, 1.0], [1.0, 1.0])
    """
    forecaster_count, questions = len(panel.forecasters), panel.questions
    order = stable_order(panel.forecaster, forecaster_count)
    ends = np.cumsum(np.bincount(panel.forecaster, minlength=forecaster_count))
    for person in range(forecaster_count):
        rows = order[ends[person - 1] if person else 0 : ends[person]]
        if not len(rows):
            continue
        sizes = panel.sizes[rows]
        probability = panel.probability[spans(panel.offsets[rows], sizes)]
        happened = questions.outcome[spans(questions.offsets[panel.question[rows]], sizes)]
        weight = np.repeat(panel.weight[rows] / sizes, sizes)
        different = np.unique(probability)
        place = np.searchsorted(different, probability)  # faster than to sort the places
        mass, total = (np.bincount(place, weights).astype(np.float64) for weights in (weight, weight * happened))
        spread = np.bincount(place, weight * np.square(happened - (total / mass)[place])).astype(np.float64)
        any_happened, any_failed = (np.bincount(place, mask) > 0 for mask in (happened > 0, happened < 1))
        yield person, DistinctPairs(different, mass, total, spread, any_happened, any_failed)


def fitted_line(pairs: DistinctPairs, clip: float = LOGIT_CLIP) -> Floats:
    """Slope and intercept of one forecaster; NaN where no finite maximum exists, or the steps do not converge."""
    probability = np.clip(pairs.probability, clip, 1 - clip)
    logit = np.log(probability / (1 - probability))
    weight, happened = pairs.mass / pairs.mass.sum(), pairs.happened / pairs.mass.sum()
    undefined = np.full(2, np.nan)
    if not _overlap(logit, pairs):
        return undefined
    target, moment = happened.sum(), happened @ logit
    best, best_loss, step = np.array([1.0, 0.0]), np.inf, np.zeros(2)
    for _ in range(STEPS):
        slope, intercept = best + step
        line = slope * logit + intercept
        decay = np.exp(-np.abs(line))
        loss = weight @ (np.maximum(line, 0) + np.log1p(decay)) - slope * moment - intercept * target
        if loss <= best_loss + 1e-12:
            rate = np.where(line >= 0, 1.0, decay) / (1 + decay)
            information = weight * rate * (1 - rate)
            a, b, total = information @ np.square(logit), information @ logit, information.sum()
            slopes = moment - weight @ (rate * logit), target - weight @ rate
            best, best_loss, determinant = np.array([slope, intercept]), loss, a * total - b * b
            newton = np.array([total * slopes[0] - b * slopes[1], a * slopes[1] - b * slopes[0]])
            step = newton / determinant if determinant > 0 else np.zeros(2)
        else:  # A step that increases the loss by more than rounding is halved and tried again from its start.
            step = step / 2
        if np.abs(step).max() <= 1e-10:
            break
    return best + step if np.abs(step).max() <= 1e-8 else undefined


def _overlap(logit: Floats, pairs: DistinctPairs) -> bool:
    """Whether the logits of options that happened and did not happen overlap, so that a finite maximum exists."""
    happened, failed = logit[pairs.any_happened], logit[pairs.any_failed]
    return len(happened) > 0 < len(failed) and happened.min() < failed.max() and failed.min() < happened.max()


def brier_parts(pairs: DistinctPairs) -> tuple[float, float, float, float]:
    """The parts of `CorpDecomposition` of one forecaster."""
    total, rate = pairs.mass.sum(), pairs.happened / pairs.mass
    base = pairs.happened.sum() / total
    within = pairs.spread.sum() / total
    # The mean squared distance of each forecast from the frequency observed where it was stated.
    probability, calibrated, climate = (
        float(pairs.mass @ np.square(forecast - rate) / total)
        for forecast in (pairs.probability, isotonic(rate, pairs.mass), base)
    )
    return float(probability + within), probability - calibrated, climate - calibrated, float(climate + within)


def isotonic(values: Floats, weight: Floats) -> Floats:
    """The non-decreasing sequence with the least squared distance to the values."""
    return np.asarray(isotonic_regression(values, weights=weight).x, dtype=np.float64)
