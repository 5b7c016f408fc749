"""Uncertainty of forecasters' means: bootstrap over whole events, and cluster-robust standard errors.

Forecasts on one event share its surprises, so that events are resampled, not forecasts. A mean over forecasts is a
ratio of two sums over events, sum(w v) / sum(w): sums per event are all that a resample needs.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from forecast_rank.metrics.blocks import row_slices
from forecast_rank.metrics.flat_arrays import Codes, Floats
from forecast_rank.metrics.panel import Panel

LEVEL = 0.95
RESAMPLES = 1000
DRAWS_AT_ONCE = 1 << 16
"""Draws that are counted at a time: as many of few events, or one resample of many."""
CHUNK = 200
"""Resamples that are multiplied at a time: keeps the work in cache and the memory small."""


class EventSums(NamedTuple):
    """Sums over the forecasts of N forecasters on E events, from which the means on any resample follow.

    Attributes
    ----------
    sums : array, shape (N, E)
        Sum of weight x value.
    weights : array, shape (N, E)
        Sum of weights; 0 for an event without a forecast.
    """

    sums: Floats
    weights: Floats

    @property
    def means(self) -> Floats:
        """Each forecaster's weighted mean, (N,); NaN without forecasts."""
        return _ratio(self.sums.sum(axis=1), self.weights.sum(axis=1))

    @property
    def events(self) -> Codes:
        """Number of events with forecasts of each forecaster, (N,)."""
        return (self.weights > 0).sum(axis=1)


def event_sums(panel: Panel, values: Floats) -> EventSums:
    """Each forecaster's sums of weight x value and of weight over every event of the panel.

    Events without forecasts in the panel are left out, so that all metrics of one panel, and its references, have the
    same events in the same order and can share one set of resamples.

    Parameters
    ----------
    panel : Panel
    values : array, shape (F,)
        NaN leaves a forecast out with its weight. An infinite value (ruin) makes the sum, and all that follows from it,
        NaN.

    Returns
    -------
    EventSums

    Raises
    ------
    ValueError
        If `values` is not one per forecast.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.5, 0.5], [1, 0]]], [[1, 0], [1, 0]], weight=[[1, 3]], event=["e", "e"])
    >>> event_sums(panel, np.array([0.25, 0.0]))
    EventSums(sums=array([[0.25]]), weights=array([[4.]]))
    """
    values = panel.one_per_forecast(values)
    n_forecasters = len(panel.forecasters)
    event_codes, column = panel.events
    is_counted = ~np.isnan(values)
    forecaster, weight = panel.forecaster, panel.weight
    if not is_counted.all():
        forecaster, column, weight, values = (
            forecaster[is_counted],
            column[is_counted],
            weight[is_counted],
            values[is_counted],
        )
    place = forecaster * len(event_codes)
    place += column
    infinite = np.isinf(values)
    finite_values = np.where(infinite, np.nan, values) if infinite.any() else values

    def table(summand: Floats) -> Floats:
        totals = np.bincount(place, summand, n_forecasters * len(event_codes))
        return totals.astype(np.float64, copy=False).reshape(n_forecasters, len(event_codes))

    return EventSums(table(weight * finite_values), table(weight))


def table_sums(values: ArrayLike) -> EventSums:
    """Event sums of a table with one unweighted value per forecaster and event.

    Parameters
    ----------
    values : array, shape (N, E)
        NaN where there is no value.

    Returns
    -------
    EventSums

    Examples
    --------
    >>> table_sums([[1.0, np.nan], [2.0, 4.0]]).means.tolist()
    [1.0, 3.0]
    """
    table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    has_value = ~np.isnan(table)
    return EventSums(np.where(has_value, table, 0.0), has_value.astype(np.float64))


def linearised_sums(panel: Panel, values: Floats, influence: Floats, event_codes: Codes) -> EventSums:
    """Event sums whose means, errors and resamples are those of estimates that depend on all events.

    The sums are w (value + G influence') with w = 1 / G on a forecaster's G events and influence' the influence less
    its mean, so that `means` are the values and a resample moves them by the influences of its events.

    Parameters
    ----------
    panel : Panel
    values : array, shape (N,)
        Estimates; NaN gives no weight.
    influence : array, shape (K, N)
        What each of K events adds to the error of each estimate: its squares add up to the squared standard error.
    event_codes : array of int, shape (K,)
        Those events.

    Returns
    -------
    EventSums
        With the events of `event_sums`.

    References
    ----------
    Davison, A. C. and Hinkley, D. V. (1997). Bootstrap Methods and their Application, section 2.7 (linear
    approximations).

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.5], [0.5]]], [[1], [1]], exclusive=False)
    >>> sums = linearised_sums(panel, np.array([7.0]), np.array([[0.3], [-0.3]]), np.array([0, 1]))
    >>> sums.means.tolist(), cluster_se(sums).round(4).tolist()  # the root of 0.3^2 + 0.3^2
    ([7.0], [0.4243])
    """
    event_ids, column = panel.events
    size = len(panel.forecasters)
    answered = np.zeros((size, len(event_ids)), dtype=bool)
    answered[panel.forecaster, column] = True
    answered[np.isnan(values)] = False
    events = answered.sum(axis=1, keepdims=True)
    weights = answered / np.maximum(events, 1)
    sums = np.zeros((size, len(event_ids)))
    sums[:, np.searchsorted(event_ids, event_codes)] = np.nan_to_num(influence).T
    sums *= np.sqrt(np.maximum(events - 1, 0) / np.maximum(events, 1))
    sums += weights * (np.nan_to_num(values)[:, None] - sums.sum(axis=1, keepdims=True))
    sums[np.isnan(values)] = 0.0
    return EventSums(sums, weights)


