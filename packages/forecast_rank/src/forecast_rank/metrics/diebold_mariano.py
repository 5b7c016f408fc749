"""The Diebold-Mariano test: two series of losses in the order of time, whose differences depend on earlier ones."""

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr

from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel

_ROUNDING = 1e-10
"""A standard error below this share of the largest difference is rounding."""


class DieboldMariano(NamedTuple):
    """The test of equal mean losses.

    Attributes
    ----------
    n : int
        Times.
    difference : float
        Mean of the first loss less that of the second; below 0 where the first is better.
    se : float
        Newey-West standard error of the difference, without the small-sample correction.
    statistic : float
        Corrected difference / se; NaN where the error is 0.
    p : float
        Two-sided, by Student's t with n - 1 degrees of freedom; 1 where all differences are 0, else NaN where the error
        is 0.
    """

    n: int
    difference: float
    se: float
    statistic: float
    p: float


def diebold_mariano(loss: ArrayLike, other_loss: ArrayLike, *, horizon: int = 1) -> DieboldMariano:
    """A test whether two forecasters have the same mean loss, from losses at times that depend on each other.

    With d_t the difference of the losses, m its mean and c_k = (1/n) sum_(t>k) (d_t - m)(d_(t-k) - m), the variance of
    m is (c_0 + 2 sum_(k<h) (1 - k/h) c_k) / n: Newey and West's with the lag h - 1, which is never negative. The
    statistic m / se is multiplied by sqrt((n + 1 - 2h + h (h - 1) / n) / n), the correction of Harvey, Leybourne and
    Newbold for few times.

    Parameters
    ----------
    loss, other_loss : arrays, shape (n,)
        One loss of each forecaster at each time, such as a day's mean Brier score, in the order of time and at even
        steps. Lower is better.
    horizon : int
        h, how many steps ahead the forecasts were made: the differences of times less than h apart may depend on each
        other. From 1 to n - 1.

    Returns
    -------
    DieboldMariano

    Raises
    ------
    ValueError
        If the series are no rows of equal length, a loss is not finite, or the horizon is not from 1 to n - 1.

    References
    ----------
    Diebold, F. X. and Mariano, R. S. (1995). Comparing predictive accuracy. Journal of Business and Economic Statistics
    13, 253-263. Newey, W. K. and West, K. D. (1987). A simple, positive semi-definite, heteroskedasticity and
    autocorrelation consistent covariance matrix. Econometrica 55, 703-708. Harvey, D., Leybourne, S. and Newbold, P.
    (1997). Testing the equality of prediction mean squared errors. International Journal of Forecasting 13, 281-291.

    Examples
    --------
    >>> test = diebold_mariano([0.1, 0.3, 0.2, 0.2], [0.2, 0.5, 0.3, 0.6])  # differences -0.1, -0.2, -0.1, -0.4
    >>> round(test.difference, 3), round(test.se, 4), round(test.statistic, 3), round(test.p, 4)
    (-0.2, 0.0612, -2.828, 0.0663)
    """
    first, second = (_series(name, values) for name, values in (("loss", loss), ("other_loss", other_loss)))
    n = len(first)
    if len(second) != n:
        raise ValueError(f"other_loss: {len(second)} numbers, not {n} as in loss")
    if not 1 <= horizon < n:
        raise ValueError(f"horizon: from 1 to {n - 1}, one less than the times, not {horizon}")
    differences = first - second
    mean = float(differences.mean())
    away = differences - mean
    covariances = [float(away[lag:] @ away[: n - lag]) / n for lag in range(horizon)]
    spread = covariances[0] + 2 * sum((1 - lag / horizon) * covariances[lag] for lag in range(1, horizon))
    se = float(np.sqrt(max(spread, 0.0) / n))
    if se <= _ROUNDING * np.abs(differences).max():
        return DieboldMariano(n, mean, 0.0, float("nan"), float("nan") if differences.any() else 1.0)
    correction = (n + 1 - 2 * horizon + horizon * (horizon - 1) / n) / n
    statistic = mean / se * float(np.sqrt(correction))
    return DieboldMariano(n, mean, se, statistic, float(2 * stdtr(n - 1, -abs(statistic))))


def diebold_mariano_pairs(
    panel: Panel, values: ArrayLike, *, horizon: int = 1
) -> dict[tuple[int, int], DieboldMariano]:
    """The test of every two forecasters, over the times at which their common questions closed.

    The loss of a forecaster at a time is the weighted mean over the common questions that closed then; a question
    weighs the mean of the two weights. Questions without a time are left out. The times count as even steps.

    Parameters
    ----------
    panel : Panel
    values : array, shape (F,)
        A loss of each forecast, lower is better; NaN leaves it out.
    horizon : int
        As in `diebold_mariano`, at least 1.

    Returns
    -------
    dict of (int, int) to DieboldMariano
        By the places i < j of the forecasters, without those who have fewer common times than horizon + 1.

    Raises
    ------
    ValueError
        If `values` is not one per forecast, or the horizon is below 1.

    References
    ----------
    As for `diebold_mariano`.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.5]] * 4] * 2, [[1]] * 4, closed_at=[1, 2, 3, 4])
    >>> losses = np.array([0.1, 0.2, 0.3, 0.5, 0.2, 0.3, 0.2, 0.6])  # in turns
    >>> round(diebold_mariano_pairs(panel, losses)[0, 1].p, 4)  # as above
    0.0663
    """
    if horizon < 1:
        raise ValueError(f"horizon: at least 1, not {horizon}")
    scores, weights = panel.matrix(panel.one_per_forecast(values)), panel.matrix(panel.weight)
    times, time_of_question = np.unique(panel.questions.closed_at, return_inverse=True)
    scores[:, np.isnan(panel.questions.closed_at)] = np.nan
    tests: dict[tuple[int, int], DieboldMariano] = {}
    for i, j in combinations(range(len(panel.forecasters)), 2):
        common = ~np.isnan(scores[i] + scores[j])
        weight = (weights[i] + weights[j])[common] / 2
        mass = np.bincount(time_of_question[common], weight, len(times))
        has_loss = mass > 0
        if np.count_nonzero(has_loss) <= horizon:
            continue
        first, second = (
            np.bincount(time_of_question[common], weight * scores[person][common], len(times))[has_loss]
            / mass[has_loss]
            for person in (i, j)
        )
        tests[i, j] = diebold_mariano(first, second, horizon=horizon)
    return tests


def _series(name: str, values: ArrayLike) -> Floats:
    series = np.asarray(values, dtype=np.float64)
    if series.ndim != 1:
        raise ValueError(f"{name}: shape {series.shape}, not (n,)")
    bad = np.flatnonzero(~np.isfinite(series))
    if len(bad):
        raise ValueError(f"{name}: {series[bad[0]]} at {bad[0]} is not finite")
    return series
