"""Ranks of forecasters over bootstrap resamples: their range, and the chance of being the best."""

import numpy as np
from numpy.typing import NDArray

from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.uncertainty import LEVEL, tail_levels

DIGITS = 12
"""Means that agree to so many digits tie: a matrix product may round equal columns differently."""


def rank_range(draws: Floats, observed: Floats, *, lower_is_better: bool = True, level: float = LEVEL) -> Floats:
    """The best and worst rank in the central `level` of the resamples.

    Forecasters are ranked within each resample, so that effects common to all do not change ranks. Ties share the best
    of their ranks. In a resample without an event of theirs a forecaster keeps the observed mean.

    Parameters
    ----------
    draws : array, shape (R, N)
        From `bootstrap_means`.
    observed : array, shape (N,)
        Observed means.
    lower_is_better : bool
    level : float
        In (0, 1).

    Returns
    -------
    array, shape (N, 2)
        Best and worst rank, 1 is the best. All ranks for a forecaster without draws; NaN without an observed mean.

    Raises
    ------
    ValueError
        If `level` is outside (0, 1).

    References
    ----------
    Goldstein, H. and Spiegelhalter, D. J. (1996). League tables and their limitations. Journal of the Royal Statistical
    Society A 159, 385-443.

    Examples
    --------
    >>> from forecast_rank.metrics.uncertainty import bootstrap_means, resample_counts, table_sums
    >>> sums = table_sums([[0.1, 0.2, 0.1], [0.3, 0.1, 0.2], [0.9, 0.8, 0.9]])
    >>> rank_range(bootstrap_means(sums, resample_counts(3)), sums.means).tolist()
    [[1.0, 2.0], [1.0, 2.0], [3.0, 3.0]]
    """
    low, high = tail_levels(level)
    has_mean = ~np.isnan(observed)
    result = np.full((len(observed), 2), np.nan)
    if not has_mean.any():
        return result
    ranks = _ranks(_comparable_draws(draws, observed, lower_is_better)[:, has_mean])
    result[has_mean, 0] = np.quantile(ranks, low, axis=0, method="lower")
    result[has_mean, 1] = np.quantile(ranks, high, axis=0, method="higher")
    result[has_mean & np.isnan(draws).all(axis=0)] = (1, has_mean.sum())
    return result


def probability_best(draws: Floats, observed: Floats, *, lower_is_better: bool = True) -> Floats:
    """Share of resamples in which each forecaster's mean is the best, ties split equally.

    A frequency over resamples, not a posterior probability.

    Parameters
    ----------
    draws : array, shape (R, N)
        From `bootstrap_means`.
    observed : array, shape (N,)
        Observed means, used in resamples without an event of the forecaster.
    lower_is_better : bool

    Returns
    -------
    array, shape (N,)
        Sums to 1; NaN for a forecaster without draws.

    Examples
    --------
    >>> from forecast_rank.metrics.uncertainty import bootstrap_means, resample_counts, table_sums
    >>> sums = table_sums([[0.1, 0.2, 0.1], [0.1, 0.2, 0.1], [0.9, 0.8, 0.9]])
    >>> probability_best(bootstrap_means(sums, resample_counts(3)), sums.means).tolist()
    [0.5, 0.5, 0.0]
    """
    is_known = ~np.isnan(draws).all(axis=0)
    result = np.full(len(observed), np.nan)
    if is_known.any():
        comparable = _comparable_draws(draws, observed, lower_is_better)[:, is_known]
        first = comparable == comparable.min(axis=1, keepdims=True)
        result[is_known] = (first / first.sum(axis=1, keepdims=True)).mean(axis=0)
    return result


def _ranks(values: Floats) -> NDArray:
    """Ranks within each row from 1, the lowest first; equal values share the best rank."""
    order = np.argsort(values, axis=1)
    ordered = np.take_along_axis(values, order, axis=1)
    new = np.ones(ordered.shape, dtype=bool)
    new[:, 1:] = ordered[:, 1:] > ordered[:, :-1]
    places = np.maximum.accumulate(np.where(new, np.arange(1, values.shape[1] + 1), 1), axis=1)
    ranks = np.empty_like(places)
    np.put_along_axis(ranks, order, places, axis=1)
    return ranks


def _comparable_draws(draws: Floats, observed: Floats, lower_is_better: bool) -> Floats:
    """Draws with observed means for missing ones, signed so that lower is better, rounded so that ties are exact."""
    filled = np.where(np.isnan(draws), observed, draws)
    finite = np.abs(filled[np.isfinite(filled)])
    scale = finite.max() if finite.size and finite.max() > 0 else 1.0
    return np.round(filled / scale if lower_is_better else -filled / scale, DIGITS)
