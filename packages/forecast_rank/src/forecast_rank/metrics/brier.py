"""Brier scores of plain arrays of probabilities and outcomes."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

RANDOM_BRIER = 0.25
"""The Brier score of saying 0.5 to every two-way question."""


def brier_score(probability: ArrayLike, outcome: ArrayLike) -> NDArray[np.float64]:
    """The squared error of each probability, (p - o)^2.

    Parameters
    ----------
    probability : array, shape (n,)
        In [0, 1].
    outcome : array, shape (n,)
        0 or 1.

    Returns
    -------
    array, shape (n,)
        In [0, 1], lower is better.

    References
    ----------
    Brier, G. W. (1950). Verification of forecasts expressed in terms of probability. Monthly Weather
    Review 78, 1-3.

    Examples
    --------
    >>> brier_score([0.8, 0.8], [1, 0]).round(2).tolist()
    [0.04, 0.64]
    """
    error = np.asarray(probability, dtype=np.float64) - np.asarray(outcome, dtype=np.float64)
    error *= error
    return error


def skill_score(score: float, reference: float) -> float | None:
    """The Brier skill score 1 - score / reference.

    Parameters
    ----------
    score, reference : float
        Mean Brier scores in the same form.

    Returns
    -------
    float or None
        Above 0 where the score is better than the reference; None if the reference is 0.

    Examples
    --------
    >>> skill_score(0.2, 0.25)
    0.19999999999999996

    References ---------- Murphy, A. H. (1973). Hedging and skill scores for probability forecasts. Journal of Applied
    Meteorology 12, 215-223.
    """
    return None if reference == 0 else 1 - score / reference
