"""How sure a mean is: resampling of whole events, the analytic standard error beside it, and Student's t.

Forecasts on one event share its surprises, so events, not forecasts, are what is drawn. A mean over forecasts is a
ratio of two sums over events, sum(w v) / sum(w): sums per event are all that a resample needs.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, stdtrit

from scoring.metrics.panel import Codes, Floats, Panel

LEVEL = 0.95
RESAMPLES = 1000
DRAWS_AT_ONCE = 1 << 16
"""Draws that are counted at a time: as many of few events, or one resample of many."""
CHUNK = 200
"""Resamples that are multiplied at a time: keeps the work in cache and the memory small."""
DIGITS = 12
"""Means that agree to so many digits tie: a matrix product may round equal columns differently."""


class EventSums(NamedTuple):
    """What N forecasters scored on E events, enough to recompute every mean on any resample of the events.

    sums : (N, E), sum of weight x value over a forecaster's forecasts on an event
    weights : (N, E), sum of their weights, 0 where the forecaster was silent
    """

    sums: Floats
    weights: Floats

    @property
    def means(self) -> Floats:
        """Each forecaster's weighted mean, (N,); NaN for one without forecasts."""
        return _ratio(self.sums.sum(axis=1), self.weights.sum(axis=1))

    @property
    def events(self) -> Codes:
        """The number of events each forecaster spoke on, (N,)."""
        return (self.weights > 0).sum(axis=1)


def event_sums(panel: Panel, values: Floats) -> EventSums:
    """Each forecaster's sums of weight x value and of weight over every event of the panel.

    Parameters
    ----------
    values : array of shape (F,), one value per forecast; NaN leaves a forecast out with its weight

    Events that nobody in the panel forecast are no columns, so all metrics of one panel, and its references, have the
    same events in the same order and can share one set of resamples. An infinite value (ruin, say) leaves its
    forecaster without a mean: the sum is NaN there, and so is all that follows from it.

    Raises ValueError if `values` is not one per forecast.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.5, 0.5], [1, 0]]], [[1, 0], [1, 0]], weight=[[1, 3]], event=["e", "e"])
    >>> event_sums(panel, np.array([0.25, 0.0]))
    EventSums(sums=array([[0.25]]), weights=array([[4.]]))
    """
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (len(panel),):
        raise ValueError(f"values: one per forecast, {len(panel)}, not shape {values.shape}")
    people = len(panel.forecasters)
    seen, column = np.unique(panel.questions.event[panel.question], return_inverse=True)
    counted = ~np.isnan(values)
    place = (panel.forecaster * len(seen) + column)[counted]
    weight = panel.weight[counted]
    shown = np.where(np.isinf(values[counted]), np.nan, values[counted])

    def table(summand: Floats) -> Floats:
        totals = np.bincount(place, summand, people * len(seen)).astype(np.float64)
        return totals.reshape(people, len(seen))

    return EventSums(table(weight * shown), table(weight))


def table_sums(values: ArrayLike) -> EventSums:
    """Event sums of a table with one unweighted value per competitor and round, (N, E), NaN where one sat out.

    Examples
    --------
    >>> table_sums([[1.0, np.nan], [2.0, 4.0]]).means.tolist()
    [1.0, 3.0]
    """
    table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    played = ~np.isnan(table)
    return EventSums(np.where(played, table, 0.0), played.astype(np.float64))