def resample_counts(events: int, resamples: int = RESAMPLES, seed: int = 0) -> NDArray[np.uint8]:
    """How often each of E events is drawn in each of R resamples of E draws with replacement.

    The same arguments always give the same counts. One byte holds a count: that of an event exceeds 255 with a
    probability below 1e-500.

    Parameters
    ----------
    events : int
        E.
    resamples : int
        R.
    seed : int

    Returns
    -------
    array of uint8, shape (R, E)

    Raises
    ------
    ValueError
        For fewer than one resample or a negative number of events.

    References
    ----------
    Efron, B. (1979). Bootstrap methods: another look at the jackknife. The Annals of Statistics 7, 1-26.

    Examples
    --------
    >>> resample_counts(events=4, resamples=3, seed=1).sum(axis=1).tolist()
    [4, 4, 4]
    """
    if resamples < 1:
        raise ValueError(f"resamples: at least one, not {resamples}")
    if events < 0:
        raise ValueError(f"events: at least none, not {events}")
    generator = np.random.default_rng(seed)
    counts = np.zeros((resamples, events), dtype=np.uint8)
    rows_at_once = max(1, DRAWS_AT_ONCE // max(1, events))
    for first in range(0, resamples if events else 0, rows_at_once):
        rows = counts[first : first + rows_at_once]
        # Many resamples are counted at once, with separate codes for the events of each.
        drawn = generator.integers(events, size=rows.shape) + np.arange(len(rows))[:, None] * events
        rows[:] = np.bincount(drawn.ravel(), minlength=rows.size).reshape(rows.shape)
    return counts


def bootstrap_means(sums: EventSums, counts: NDArray) -> Floats:
    """Each forecaster's mean on each resample, sum_e c_e s_e / sum_e c_e w_e.

    Parameters
    ----------
    sums : EventSums, shape (N, E)
    counts : array of int, shape (R, E)
        From `resample_counts`.

    Returns
    -------
    array, shape (R, N)
        NaN where a resample holds no event of the forecaster, and for a forecaster with fewer than two events.

    Raises
    ------
    ValueError
        If `counts` does not have a column per event.

    References
    ----------
    Davison, A. C. and Hinkley, D. V. (1997). Bootstrap Methods and their Application, section 3.8.

    Examples
    --------
    >>> bootstrap_means(table_sums([[1.0, 3.0]]), np.array([[2, 0], [1, 1], [0, 2]])).ravel().tolist()
    [1.0, 2.0, 3.0]
    """
    n_forecasters, events = sums.sums.shape
    if counts.ndim != 2 or counts.shape[1] != events:
        raise ValueError(f"counts: one column per event, {events}, not shape {counts.shape}")
    stacked = np.concatenate([sums.sums, sums.weights]).T
    drawn = np.empty((len(counts), 2 * n_forecasters))
    for start in range(0, len(counts), CHUNK):
        drawn[start : start + CHUNK] = counts[start : start + CHUNK].astype(np.float64) @ stacked
    means = _ratio(drawn[:, :n_forecasters], drawn[:, n_forecasters:])
    means[:, sums.events < 2] = np.nan
    return means


def percentile_interval(draws: Floats, level: float = LEVEL) -> Floats:
    """The central `level` of each forecaster's resampled means.

    Parameters
    ----------
    draws : array, shape (R, N)
        From `bootstrap_means`.
    level : float
        In (0, 1).

    Returns
    -------
    array, shape (N, 2)
        Low and high; NaN without draws. Quantiles interpolate linearly (type 7 of Hyndman and Fan, 1996).

    Raises
    ------
    ValueError
        If `level` is outside (0, 1).

    References
    ----------
    Efron, B. and Tibshirani, R. J. (1993). An Introduction to the Bootstrap, section 13.3.

    Examples
    --------
    >>> percentile_interval(np.arange(101.0)[:, None], level=0.5).tolist()
    [[25.0, 75.0]]
    """
    tails = np.array(tail_levels(level))
    return _quantiles(draws, np.broadcast_to(tails, (draws.shape[1], 2)))


def bca_interval(draws: Floats, sums: EventSums, level: float = LEVEL) -> Floats:
    """The bias-corrected and accelerated bootstrap interval of each forecaster's mean.

    The quantiles of the draws at Phi(z0 + (z0 + z) / (1 - a (z0 + z))) for z = Phi^-1 of both tails, where z0 is Phi^-1
    of the share of draws below the mean (ties half) and a = sum_e d_e^3 / (6 (sum_e d_e^2)^1.5), d_e the mean of the
    leave-one-event-out means less that without event e.

    Parameters
    ----------
    draws : array, shape (R, N)
        From `bootstrap_means`.
    sums : EventSums, shape (N, E)
        The sums that the draws were made from.
    level : float
        In (0, 1).

    Returns
    -------
    array, shape (N, 2)
        Low and high; NaN without draws, or where a (z0 + z) reaches 1, so that the formula is undefined.

    Raises
    ------
    ValueError
        If `level` is outside (0, 1).

    References
    ----------
    Efron, B. (1987). Better bootstrap confidence intervals. Journal of the American Statistical Association 82,
    171-185.

    Examples
    --------
    >>> sums = table_sums([[0.0, 0.0, 0.0, 0.1, 0.2, 0.9]])
    >>> draws = bootstrap_means(sums, resample_counts(6, resamples=2000))
    >>> low, high = bca_interval(draws, sums)[0]
    >>> bool(low > percentile_interval(draws)[0, 0] and high > percentile_interval(draws)[0, 1])  # skewed: both move up
    True
    """
    tails = np.array(tail_levels(level))
    observed, is_known = sums.means, ~np.isnan(draws)
    below = (draws < observed).sum(axis=0) + (draws == observed).sum(axis=0) / 2
    draw_count = is_known.sum(axis=0)
    # Half a draw keeps z0 finite where all draws lie on one side of the mean.
    share = np.clip(below, 0.5, np.maximum(draw_count - 0.5, 0.5)) / np.maximum(draw_count, 1)
    bias = ndtri(share)[:, None]
    shifted = bias + ndtri(tails)
    stretch = 1 - _acceleration(sums)[:, None] * shifted
    shift = np.divide(shifted, stretch, out=np.full(shifted.shape, np.nan), where=stretch > 0)
    return _quantiles(draws, ndtr(bias + shift))


def cluster_se(sums: EventSums) -> Floats:
    """Standard error of each forecaster's mean, clustered by event.

    SE = sqrt(G / (G - 1) sum_e (s_e - m w_e)^2) / sum_e w_e over the forecaster's G events, m the mean: events are
    independent, forecasts within them need not be. The analytic counterpart of the bootstrap's standard deviation.

    Parameters
    ----------
    sums : EventSums, shape (N, E)

    Returns
    -------
    array, shape (N,)
        NaN for fewer than two events.

    References
    ----------
    Liang, K.-Y. and Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models. Biometrika 73,
    13-22. Cameron, A. C. and Miller, D. L. (2015). A practitioner's guide to cluster-robust inference. Journal of Human
    Resources 50, 317-372.

    Examples
    --------
    >>> cluster_se(table_sums([[1.0, 3.0]])).tolist()  # s / sqrt(n) where an event holds one forecast
    [1.0]
    """
    events, means = sums.events, np.nan_to_num(sums.means)
    squares = np.empty(len(means))
    for rows in row_slices(0, *sums.sums.shape):
        squares[rows] = np.square(sums.sums[rows] - means[rows, None] * sums.weights[rows]).sum(axis=1)
    return _ratio(np.sqrt(_ratio(events, events - 1.0) * squares), sums.weights.sum(axis=1))


def _ratio(above: NDArray, below: NDArray) -> Floats:
    return np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below > 0)


