"""Comparisons that stay valid however often and whenever one looks: e-values and confidence sequences.

A leaderboard that is read daily is a test that is repeated daily; an ordinary p-value falls below 5 % sooner or later.
An e-process is a bet against the hypothesis that a forecaster is no better: under it the capital exceeds 1/a at any
time ever with probability a at most.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.uncertainty import LEVEL, tail_levels

BETS = np.geomspace(0.002, 0.95, 40)
"""Bets against the hypothesis, as shares of the largest that keeps the capital above 0; the e-process is their mean."""
STEPS = 40
"""Bisections of the ends of a confidence sequence: to 1e-12 of the range."""


class ConfidenceSequence(NamedTuple):
    """Running means with intervals that hold at all times together.

    Attributes
    ----------
    mean, low, high : arrays, shape (T,)
        After each of T differences.
    """

    mean: Floats
    low: Floats
    high: Floats


def e_process(differences: ArrayLike, bound: float = 1.0) -> Floats:
    """Evidence after each difference against "the mean of the expected differences so far is at most 0".

    E_t = mean over bets L of exp(L S_t - psi(L) V_t), S_t the sum of differences d_i, V_t the sum of (d_i - m_i)^2 with
    m_i the mean of those before, psi(L) = (-ln(1 - c L) - c L) / c^2 and c = 2 bound. Differences need be neither
    independent nor identically distributed: each has an expectation given the past, and the claim is about their mean.

    Parameters
    ----------
    differences : array, shape (T,)
        In the order in which they became known, such as the other forecaster's Brier score less the own one, per event.
    bound : float
        Largest possible absolute difference, above 0; 1 for Brier scores.

    Returns
    -------
    array, shape (T,)
        Capital of a bettor who began with 1. To claim a difference at level a once it is 1/a is right with probability
        1 - a, whenever one looks.

    Raises
    ------
    ValueError
        For a difference beyond the bound.

    References
    ----------
    Choe, Y. J. and Ramdas, A. (2023). Comparing sequential forecasters. Operations Research 72, 1368-1387. Howard,
    S. R., Ramdas, A., McAuliffe, J. and Sekhon, J. (2021). Time-uniform, nonparametric, nonasymptotic confidence
    sequences. The Annals of Statistics 49, 1055-1080.

    Examples
    --------
    >>> e_process([0.3] * 100)[[9, 49, 99]].round(1).tolist()
    [1.4, 50.8, 42641.9]
    """
    sums, spread = _running(differences, bound)
    return np.exp(_log_capital(sums, spread, bound))


def anytime_p(differences: ArrayLike, bound: float = 1.0) -> Floats:
    """p-values that may be looked at any time: 1 over the largest value of `e_process` so far, at most 1.

    Parameters
    ----------
    differences, bound
        As in `e_process`.

    Returns
    -------
    array, shape (T,)
        Never rising.

    Raises
    ------
    ValueError
        For a difference beyond the bound.

    References
    ----------
    Choe, Y. J. and Ramdas, A. (2023). Comparing sequential forecasters. Operations Research 72, 1368-1387.

    Examples
    --------
    >>> anytime_p([0.3] * 100)[[9, 49, 99]].round(4).tolist()
    [0.7285, 0.0197, 0.0]
    """
    return np.minimum(1.0, 1 / np.maximum.accumulate(e_process(differences, bound)))


def confidence_sequence(differences: ArrayLike, bound: float = 1.0, level: float = LEVEL) -> ConfidenceSequence:
    """The running mean of differences with intervals that hold the mean of their expectations at all times together.

    The means m for which neither `e_process` of d - m nor that of m - d reaches 2 / (1 - level).

    Parameters
    ----------
    differences, bound
        As in `e_process`.
    level : float
        Probability that no interval ever misses, in (0, 1).

    Returns
    -------
    ConfidenceSequence
        Wider than an interval for one time; within the bound.

    Raises
    ------
    ValueError
        For a difference beyond the bound, or a level outside (0, 1).

    References
    ----------
    Choe, Y. J. and Ramdas, A. (2023). Comparing sequential forecasters. Operations Research 72, 1368-1387.

    Examples
    --------
    >>> mean, low, high = confidence_sequence([0.3, 0.1] * 100)
    >>> mean[-1].round(2).item(), low[-1].round(2).item(), high[-1].round(2).item()
    (0.2, 0.12, 0.28)
    """
    tail, _ = tail_levels(level)
    sums, spread = _running(differences, bound)
    count = np.arange(1, len(sums) + 1)

    def furthest(direction: float) -> Floats:
        """How far the mean of expectations may lie from the running mean, in a direction."""
        near, far = np.zeros(len(sums)), np.full(len(sums), 2 * bound)
        for _ in range(STEPS):
            middle = (near + far) / 2
            refuted = _log_capital(count * middle, spread, bound) >= -np.log(tail)
            near, far = np.where(refuted, near, middle), np.where(refuted, middle, far)
        return np.clip(sums / count + direction * far, -bound, bound)

    return ConfidenceSequence(sums / count, furthest(-1.0), furthest(1.0))


def _running(differences: ArrayLike, bound: float) -> tuple[Floats, Floats]:
    """Running sums of differences and of their squared distances from the mean of those before."""
    values = np.asarray(differences, dtype=np.float64)
    if not bound > 0:
        raise ValueError(f"bound: above 0, not {bound}")
    if values.ndim != 1 or not (np.abs(values) <= bound * (1 + 1e-12)).all():
        raise ValueError(f"differences: one for each step, none beyond {bound:g}")
    sums = np.cumsum(values)
    foreseen = np.concatenate([[0.0], sums[:-1] / np.arange(1, len(values))]) if len(values) else values
    return sums, np.cumsum(np.square(values - foreseen))


def _log_capital(sums: Floats, spread: Floats, bound: float) -> Floats:
    """The logarithm of the mean over the bets of exp(L S - psi(L) V)."""
    scale = 2 * bound
    price = (-np.log1p(-BETS) - BETS) / scale**2
    exponents = np.multiply.outer(sums, BETS / scale) - np.multiply.outer(spread, price)
    return np.asarray(np.logaddexp.reduce(exponents, axis=-1) - np.log(len(BETS)), dtype=np.float64)
