"""Mean scores of one forecaster's arrays, with scikit-learn's names of arguments."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel, from_arrays
from forecast_rank.metrics.proper_scores import LOG_CLIP, brier, log_score, spherical


def mean_brier(y_true: ArrayLike, y_prob: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """The mean Brier score in the mean form, lower is better.

    Parameters
    ----------
    y_true : array, shape (n,) or (n, k)
        With `y_prob` of shape (n,), 1 where the event happened, else 0; otherwise the index of the option that
        happened, or a row of k numbers with a 1 for it.
    y_prob : array, shape (n,) or (n, k)
        Probabilities of the event, or of each of k exclusive options.
    sample_weight : array, shape (n,), optional

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError
        If shapes disagree, or a number is outside [0, 1].

    References
    ----------
    Brier, G. W. (1950). Verification of forecasts expressed in terms of probability. Monthly Weather Review 78, 1-3.

    Examples
    --------
    >>> round(mean_brier([1, 0], [0.8, 0.4]), 6)
    0.1
    >>> round(mean_brier([0, 2], [[0.5, 0.3, 0.2], [0.0, 0.0, 1.0]], sample_weight=[1, 3]), 6)
    0.031667
    """
    return _mean(brier, y_true, y_prob, sample_weight)


def mean_log_score(
    y_true: ArrayLike, y_prob: ArrayLike, *, clip: float = LOG_CLIP, sample_weight: ArrayLike | None = None
) -> float:
    """The mean natural log of the probability of what happened, higher is better; scikit-learn's log_loss is minus it.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `mean_brier`.
    clip : float
        Lowest probability that is charged.

    Returns
    -------
    float
        At most 0.

    Raises
    ------
    ValueError
        As in `mean_brier`.

    References
    ----------
    Good, I. J. (1952). Rational decisions. Journal of the Royal Statistical Society B 14, 107-114.

    Examples
    --------
    >>> round(mean_log_score([1, 0], [0.5, 0.75]), 4)
    -1.0397
    """
    return _mean(lambda panel: log_score(panel, clip), y_true, y_prob, sample_weight)


def mean_spherical(y_true: ArrayLike, y_prob: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """The mean spherical score, higher is better.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `mean_brier`.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError
        As in `mean_brier`.

    References
    ----------
    Good, I. J. (1971). Comment on "Measuring information and uncertainty". In Foundations of Statistical Inference.

    Examples
    --------
    >>> mean_spherical([1, 1], [0.6, 1.0]) > mean_spherical([1, 1], [0.6, 0.6])
    True
    """
    return _mean(spherical, y_true, y_prob, sample_weight)


def _mean(
    score: Callable[[Panel], Floats], y_true: ArrayLike, y_prob: ArrayLike, sample_weight: ArrayLike | None
) -> float:
    panel = _panel(np.asarray(y_true), np.asarray(y_prob, dtype=np.float64), sample_weight)
    return float(np.average(score(panel), weights=panel.weight))


def _panel(y_true: np.ndarray, y_prob: Floats, sample_weight: ArrayLike | None) -> Panel:
    """A panel of one forecaster. Raises ValueError."""
    binary = y_prob.ndim == 1
    shapes = (y_prob.shape,) if binary else (y_prob.shape, y_prob.shape[:1])
    if y_prob.ndim not in (1, 2) or not len(y_prob) or y_true.shape not in shapes:
        raise ValueError(f"y_true: shape {y_true.shape} does not go with y_prob of shape {y_prob.shape}")
    if not ((y_prob >= 0) & (y_prob <= 1)).all():
        raise ValueError("y_prob: a number is outside [0, 1]")
    if not binary and (np.abs(y_prob.sum(axis=1) - 1) > 1e-6).any():
        raise ValueError("y_prob: a row does not sum to 1")
    outcome = y_true.astype(np.float64)
    if not binary and y_true.ndim == 1:
        if not np.isin(y_true, range(y_prob.shape[1])).all():
            raise ValueError(f"y_true: an index is not from 0 to {y_prob.shape[1] - 1}")
        outcome = np.eye(y_prob.shape[1])[y_true.astype(np.int64)]
    if not np.isin(outcome, (0, 1)).all():
        raise ValueError("y_true: a number is neither 0 nor 1")
    if not binary and (outcome.sum(axis=1) != 1).any():
        raise ValueError("y_true: a row does not have exactly one 1")
    weight = np.ones(len(y_prob)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != y_prob.shape[:1]:
        raise ValueError(f"sample_weight: shape {weight.shape}, not {y_prob.shape[:1]}")
    if binary:
        y_prob, outcome = y_prob[:, None], outcome[:, None]
    return from_arrays(y_prob[None], outcome, exclusive=not binary, weight=weight[None])
