"""CORP reliability: calibration and the decomposition of the Brier score by isotonic regression instead of bins."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forecast_rank.metrics.distinct_pairs import brier_parts, distinct_pairs, isotonic
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.uncertainty import LEVEL, RESAMPLES, tail_levels


class CorpCurve(NamedTuple):
    """A reliability curve with consistency bands.

    Attributes
    ----------
    forecast : array, shape (K,)
        The different probabilities stated, in ascending order.
    recalibrated : array, shape (K,)
        Frequency of the outcome given the forecast, by isotonic regression.
    weight : array, shape (K,)
        Weight of the pairs with this forecast.
    low, high : arrays, shape (K,)
        Where `recalibrated` would lie, point by point, if the forecasts were calibrated and pairs independent.
    """

    forecast: Floats
    recalibrated: Floats
    weight: Floats
    low: Floats
    high: Floats


class CorpDecomposition(NamedTuple):
    """Parts of the Brier score of N forecasters: brier = miscalibration - discrimination + uncertainty, exactly.

    Attributes
    ----------
    brier : array, shape (N,)
    miscalibration : array, shape (N,)
        What recalibration would gain; at least 0, lower is better.
    discrimination : array, shape (N,)
        What the recalibrated forecasts gain on the base rate; at least 0, higher is better.
    uncertainty : array, shape (N,)
        Brier score of the forecaster's own base rate.
    """

    brier: Floats
    miscalibration: Floats
    discrimination: Floats
    uncertainty: Floats


def corp_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> CorpCurve:
    """The reliability curve by isotonic regression, which needs no choice of bins.

    The curve is the non-decreasing function of the forecast with the least squared distance to the outcomes
    (pool adjacent violators). Bands: outcomes are drawn with the stated probabilities and regressed alike.

    Parameters
    ----------
    y_true : array, shape (n,)
        1 where the event happened, else 0.
    y_prob : array, shape (n,)
        In [0, 1].
    sample_weight : array, shape (n,), optional
    level : float
        Of the bands, in (0, 1).
    resamples : int
        Of the bands.
    seed : int

    Returns
    -------
    CorpCurve

    Raises
    ------
    ValueError
        If shapes disagree or are empty, for a probability outside [0, 1], or a level outside (0, 1).

    References
    ----------
    Dimitriadis, T., Gneiting, T. and Jordan, A. I. (2021). Stable reliability diagrams for probabilistic classifiers.
    Proceedings of the National Academy of Sciences 118, e2016191118.

    Examples
    --------
    >>> curve = corp_curve([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.9])
    >>> curve.forecast.tolist(), curve.recalibrated.tolist()  # 0.4 and 0.6 are in the wrong order: pooled
    ([0.2, 0.4, 0.6, 0.9], [0.0, 0.5, 0.5, 1.0])
    """
    tails = tail_levels(level)
    outcome, probability = np.asarray(y_true, dtype=np.float64), np.asarray(y_prob, dtype=np.float64)
    weight = np.ones(len(outcome)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if outcome.ndim != 1 or outcome.shape != probability.shape or outcome.shape != weight.shape or not len(outcome):
        raise ValueError(f"y_true: shape {outcome.shape} does not go with y_prob of shape {probability.shape}")
    if not ((probability >= 0) & (probability <= 1)).all():
        raise ValueError("y_prob: a number is outside [0, 1]")
    forecast, place = np.unique(probability, return_inverse=True)
    mass = np.bincount(place, weight).astype(np.float64)

    def regressed(outcomes: NDArray) -> Floats:
        return isotonic(np.bincount(place, weight * outcomes) / mass, mass)

    generator = np.random.default_rng(seed)
    draws = np.array([regressed(generator.random(len(outcome)) < probability) for _ in range(resamples)])
    low, high = np.quantile(draws, tails, axis=0) if resamples else np.full((2, len(forecast)), np.nan)
    return CorpCurve(forecast, regressed(outcome), mass, low, high)


def corp_decomposition(panel: Panel) -> CorpDecomposition:
    """Miscalibration, discrimination and uncertainty of each forecaster, from isotonic regression.

    Over all pairs of an option's probability and outcome, weighted w/n so that their mean is the Brier score. Exact,
    and without the within-bin terms of `murphy_decomposition`.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    CorpDecomposition
        NaN for a forecaster without forecasts.

    References
    ----------
    Dimitriadis, T., Gneiting, T. and Jordan, A. I. (2021). Stable reliability diagrams for probabilistic classifiers.
    Proceedings of the National Academy of Sciences 118, e2016191118.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.2], [0.4], [0.6], [0.9]]], [[0], [1], [0], [1]], exclusive=False)
    >>> [part.round(4).tolist() for part in corp_decomposition(panel)]
    [[0.1925], [0.0675], [0.125], [0.25]]
    """
    parts = np.full((4, len(panel.forecasters)), np.nan)
    for person, pairs in distinct_pairs(panel):
        parts[:, person] = brier_parts(pairs)
    return CorpDecomposition(*parts)