def tail_levels(level: float) -> tuple[float, float]:
    """The levels of the two quantiles between which the central `level` lies. Raises ValueError outside (0, 1)."""
    if not 0 < level < 1:
        raise ValueError(f"level: between 0 and 1, not {level}")
    return (1 - level) / 2, (1 + level) / 2


def _quantiles(draws: Floats, levels: Floats) -> Floats:
    """Quantiles of each column at its own levels, (N, K), without NaN draws; NaN without draws or level."""
    ordered = np.sort(draws, axis=0)  # NaN last
    last = (~np.isnan(draws)).sum(axis=0)[:, None] - 1
    defined = (last >= 0) & ~np.isnan(levels)
    place = np.where(defined, levels, 0.0) * np.maximum(last, 0)
    floor = np.floor(place).astype(np.int64)
    columns = np.arange(draws.shape[1])[:, None]
    below, above = ordered[floor, columns], ordered[np.minimum(floor + 1, np.maximum(last, 0)), columns]
    return np.where(defined, below + (place - floor) * (above - below), np.nan)


def _acceleration(sums: EventSums) -> Floats:
    """Skewness of the leave-one-event-out means over six, (N,); 0 where they do not differ."""
    mass = sums.weights.sum(axis=1, keepdims=True)
    remaining = np.where(sums.weights < mass, mass - sums.weights, np.nan)
    means = (sums.sums.sum(axis=1, keepdims=True) - sums.sums) / remaining
    deviation = means.sum(axis=1, keepdims=True) / max(means.shape[1], 1) - means
    squares = np.square(deviation)
    spread = squares.sum(axis=1) ** 1.5
    return np.divide((squares * deviation).sum(axis=1), 6 * spread, out=np.zeros(len(spread)), where=spread > 0)
