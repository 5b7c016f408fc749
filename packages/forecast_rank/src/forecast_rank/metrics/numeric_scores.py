"""Proper scores of forecasts of a number: by quantiles, by intervals, by samples and by cumulative probabilities."""

import numpy as np
from numpy.typing import ArrayLike

from forecast_rank.metrics.cdf_forecasts import cdf_arrays
from forecast_rank.metrics.flat_arrays import Floats


def quantile_score(y_true: ArrayLike, value: ArrayLike, quantile: ArrayLike) -> Floats:
    """The loss of stating a value as a quantile, (1[y < v] - q) (v - y): the pinball loss.

    Parameters
    ----------
    y_true, value, quantile : arrays that broadcast together
        What happened, the value stated, and its level in (0, 1).

    Returns
    -------
    array
        At least 0, lower is better, in units of the value.

    Raises
    ------
    ValueError
        For a level outside (0, 1).

    References
    ----------
    Koenker, R. and Bassett, G. (1978). Regression quantiles. Econometrica 46, 33-50. Gneiting, T. and Raftery, A. E.
    (2007). Strictly proper scoring rules, prediction, and estimation. Journal of the American Statistical Association
    102, 359-378.

    Examples
    --------
    >>> quantile_score([12.0, 7.0], 10.0, 0.9).round(2).tolist()
    [1.8, 0.3]
    """
    y, predicted, level = (np.asarray(values, dtype=np.float64) for values in (y_true, value, quantile))
    if not ((level > 0) & (level < 1)).all():
        raise ValueError("quantile: a level is outside (0, 1)")
    return np.asarray(((y < predicted) - level) * (predicted - y), dtype=np.float64)


def interval_score(y_true: ArrayLike, low: ArrayLike, high: ArrayLike, level: float) -> Floats:
    """The score of a central interval: its width, and 2 / (1 - level) times the distance of what lies outside.

    Parameters
    ----------
    y_true, low, high : arrays that broadcast together
    level : float
        Probability that the interval is meant to hold what happens, in (0, 1).

    Returns
    -------
    array
        At least 0, lower is better, in units of the value.

    Raises
    ------
    ValueError
        For a level outside (0, 1), or an interval whose end lies before its beginning.

    References
    ----------
    Winkler, R. L. (1972). A decision-theoretic approach to interval estimation. Journal of the American Statistical
    Association 67, 187-191.

    Examples
    --------
    >>> interval_score([5.0, 12.0], 2.0, 10.0, level=0.8).round(6).tolist()  # 8, and 8 + 10 x 2
    [8.0, 28.0]
    """
    if not 0 < level < 1:
        raise ValueError(f"level: between 0 and 1, not {level}")
    y, below, above = (np.asarray(values, dtype=np.float64) for values in (y_true, low, high))
    if (above < below).any():
        raise ValueError("high: below low")
    outside = np.maximum(below - y, 0) + np.maximum(y - above, 0)
    return np.asarray(above - below + 2 / (1 - level) * outside, dtype=np.float64)


def crps_quantiles(y_true: ArrayLike, values: ArrayLike, quantiles: ArrayLike) -> Floats:
    """The continuous ranked probability score of quantiles: twice the mean quantile score over the levels.

    The score is the integral of twice the quantile score over all levels; the mean over the stated ones estimates it
    where they are spread evenly. With the levels of central intervals and the median it is the weighted interval score.

    Parameters
    ----------
    y_true : array, shape (n,)
    values : array, shape (n, K)
        Stated quantiles.
    quantiles : array, shape (K,)
        Their levels.

    Returns
    -------
    array, shape (n,)
        At least 0, lower is better, in units of the value.

    Raises
    ------
    ValueError
        For a level outside (0, 1).

    References
    ----------
    Laio, F. and Tamea, S. (2007). Verification tools for probabilistic forecasts of continuous hydrological variables.
    Hydrology and Earth System Sciences 11, 1267-1277. Bracher, J., Ray, E. L., Gneiting, T. and Reich, N. G. (2021).
    Evaluating epidemic forecasts in an interval format. PLoS Computational Biology 17, e1008618.

    Examples
    --------
    >>> crps_quantiles([12.0], [[8.0, 10.0, 15.0]], [0.1, 0.5, 0.9]).round(6).tolist()  # 2 (0.4 + 1 + 0.3) / 3
    [1.133333]
    """
    y = np.asarray(y_true, dtype=np.float64)[:, None]
    return np.asarray(2 * quantile_score(y, values, quantiles).mean(axis=1), dtype=np.float64)


