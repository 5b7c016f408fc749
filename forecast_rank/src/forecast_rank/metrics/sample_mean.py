"""The mean of one sample with its interval: Student's t for independent values, bootstrap for clustered ones."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from forecast_rank.metrics.studentised import studentised_interval
from forecast_rank.metrics.uncertainty import LEVEL, RESAMPLES, EventSums, resample_counts


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
