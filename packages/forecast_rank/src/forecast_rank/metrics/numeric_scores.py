"""Proper scores of forecasts of a number: by quantiles, by intervals and by samples."""

import numpy as np
from forecast_rank.metrics.flat_arrays import Floats
from numpy.typing import ArrayLike


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
