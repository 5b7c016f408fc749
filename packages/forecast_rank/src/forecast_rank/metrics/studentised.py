"""Studentised bootstrap intervals: honest for few events and skewed scores, where percentiles are too narrow."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.uncertainty import CHUNK, LEVEL, EventSums, cluster_se, tail_levels

NO_SPREAD = 1e-10
"""A standard error below this share of the mean's size is rounding."""


def studentised_draws(sums: EventSums, counts: NDArray) -> Floats:
    """The studentised error of each forecaster's mean in each resample, (m* - m) / SE*.

    m* and SE* are the mean and `cluster_se` of the resample.

    Parameters
    ----------
    sums : EventSums, shape (N, E)
    counts : array of int, shape (R, E)
        From `uncertainty.resample_counts`.

    Returns
    -------
    array, shape (R, N)
        Infinite where the events drawn have no spread, but another mean; NaN where none of the forecaster's events is
        drawn.

    Raises
    ------
    ValueError
        If `counts` does not have a column per event.

    Examples
    --------
    >>> from forecast_rank.metrics.uncertainty import table_sums
    >>> counts = np.array([[1, 1, 1], [0, 1, 2], [0, 0, 3]])
    >>> studentised_draws(table_sums([[1.0, 2.0, 3.0]]), counts).ravel().round(9).tolist()
    [0.0, 2.0, inf]
    """
    n_forecasters, events = sums.sums.shape
    if counts.ndim != 2 or counts.shape[1] != events:
        raise ValueError(f"counts: one column per event, {events}, not shape {counts.shape}")
    mean = np.nan_to_num(sums.means)[:, None]
    residual, weight = sums.sums - mean * sums.weights, sums.weights
    size = np.sqrt(np.square(sums.sums) + np.square(residual)).max(axis=1, keepdims=True, initial=0.0)
    columns = (residual, weight, residual**2, residual * weight, weight**2, (weight > 0).astype(np.float64))
    stacked = np.concatenate(columns)
    draws = np.empty((len(counts), n_forecasters))
    for start in range(0, len(counts), CHUNK):
        part = slice(start, start + CHUNK)
        drawn = stacked @ counts[part].astype(np.float64).T
        away, mass, squares, products, weights, own_events = drawn.reshape(len(columns), n_forecasters, drawn.shape[1])
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = away / mass
            spread = np.sqrt(np.maximum(squares - 2 * gap * products + gap**2 * weights, 0.0))
            spread = np.where(spread > NO_SPREAD * size * np.sqrt(own_events), spread, 0.0)
            away = np.where(np.abs(away) > NO_SPREAD * size * own_events, away, 0.0)
            error = spread * np.sqrt(own_events / (own_events - 1))
            ratio = np.where(away == 0, 0.0, away / np.where(own_events > 1, error, 0.0))
        draws[part] = np.where(mass > 0, ratio, np.nan).T
    return draws


def studentised_interval(
    sums: EventSums,
    counts: NDArray,
    level: float = LEVEL,
    *,
    drawn: EventSums | None = None,
    freedom: Floats | None = None,
) -> Floats:
    """The studentised bootstrap interval of each forecaster's mean, never narrower than Student's.

    m - T SE to m + t SE, SE the standard error clustered by event. T and -t are the upper and lower quantiles of the
    `studentised_draws`, or those of Student's t with G - 1 degrees of freedom where these are further out; G is the
    number of the forecaster's events. Percentiles of the means themselves are too narrow by the factor that t exceeds
    the normal quantile and ignore that mean and error depend on each other where scores are skewed.

    Parameters
    ----------
    sums : EventSums, shape (N, E)
    counts : array of int, shape (R, E)
        From `uncertainty.resample_counts`.
    level : float
        In (0, 1).
    drawn : EventSums, shape (N, E'), optional
        `event_groups.grouped_events` of the sums, if `counts` is for these groups. T and t are then quantiles of
        resampled groups; the standard error and its degrees of freedom remain those of the events.
    freedom : array, shape (N,), optional
        Degrees of freedom, where events differ in size: one less than the effective number of events.

    Returns
    -------
    array, shape (N, 2)
        Low and high; both NaN where either is unbounded: too many resamples hold no spread. This is so for fewer than
        four events, and where all events, or all but a few, have the same score.

    Raises
    ------
    ValueError
        If `level` is outside (0, 1), or `counts` does not have a column per event (group).

    References
    ----------
    Hall, P. (1988). Theoretical comparison of bootstrap confidence intervals. The Annals of Statistics 16, 927-953.
    Davison, A. C. and Hinkley, D. V. (1997). Bootstrap Methods and their Application, sections 2.4 and 5.2. Cameron,
    A. C., Gelbach, J. B. and Miller, D. L. (2008). Bootstrap-based improvements for inference with clustered errors.
    Review of Economics and Statistics 90, 414-427.

    Examples
    --------
    >>> from forecast_rank.metrics.uncertainty import resample_counts, table_sums
    >>> sums = table_sums([[0.0, 0.0, 0.1, 0.0, 0.1, 0.9]])
    >>> studentised_interval(sums, resample_counts(6)).round(2).tolist()
    [[-0.19, 1.63]]
    """
    low, high = tail_levels(level)
    ordered = np.sort(studentised_draws(sums if drawn is None else drawn, counts), axis=0)  # NaN last
    draws_per_column = (~np.isnan(ordered)).sum(axis=0)
    last, columns = np.maximum(draws_per_column - 1, 0), np.arange(ordered.shape[1])
    student = stdtrit(np.maximum(sums.events - 1 if freedom is None else freedom, 1), high)
    lower = np.minimum(ordered[np.floor(low * last).astype(np.int64), columns], -student)
    upper = np.maximum(ordered[np.ceil(high * last).astype(np.int64), columns], student)
    error, mean = cluster_se(sums), sums.means
    with np.errstate(invalid="ignore"):
        ends = mean[:, None] - (np.stack([upper, lower]) * error).T
    # A score that never varied says nothing of how much it could: an interval of width 0 would claim certainty.
    honest = np.isfinite(ends).all(axis=1) & (sums.events > 1) & ~has_no_spread(sums)
    return np.where(honest[:, None], ends, np.nan)


def has_no_spread(sums: EventSums) -> NDArray[np.bool_]:
    """Whether each value is the same on all events, but for rounding; shape (N,)."""
    constant: NDArray[np.bool_] = cluster_se(sums) <= NO_SPREAD * np.abs(sums.means)
    return constant
