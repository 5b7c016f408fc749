"""Probability integral transforms: whether outcomes fall evenly over the stated distributions."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from forecast_rank.metrics.cdf_forecasts import cdf_arrays
from forecast_rank.metrics.flat_arrays import Floats

BINS = 10


class PitHistogram(NamedTuple):
    """Shares of n transforms in B bins of equal width.

    Attributes
    ----------
    edges : array, shape (B + 1,)
        From 0 to 1.
    share : array, shape (B,)
        Sums to 1; NaN without forecasts. 1/B in each bin for calibrated forecasts, high in the outer bins for
        distributions that are too narrow, in the middle ones for those that are too wide.
    n : int
    """

    edges: Floats
    share: Floats
    n: int


def pit_quantiles(y_true: ArrayLike, values: ArrayLike, quantiles: ArrayLike) -> tuple[Floats, Floats]:
    """The levels between which each outcome fell.

    Parameters
    ----------
    y_true : array, shape (n,)
    values : array, shape (n, K)
        Stated quantiles, which do not fall.
    quantiles : array, shape (K,)
        Their levels, which rise, in (0, 1).

    Returns
    -------
    low, high : arrays, shape (n,)
        The levels of the quantiles next to the outcome; 0 below the lowest and 1 above the highest. Both are the level
        of a quantile that the outcome equals.

    Raises
    ------
    ValueError
        If shapes disagree, levels do not rise within (0, 1), or values fall or are not finite.

    References
    ----------
    Dawid, A. P. (1984). Present position and potential developments: some personal views. Statistical theory: the
    prequential approach. Journal of the Royal Statistical Society A 147, 278-292.

    Examples
    --------
    >>> low, high = pit_quantiles([9.0, 10.0, 20.0], [[8.0, 10.0, 15.0]] * 3, [0.1, 0.5, 0.9])
    >>> low.tolist(), high.tolist()
    ([0.1, 0.5, 0.9], [0.5, 0.5, 1.0])
    """
    y, forecasts, levels = (np.asarray(numbers, dtype=np.float64) for numbers in (y_true, values, quantiles))
    if y.ndim != 1 or levels.ndim != 1 or forecasts.shape != (len(y), len(levels)):
        raise ValueError(f"values: shape {forecasts.shape}, not {(*y.shape, *levels.shape)} by y_true and quantiles")
    padded = np.concatenate([[0.0], levels, [1.0]])
    if not (np.diff(padded) > 0).all():
        raise ValueError("quantiles: the levels do not rise within (0, 1)")
    bad = ~(np.isfinite(y) & np.isfinite(forecasts).all(axis=1) & (np.diff(forecasts, axis=1) >= 0).all(axis=1))
    if bad.any():
        raise ValueError(f"values: forecast {np.flatnonzero(bad)[0]} falls, or has a number that is not finite")
    below, up_to = (forecasts < y[:, None]).sum(axis=1), (forecasts <= y[:, None]).sum(axis=1)
    is_equal = up_to > below
    return padded[below + is_equal], padded[np.where(is_equal, up_to, below + 1)]


def pit_cdf(y_true: ArrayLike, thresholds: ArrayLike, probabilities: ArrayLike) -> tuple[Floats, Floats]:
    """The cumulative probability of each outcome, linear between the thresholds.

    Parameters
    ----------
    y_true, thresholds, probabilities : arrays
        As in `crps_cdf`.

    Returns
    -------
    low, high : arrays, shape (n,)
        Equal for an outcome between the thresholds; 0 and the first probability below them, the last probability and 1
        above them.

    Raises
    ------
    ValueError
        As in `crps_cdf`.

    References
    ----------
    Dawid, A. P. (1984). Present position and potential developments: some personal views. Statistical theory: the
    prequential approach. Journal of the Royal Statistical Society A 147, 278-292.

    Examples
    --------
    >>> low, high = pit_cdf([5.0, 40.0], [0.0, 10.0, 20.0], [[0.1, 0.5, 0.9]] * 2)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.3, 0.9], [0.3, 1.0])
    """
    y, x, p = cdf_arrays(y_true, thresholds, probabilities)
    between = np.array([np.interp(*row) for row in zip(y, x, p, strict=True)], dtype=np.float64)
    return np.where(y < x[:, 0], 0.0, between), np.where(y > x[:, -1], 1.0, between)


def pit_histogram(low: ArrayLike, high: ArrayLike | None = None, *, bins: int = BINS) -> PitHistogram:
    """The histogram of probability integral transforms, each spread evenly over the interval that it is known to be in.

    Parameters
    ----------
    low, high : arrays, shape (n,)
        Ends of the intervals in [0, 1], such as those of `pit_quantiles` and `pit_cdf`, or F(y - 1) and F(y) of a
        distribution F over whole numbers. Without `high` the transforms are known exactly. One that lies on the edge of
        two bins counts half in each.
    bins : int
        At least 1. With quantiles, bins whose edges are stated levels show what was stated; finer ones show the even
        spread.

    Returns
    -------
    PitHistogram

    Raises
    ------
    ValueError
        For fewer bins than 1, shapes that disagree, or ends that are out of order or outside [0, 1].

    References
    ----------
    Czado, C., Gneiting, T. and Held, L. (2009). Predictive model assessment for count data. Biometrics 65, 1254-1261.

    Examples
    --------
    >>> pit_histogram([0.1, 0.5, 0.9], [0.5, 0.5, 1.0], bins=2).share.round(3).tolist()  # 1 + 1/2, and 1/2 + 1
    [0.5, 0.5]
    """
    if bins < 1:
        raise ValueError(f"bins: at least 1, not {bins}")
    lower = np.asarray(low, dtype=np.float64)
    upper = lower if high is None else np.asarray(high, dtype=np.float64)
    if lower.ndim != 1 or upper.shape != lower.shape:
        raise ValueError(f"high: shape {upper.shape} does not go with low of shape {lower.shape}")
    bad = np.flatnonzero(~((lower >= 0) & (lower <= upper) & (upper <= 1)))
    if len(bad):
        raise ValueError(f"low: {lower[bad[0]]} to {upper[bad[0]]} at {bad[0]} is no interval in [0, 1]")
    edges = np.arange(bins + 1) / bins
    width = upper - lower
    distance = edges[:, None] - lower
    exact = (np.sign(distance) + 1) / 2
    spread = np.clip(np.divide(distance, width, out=np.zeros(distance.shape), where=width > 0), 0, 1)
    cumulated = np.where(width > 0, spread, exact)
    cumulated[0], cumulated[-1] = 0, 1
    share = np.diff(cumulated, axis=0).mean(axis=1) if len(lower) else np.full(bins, np.nan)
    return PitHistogram(edges, share, len(lower))