def resample_counts(events: int, resamples: int = RESAMPLES, seed: int = 0) -> NDArray[np.uint8]:
    """How often each of E events is drawn in each of R resamples: E draws with replacement, (R, E).

    The same arguments give the same counts, whatever else was drawn before. One byte holds a count: that of an event
    exceeds 255 with a probability below 1e-500.

    Raises ValueError for fewer than one resample or a negative number of events.

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
    some = max(1, DRAWS_AT_ONCE // max(1, events))
    for first in range(0, resamples if events else 0, some):
        rows = counts[first : first + some]
        # Many resamples are counted at once, each one's events under numbers of its own.
        drawn = generator.integers(events, size=rows.shape) + np.arange(len(rows))[:, None] * events
        rows[:] = np.bincount(drawn.ravel(), minlength=rows.size).reshape(rows.shape)
    return counts


def bootstrap_means(sums: EventSums, counts: NDArray) -> Floats:
    """Each forecaster's mean on each resample, sum_e c_e s_e / sum_e c_e w_e: (R, N) from (N, E) and (R, E).

    NaN where a resample holds no event of the forecaster, and throughout for a forecaster with fewer than two events:
    one event says nothing about spread.

    Raises ValueError if `counts` is not over the events of `sums`.

    References
    ----------
    Davison, A. C. and Hinkley, D. V. (1997). Bootstrap Methods and their Application, section 3.8.

    Examples
    --------
    >>> bootstrap_means(table_sums([[1.0, 3.0]]), np.array([[2, 0], [1, 1], [0, 2]])).ravel().tolist()
    [1.0, 2.0, 3.0]
    """
    people, events = sums.sums.shape
    if counts.ndim != 2 or counts.shape[1] != events:
        raise ValueError(f"counts: one column per event, {events}, not shape {counts.shape}")
    both = np.concatenate([sums.sums, sums.weights]).T
    drawn = np.empty((len(counts), 2 * people))
    for start in range(0, len(counts), CHUNK):
        drawn[start : start + CHUNK] = counts[start : start + CHUNK].astype(np.float64) @ both
    means = _ratio(drawn[:, :people], drawn[:, people:])
    means[:, sums.events < 2] = np.nan
    return means


def percentile_interval(draws: Floats, level: float = LEVEL) -> Floats:
    """The middle `level` of each forecaster's resampled means: low and high, (N, 2) from draws (R, N).

    NaN for a forecaster without draws. Quantiles interpolate linearly (type 7 of Hyndman and Fan, 1996).

    Raises ValueError for a level outside (0, 1).

    References
    ----------
    Efron, B. and Tibshirani, R. J. (1993). An Introduction to the Bootstrap, section 13.3.

    Examples
    --------
    >>> percentile_interval(np.arange(101.0)[:, None], level=0.5).tolist()
    [[25.0, 75.0]]
    """
    tails = np.array(_tails(level))
    return _quantiles(draws, np.broadcast_to(tails, (draws.shape[1], 2)))


def bca_interval(draws: Floats, sums: EventSums, level: float = LEVEL) -> Floats:
    """The bias-corrected and accelerated interval of each forecaster's mean: low and high, (N, 2) from draws (R, N).

    The quantiles of the draws at Phi(z0 + (z0 + z) / (1 - a (z0 + z))) for z = Phi^-1 of both tails, where z0 =
    Phi^-1 of the share of draws below the mean, ties half, and a = sum_e d_e^3 / (6 (sum_e d_e^2)^1.5), d_e the mean of
    the leave-one-event-out means less that without event e. `sums` are those the draws were made from.

    NaN for a forecaster without draws, or where a (z0 + z) reaches 1, so that the formula has no value.

    Raises ValueError for a level outside (0, 1).

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
    tails = np.array(_tails(level))
    observed, known = sums.means, ~np.isnan(draws)
    below = (draws < observed).sum(axis=0) + (draws == observed).sum(axis=0) / 2
    seen = known.sum(axis=0)
    # Where all draws lie on one side of the mean, half a draw keeps z0 finite.
    share = np.clip(below, 0.5, np.maximum(seen - 0.5, 0.5)) / np.maximum(seen, 1)
    bias = ndtri(share)[:, None]
    shifted = bias + ndtri(tails)
    stretch = 1 - _acceleration(sums)[:, None] * shifted
    shift = np.divide(shifted, stretch, out=np.full(shifted.shape, np.nan), where=stretch > 0)
    return _quantiles(draws, ndtr(bias + shift))


def rank_range(draws: Floats, observed: Floats, *, lower_is_better: bool = True, level: float = LEVEL) -> Floats:
    """The ranks, best and worst, that hold the middle `level` of each forecaster's resamples: (N, 2), 1 is the best.

    Forecasters are ranked within each resample, so what helps or hurts all of them at once moves no rank. Ties share
    the best of their ranks. In a resample without an event of theirs a forecaster stands at the `observed` mean, (N,);
    one of a single event (no draws at all) may hold any rank. NaN for a forecaster without an observed mean.

    Raises ValueError for a level outside (0, 1).

    References
    ----------
    Goldstein, H. and Spiegelhalter, D. J. (1996). League tables and their limitations. Journal of the Royal Statistical
    Society A 159, 385-443.

    Examples
    --------
    >>> sums = table_sums([[0.1, 0.2, 0.1], [0.3, 0.1, 0.2], [0.9, 0.8, 0.9]])
    >>> rank_range(bootstrap_means(sums, resample_counts(3)), sums.means).tolist()
    [[1.0, 2.0], [1.0, 2.0], [3.0, 3.0]]
    """
    low, high = _tails(level)
    here = ~np.isnan(observed)
    result = np.full((len(observed), 2), np.nan)
    if not here.any():
        return result
    ranks = _ranks(_standing(draws, observed, lower_is_better)[:, here])
    result[here, 0] = np.quantile(ranks, low, axis=0, method="lower")
    result[here, 1] = np.quantile(ranks, high, axis=0, method="higher")
    result[here & np.isnan(draws).all(axis=0)] = (1, here.sum())
    return result


def _ranks(values: Floats) -> NDArray:
    """Places within each row from 1, the least first; equal values share the best of theirs."""
    order = np.argsort(values, axis=1)
    ordered = np.take_along_axis(values, order, axis=1)
    new = np.diff(ordered, axis=1, prepend=-np.inf) > 0
    places = np.maximum.accumulate(np.where(new, np.arange(1, values.shape[1] + 1), 1), axis=1)
    ranks = np.empty_like(places)
    np.put_along_axis(ranks, order, places, axis=1)
    return ranks


