"""Means with intervals: Student's t, bootstrap of clusters, beta for values in [0, 1], Clopper-Pearson of shares."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, stdtrit

from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.studentised import studentised_interval
from forecast_rank.metrics.uncertainty import LEVEL, RESAMPLES, EventSums, cluster_se, resample_counts, tail_levels

LEAST_CLUSTERS = 4
"""Fewer clusters give an interval in [0, 1] that is too wide to be of use."""


def cluster_interval(
    values: ArrayLike, clusters: ArrayLike, *, seed: int = 0, resamples: int = RESAMPLES, level: float = LEVEL
) -> tuple[float, float] | None:
    """Studentised bootstrap interval of the mean of one sample, resampling whole clusters.

    Parameters
    ----------
    values : array, shape (n,)
    clusters : array, shape (n,)
        Equal for values of one cluster.
    seed, resamples : int
    level : float
        In (0, 1).

    Returns
    -------
    tuple of float, or None
        None where `studentised.studentised_interval` has none, as for fewer than four clusters.

    References
    ----------
    Hall, P. (1988). Theoretical comparison of bootstrap confidence intervals. The Annals of Statistics 16, 927-953.

    Examples
    --------
    >>> low, high = cluster_interval([0.1, 0.3, 0.2, 0.2, 0.4, 0.0], ["a", "a", "b", "c", "d", "e"])
    >>> round(low, 2), round(high, 2)
    (0.05, 0.35)
    """
    _, codes = np.unique(np.asarray(clusters), return_inverse=True)
    totals, sizes = np.bincount(codes, np.asarray(values, dtype=np.float64)), np.bincount(codes)
    sums = EventSums(totals[None, :].astype(np.float64), sizes[None, :].astype(np.float64))
    low, high = studentised_interval(sums, resample_counts(len(sizes), resamples, seed), level)[0]
    return None if np.isnan(low) else (float(low), float(high))


def bounded_cluster_interval(
    values: ArrayLike, clusters: ArrayLike, *, level: float = LEVEL
) -> tuple[float, float] | None:
    """Beta interval of the mean of one sample in [0, 1] by clusters, with one unseen cluster of scores 0 or 1.

    With S and W the sum and number of values of each cluster, w = sum(W^2) / sum(W), T = sum(W) + w,
    mu = (sum(S) + w / 2) / T, v = (sum((S - mu W)^2) + (w^2 / 2) (mu^2 + (1 - mu)^2)) / T^2 and
    k = mu (1 - mu) / v - 1, the interval is that of Beta(mu k, (1 - mu) k), widened to hold sum(S) / sum(W).

    Parameters
    ----------
    values : array, shape (n,)
        In [0, 1].
    clusters : array, shape (n,)
        Equal for values of one cluster.
    level : float
        In (0, 1).

    Returns
    -------
    tuple of float, or None
        Within [0, 1]; None for fewer than four clusters.

    Raises
    ------
    ValueError
        For a value outside [0, 1].

    References
    ----------
    Morris, C. N. (1983). Parametric empirical Bayes inference. Journal of the American Statistical Association 78,
    47-55. For the beta distribution of given mean and variance; the unseen cluster is this library's own.

    Examples
    --------
    >>> low, high = bounded_cluster_interval([0.0, 0.0, 0.0, 0.0], ["a", "b", "c", "d"])
    >>> round(low, 2), round(high, 2)
    (0.0, 0.49)
    """
    sample = np.asarray(values, dtype=np.float64)
    outside = ~((sample >= 0) & (sample <= 1))
    if outside.any():
        raise ValueError(f"values: {sample[outside][0]} at {int(outside.argmax())} is outside 0 to 1")
    _, codes = np.unique(np.asarray(clusters), return_inverse=True)
    totals, sizes = np.bincount(codes, sample), np.bincount(codes).astype(np.float64)
    if len(sizes) < LEAST_CLUSTERS:
        return None
    unseen = float(np.square(sizes).sum() / sizes.sum())
    mass = sizes.sum() + unseen
    mean = (totals.sum() + unseen / 2) / mass
    spread = np.square(totals - mean * sizes).sum() + unseen**2 / 2 * (mean**2 + (1 - mean) ** 2)
    concentration = mean * (1 - mean) * mass**2 / spread - 1
    tail = (1 - level) / 2
    low, high = betaincinv(mean * concentration, (1 - mean) * concentration, [tail, 1 - tail])
    observed = totals.sum() / sizes.sum()
    return max(0.0, min(float(low), float(observed))), min(1.0, max(float(high), float(observed)))


def clopper_pearson(share: ArrayLike, trials: ArrayLike, *, level: float = LEVEL) -> Floats:
    """The exact interval of a probability from the share of successes among independent trials.

    From the quantile of Beta(x, n - x + 1) at (1 - level) / 2 to that of Beta(x + 1, n - x) at (1 + level) / 2, with x
    successes among n trials, which need not be whole numbers.

    Parameters
    ----------
    share : array
        x / n, in [0, 1]; NaN gives no interval.
    trials : array
        n, above 0.
    level : float
        In (0, 1).

    Returns
    -------
    array, shape (…, 2)

    Raises
    ------
    ValueError
        If `level` is outside (0, 1).

    References
    ----------
    Clopper, C. J. and Pearson, E. S. (1934). The use of confidence or fiducial limits illustrated in the case of the
    binomial. Biometrika 26, 404-413.

    Examples
    --------
    >>> clopper_pearson(1.0, 10).round(4).tolist()  # ten of ten: 0.025^(1/10)
    [0.6915, 1.0]
    """
    low_tail, high_tail = tail_levels(level)
    rate, number = np.broadcast_arrays(np.asarray(share, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    successes, failures = rate * number, (1 - rate) * number
    with np.errstate(invalid="ignore"):
        low = np.where(successes > 0, betaincinv(np.maximum(successes, 1e-300), failures + 1, low_tail), 0.0)
        high = np.where(failures > 0, betaincinv(successes + 1, np.maximum(failures, 1e-300), high_tail), 1.0)
    ends = np.stack([low, high], axis=-1)
    return np.where(np.isnan(rate * number)[..., None], np.nan, ends)


def clustered_share_intervals(sums: EventSums, *, level: float = LEVEL) -> Floats:
    """Clopper-Pearson intervals of shares by clusters, at the effective number of independent trials.

    n = min(W, p (1 - p) / SE^2 (t_(W - 1) / t_(G - 1))^2) trials, with SE the `cluster_se`, W the sum of weights, G the
    number of events and t Student's quantiles; G trials where the events do not vary.

    Parameters
    ----------
    sums : EventSums, shape (N, E)
        Of values in [0, 1].
    level : float
        In (0, 1).

    Returns
    -------
    array, shape (N, 2)
        Within [0, 1]; NaN for fewer than four events.

    References
    ----------
    Korn, E. L. and Graubard, B. I. (1998). Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data. Survey Methodology 24, 193-201.

    Examples
    --------
    >>> from forecast_rank.metrics.uncertainty import table_sums
    >>> clustered_share_intervals(table_sums([[1.0] * 10])).round(4).tolist()
    [[0.6915, 1.0]]
    """
    _, high = tail_levels(level)
    share, error, events = sums.means, cluster_se(sums), sums.events
    weight = sums.weights.sum(axis=1)
    variance = np.maximum(share * (1 - share), 0.0)
    varies = (variance > 0) & (error > 1e-10)
    with np.errstate(divide="ignore", invalid="ignore"):
        quantiles = stdtrit(np.maximum(weight - 1, 1), high) / stdtrit(np.maximum(events - 1, 1), high)
        effective = np.fmin(weight, variance / np.square(error) * np.square(quantiles))
    trials = np.where(varies, effective, np.fmin(weight, events))
    return clopper_pearson(np.where(events >= LEAST_CLUSTERS, share, np.nan), trials, level=level)


class MeanEstimate(NamedTuple):
    """A mean with its standard error and interval; the latter two are None for fewer than two values."""

    value: float
    standard_error: float | None
    interval: tuple[float, float] | None


def t_interval(values: ArrayLike, level: float = LEVEL) -> MeanEstimate:
    """The mean of independent values with SE = s / sqrt(n) and the interval mean +/- t SE.

    Parameters
    ----------
    values : array, shape (n,)
    level : float
        In (0, 1).

    Returns
    -------
    MeanEstimate
        With the sample standard deviation and Student's quantile, both with n - 1 degrees of freedom.

    Raises
    ------
    ValueError
        For no values.

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
        return MeanEstimate(mean, None, None)
    error = float(sample.std(ddof=1) / np.sqrt(sample.size))
    half_width = float(stdtrit(sample.size - 1, (1 + level) / 2)) * error
    return MeanEstimate(mean, error, (mean - half_width, mean + half_width))
