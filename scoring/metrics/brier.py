"""Brier scores of probabilities against what happened."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

RANDOM_BRIER = 0.25
"""The Brier score of saying 0.5 to every two-way question."""


def brier_score(probability: ArrayLike, outcome: ArrayLike) -> NDArray[np.float64]:
    """The squared error of each probability: (p - o)^2, in [0, 1], lower is better.

    Parameters
    ----------
    probability : array of shape (n,), in [0, 1]
    outcome : array of shape (n,), 0 or 1

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
    """The Brier skill score 1 - score / reference: above 0 is better than the reference; None where that is 0."""
    return None if reference == 0 else 1 - score / reference
