"""Each forecaster's pairs of a probability and an outcome summed by probability, and what is fitted to the sums."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from forecast_rank.metrics.flat_arrays import Floats, spans, stable_order
from forecast_rank.metrics.panel import Panel


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
