"""Metaculus's scores of forecasts that are revised: baseline, peer and spot peer, weighted by time.

A forecast stands until the forecaster's next one. The score of a question is the integral of the score over the time
that the question was open, divided by that time: where nothing stands the score is 0.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.standing_forecasts import standing_forecasts

CLIP = 0.001
"""Lowest probability that the site takes."""


class TimeWeightedScores(NamedTuple):
    """Scores of N forecasters on one question.

    Attributes
    ----------
    baseline, peer : array, shape (N,)
        Averages over the time that the question was open.
    spot_peer : array, shape (N,)
        The peer score of what stood at one time; NaN for who had not forecast.
    coverage : array, shape (N,)
        Share of the time with a forecast.
    """

    baseline: Floats
    peer: Floats
    spot_peer: Floats
    coverage: Floats


def baseline_score(probability: ArrayLike, options: int = 2) -> Floats:
    """How much better than saying 1/n a probability of what happened was, 100 (1 + ln p / ln n).

    Parameters
    ----------
    probability : array
        Of the option that happened.
    options : int
        n, at least 2.

    Returns
    -------
    array
        0 for the uniform forecast, 100 for certainty, higher is better.

    Raises
    ------
    ValueError
        For fewer than two options.

    References
    ----------
    Metaculus (2023). Scores FAQ. metaculus.com/help/scores-faq.

    Examples
    --------
    >>> baseline_score([0.5, 0.8, 1.0]).round(1).tolist(), baseline_score(0.25, options=4).item()
    ([0.0, 67.8, 100.0], 0.0)
    """
    if options < 2:
        raise ValueError(f"options: at least 2, not {options}")
    p = np.asarray(probability, dtype=np.float64)
    return np.asarray(100 * (1 + _log(p) / np.log(options)), dtype=np.float64)


def peer_score(probability: ArrayLike) -> Floats:
    """How much better than the others a probability of what happened was, 100 (ln p_i - mean of ln p_j over j != i).

    Parameters
    ----------
    probability : array, shape (..., N)
        Of the option that happened; NaN for who has no forecast.

    Returns
    -------
    array, shape (..., N)
        Sums to 0 over the forecasters, higher is better; 0 where there is nobody else, NaN without a forecast.

    References
    ----------
    Metaculus (2023). Scores FAQ. metaculus.com/help/scores-faq.

    Examples
    --------
    >>> peer_score([0.8, 0.4, np.nan]).round(1).tolist()  # 100 ln 2
    [69.3, -69.3, nan]
    """
    logs = _log(np.asarray(probability, dtype=np.float64))
    is_known = ~np.isnan(logs)
    count = is_known.sum(axis=-1, keepdims=True)
    total = np.where(is_known, logs, 0.0).sum(axis=-1, keepdims=True)
    mean_of_others = np.divide(total - logs, count - 1, out=np.zeros(logs.shape), where=count > 1)
    return np.where(is_known, np.where(count > 1, 100 * (logs - mean_of_others), 0.0), np.nan)


def time_weighted_scores(
    forecaster: ArrayLike,
    made_at: ArrayLike,
    probability: ArrayLike,
    *,
    opened_at: float,
    closed_at: float,
    options: int = 2,
    spot_at: float | None = None,
    clip: float = CLIP,
) -> TimeWeightedScores:
    """Baseline, peer and spot peer scores of all forecasters on one question, with their coverage.

    Parameters
    ----------
    forecaster : array of int, shape (K,)
        Codes from 0 of who made each of K forecasts, in whatever order.
    made_at : array, shape (K,)
    probability : array, shape (K,)
        Of the option that happened; NaN withdraws the forecast.
    opened_at, closed_at : float
        Times in the units of `made_at`. A forecast made before the opening stands from then on; one made after the
        closing does not count.
    options : int
    spot_at : float, optional
        Time of the spot score; the closing by default.
    clip : float
        Lowest probability that is charged.

    Returns
    -------
    TimeWeightedScores
        For the codes up to the largest.

    Raises
    ------
    ValueError
        Unless the question closes after it opens.

    References
    ----------
    Metaculus (2023). Scores FAQ. metaculus.com/help/scores-faq.

    Examples
    --------
    >>> scores = time_weighted_scores([0, 1, 0], [0, 5, 8], [0.5, 0.5, 1.0], opened_at=0, closed_at=10)
    >>> scores.coverage.tolist(), scores.baseline.round(6).tolist()  # 100 for the last fifth
    ([1.0, 0.5], [20.0, 0.0])
    >>> scores.peer.round(1).tolist(), scores.spot_peer.round(1).tolist()  # 100 ln 2 for the last fifth
    ([13.9, -13.9], [69.3, -69.3])
    """
    probabilities = np.maximum(np.asarray(probability, dtype=np.float64), clip)
    times, current_forecasts = standing_forecasts(forecaster, made_at, probabilities, opened_at, closed_at)
    size = current_forecasts.shape[1]
    length = np.diff(np.append(times, closed_at)) / (closed_at - opened_at)
    is_known = ~np.isnan(current_forecasts)
    spot = int(np.searchsorted(times, closed_at if spot_at is None else spot_at, side="right")) - 1
    return TimeWeightedScores(
        baseline=length @ np.where(is_known, baseline_score(current_forecasts, options), 0.0),
        peer=length @ np.where(is_known, peer_score(current_forecasts), 0.0),
        spot_peer=peer_score(current_forecasts[spot]) if spot >= 0 else np.full(size, np.nan),
        coverage=length @ is_known.astype(np.float64),
    )


def _log(probability: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(probability)
