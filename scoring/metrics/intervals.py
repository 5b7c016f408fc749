"""How sure: Student's t intervals of a mean, and bootstrap intervals that resample whole clusters."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

LEVEL = 0.95
RESAMPLES = 1000


class Mean(NamedTuple):
    """A mean with its standard error and interval; the latter two are None for fewer than two values."""

    value: float
    standard_error: float | None
    interval: tuple[float, float] | None


def t_interval(values: ArrayLike, level: float = LEVEL) -> Mean:
    """The mean of independent values with SE = s / sqrt(n) and the interval mean +/- t * SE.

    Raises ValueError for no values. `s` is the sample standard deviation (n - 1).

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
    reach = float(stats.t.ppf((1 + level) / 2, sample.size - 1)) * error
    return Mean(mean, error, (mean - reach, mean + reach))


def cluster_interval(
    values: ArrayLike, clusters: ArrayLike, *, seed: int = 0, resamples: int = RESAMPLES, level: float = LEVEL
) -> tuple[float, float] | None:
    """Percentile bootstrap interval of the pooled mean of `values`, drawing whole clusters with replacement.

    Parameters
    ----------
    values : array of shape (n,)
    clusters : array of shape (n,), equal where values belong together (one event, many bets)

    Returns None for fewer than two clusters: nothing is known about their spread.

    References
    ----------
    Davison, A. C. and Hinkley, D. V. (1997). Bootstrap Methods and their Application, section 3.8.
    """
    sample = np.asarray(values, dtype=np.float64)
    _, codes = np.unique(np.asarray(clusters), return_inverse=True)
    sums, sizes = np.bincount(codes, weights=sample), np.bincount(codes)
    if sums.size < 2:
        return None
    draws = np.random.default_rng(seed).multinomial(sums.size, np.full(sums.size, 1 / sums.size), size=resamples)
    means = (draws @ sums) / (draws @ sizes)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def rank_ranges(
    values: NDArray[np.float64], *, seed: int = 0, resamples: int = RESAMPLES, level: float = LEVEL
) -> list[tuple[int, int]]:
    """The ranks (1 is the highest mean) that each row's mean takes when columns are resampled together.

    Parameters
    ----------
    values : array of shape (competitors, rounds), NaN where a competitor sat a round out

    With fewer than two rounds nothing can be said: every rank from first to last.
    """
    competitors, rounds = values.shape
    if rounds < 2:
        return [(1, competitors)] * competitors
    generator = np.random.default_rng(seed)
    weights = generator.multinomial(rounds, np.full(rounds, 1 / rounds), size=resamples)
    played = ~np.isnan(values)
    totals = np.nan_to_num(values) @ weights.T
    counts = played @ weights.T
    means = np.divide(totals, counts, out=np.full(totals.shape, -np.inf), where=counts > 0)
    ranks = stats.rankdata(-means, axis=0, method="min")
    low = np.quantile(ranks, (1 - level) / 2, axis=1, method="lower")
    high = np.quantile(ranks, (1 + level) / 2, axis=1, method="higher")
    return [(int(a), int(b)) for a, b in zip(low, high, strict=True)]