def crps_samples(y_true: ArrayLike, samples: ArrayLike) -> Floats:
    """The continuous ranked probability score of equally likely samples, mean |x - y| - mean |x - x'| / 2.

    Parameters
    ----------
    y_true : array, shape (n,)
    samples : array, shape (n, K)

    Returns
    -------
    array, shape (n,)
        At least 0, lower is better, in units of the value; |x - y| for a single sample.

    References
    ----------
    Matheson, J. E. and Winkler, R. L. (1976). Scoring rules for continuous probability distributions. Management
    Science 22, 1087-1096. Gneiting, T. and Raftery, A. E. (2007). Strictly proper scoring rules, prediction, and
    estimation. Journal of the American Statistical Association 102, 359-378.

    Examples
    --------
    >>> crps_samples([3.0], [[1.0, 2.0, 6.0]]).round(6).tolist()  # (2 + 1 + 3) / 3 - (1 + 5 + 4) / 9
    [0.888889]
    """
    drawn = np.sort(np.asarray(samples, dtype=np.float64), axis=1)
    count = drawn.shape[1]
    away = np.abs(drawn - np.asarray(y_true, dtype=np.float64)[:, None]).mean(axis=1)
    # Sorted, each sample is subtracted from those above it and has those below subtracted from it.
    spread = drawn @ (2 * np.arange(1, count + 1) - count - 1) / count**2
    return np.asarray(away - spread, dtype=np.float64)


def crps_cdf(y_true: ArrayLike, thresholds: ArrayLike, probabilities: ArrayLike) -> Floats:
    """The continuous ranked probability score of cumulative probabilities, the integral of (F(x) - 1[y <= x])^2.

    F is linear between the thresholds. The integral runs from the first threshold to the last: it is the whole score
    where F is 0 at the first and 1 at the last and the outcome lies between them, else the threshold-weighted score,
    which is proper too and says nothing of how far outside an outcome lies.

    Parameters
    ----------
    y_true : array, shape (n,)
    thresholds : array, shape (K,) or (n, K)
        Values in rising order, at least two. Forecasts are comparable on the same thresholds.
    probabilities : array, shape (n, K)
        Of an outcome up to each threshold.

    Returns
    -------
    array, shape (n,)
        At least 0, lower is better, in units of the value.

    Raises
    ------
    ValueError
        If shapes disagree, a number is not finite, thresholds do not rise, or probabilities fall or lie outside [0, 1];
        the message names the forecast.

    References
    ----------
    Matheson, J. E. and Winkler, R. L. (1976). Scoring rules for continuous probability distributions. Management
    Science 22, 1087-1096. Gneiting, T. and Ranjan, R. (2011). Comparing density forecasts using threshold- and
    quantile-weighted scoring rules. Journal of Business and Economic Statistics 29, 411-422.

    Examples
    --------
    >>> crps_cdf([5.0, 10.0], [0.0, 10.0], [[0.0, 1.0]] * 2).round(4).tolist()  # uniform: 10 / 12, and 10 / 3
    [0.8333, 3.3333]
    """
    y, x, p = cdf_arrays(y_true, thresholds, probabilities)
    start, end, low, high = x[:, :-1], x[:, 1:], p[:, :-1], p[:, 1:]
    split = np.clip(y[:, None], start, end)  # where the indicator jumps, if within the step
    middle = low + (high - low) * (split - start) / (end - start)
    before = _squares(low, middle) * (split - start)
    after = _squares(1 - middle, 1 - high) * (end - split)
    return np.asarray((before + after).sum(axis=1), dtype=np.float64)


def _squares(start: Floats, end: Floats) -> Floats:
    """The mean square of a line between two values."""
    return (np.square(start) + start * end + np.square(end)) / 3