def probability_best(draws: Floats, observed: Floats, *, lower_is_better: bool = True) -> Floats:
    """The share of resamples in which each forecaster's mean is the best, ties split equally: (N,), they sum to 1.

    A frequency over resamples, not a posterior probability. In a resample without an event of theirs a forecaster
    stands at the `observed` mean, (N,); one of a single event (no draws at all) is left out: NaN.

    Examples
    --------
    >>> sums = table_sums([[0.1, 0.2, 0.1], [0.1, 0.2, 0.1], [0.9, 0.8, 0.9]])
    >>> probability_best(bootstrap_means(sums, resample_counts(3)), sums.means).tolist()
    [0.5, 0.5, 0.0]
    """
    known = ~np.isnan(draws).all(axis=0)
    result = np.full(len(observed), np.nan)
    if known.any():
        standing = _standing(draws, observed, lower_is_better)[:, known]
        first = standing == standing.min(axis=1, keepdims=True)
        result[known] = (first / first.sum(axis=1, keepdims=True)).mean(axis=0)
    return result


def cluster_se(sums: EventSums) -> Floats:
    """The standard error of each forecaster's mean when events are independent and what is within them is not, (N,).

    SE = sqrt(G / (G - 1) sum_e (s_e - m w_e)^2) / sum_e w_e over the forecaster's G events, m the mean. NaN for fewer
    than two events. The analytic counterpart of the bootstrap's standard deviation.

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
    events = sums.events
    residuals = sums.sums - np.nan_to_num(sums.means)[:, None] * sums.weights
    correction = _ratio(events, events - 1.0)
    return _ratio(np.sqrt(correction * np.square(residuals).sum(axis=1)), sums.weights.sum(axis=1))


def cluster_interval(
    values: ArrayLike, clusters: ArrayLike, *, seed: int = 0, resamples: int = RESAMPLES, level: float = LEVEL
) -> tuple[float, float] | None:
    """Percentile bootstrap interval of the mean of `values`, drawing whole clusters; None for fewer than two of these.

    Parameters
    ----------
    values : array of shape (n,)
    clusters : array of shape (n,), equal where values belong together (one event, many bets)

    Examples
    --------
    >>> cluster_interval([0.0, 0.0, 1.0, 1.0], ["a", "a", "b", "b"])
    (0.0, 1.0)
    """
    _, codes = np.unique(np.asarray(clusters), return_inverse=True)
    totals, sizes = np.bincount(codes, np.asarray(values, dtype=np.float64)), np.bincount(codes)
    if len(sizes) < 2:
        return None
    sums = EventSums(totals[None, :].astype(np.float64), sizes[None, :].astype(np.float64))
    low, high = percentile_interval(bootstrap_means(sums, resample_counts(len(sizes), resamples, seed)), level)[0]
    return float(low), float(high)


class Mean(NamedTuple):
    """A mean with its standard error and interval; the latter two are None for fewer than two values."""

    value: float
    standard_error: float | None
    interval: tuple[float, float] | None


def t_interval(values: ArrayLike, level: float = LEVEL) -> Mean:
    """The mean of independent values with SE = s / sqrt(n) and the interval mean +/- t * SE.

    `s` is the sample standard deviation, t the quantile of Student's distribution, both with n - 1.

    Raises ValueError for no values.

    References
    ----------
    Student (1908). The probable error of a mean. Biometrika 6, 1-25.

    Examples
    --------
    >>> t_interval([1.0, 3.0]).standard_error
    1.0
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.size == 0:
        raise ValueError("values: the mean of nothing is not defined")
    mean = float(sample.mean())
    if sample.size == 1:
        return Mean(mean, None, None)
    error = float(sample.std(ddof=1) / np.sqrt(sample.size))
    reach = float(stdtrit(sample.size - 1, (1 + level) / 2)) * error
    return Mean(mean, error, (mean - reach, mean + reach))


def _ratio(above: NDArray, below: NDArray) -> Floats:
    return np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below > 0)


def _tails(level: float) -> tuple[float, float]:
    if not 0 < level < 1:
        raise ValueError(f"level: between 0 and 1, not {level}")
    return (1 - level) / 2, (1 + level) / 2


def _quantiles(draws: Floats, levels: Floats) -> Floats:
    """Quantiles of each column at levels of its own, (N, K): NaN draws are left out, NaN where none or level is NaN."""
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
    left = np.where(sums.weights < mass, mass - sums.weights, np.nan)
    means = (sums.sums.sum(axis=1, keepdims=True) - sums.sums) / left
    away = means.sum(axis=1, keepdims=True) / max(means.shape[1], 1) - means
    squares = np.square(away)
    spread = squares.sum(axis=1) ** 1.5
    return np.divide((squares * away).sum(axis=1), 6 * spread, out=np.zeros(len(spread)), where=spread > 0)


def _standing(draws: Floats, observed: Floats, lower_is_better: bool) -> Floats:
    """Draws with the observed mean where there is none, signed so that less is better, rounded so that ties tie."""
    filled = np.where(np.isnan(draws), observed, draws)
    finite = np.abs(filled[np.isfinite(filled)])
    scale = finite.max() if finite.size and finite.max() > 0 else 1.0
    return np.round(filled / scale if lower_is_better else -filled / scale, DIGITS)
