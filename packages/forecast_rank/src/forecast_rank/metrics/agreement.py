"""Agreement of rankings: rank correlations over the forecasters that both rank."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forecast_rank.metrics.flat_arrays import Codes, Floats

COUNTED = 200
"""Pairs of up to so many forecasters are counted one by one."""


class Agreement(NamedTuple):
    """Rank correlations between M rankings.

    Attributes
    ----------
    names : list of str
        The rankings, in the order of rows and columns.
    spearman, kendall : arrays, shape (M, M)
        In [-1, 1]; NaN with fewer than two common forecasters, or where one ranking ties all of them.
    common : array of int, shape (M, M)
        Number of common forecasters.
    """

    names: list[str]
    spearman: Floats
    kendall: Floats
    common: Codes


def agreement(rankings: Mapping[str, Mapping[str, float]]) -> Agreement:
    """Spearman's rho and Kendall's tau-b between every two rankings.

    Each pair is ranked anew among the forecasters that both rankings hold: rank 7 of 9 may be rank 3 of 4 in common.

    Parameters
    ----------
    rankings : mapping of str to mapping of str to float
        Position of each forecaster in each ranking: ranks, or any numbers with the same direction in all rankings. NaN
        is no position; equal positions share their mean rank.

    Returns
    -------
    Agreement

    Examples
    --------
    >>> result = agreement({"brier": {"a": 1, "b": 2, "c": 3, "d": 4}, "return": {"a": 2, "c": 3, "b": 1}})
    >>> result.spearman[0].tolist(), result.common[0].tolist()
    ([1.0, 0.5], [4, 3])
    """
    names = list(rankings)
    forecasters = list(dict.fromkeys(person for ranking in rankings.values() for person in ranking))
    table = np.array(
        [[ranking.get(person, np.nan) for person in forecasters] for ranking in rankings.values()], np.float64
    )
    size = len(names)
    rho, tau = np.full((size, size), np.nan), np.full((size, size), np.nan)
    common = np.zeros((size, size), dtype=np.int64)
    is_known = ~np.isnan(table)
    ranks: dict[tuple[int, bytes], NDArray] = {}  # most pairs have the same forecasters in common

    def ranks_among(row: int, is_selected: NDArray) -> NDArray:
        key = row, is_selected.tobytes()
        if key not in ranks:
            ranks[key] = _mean_ranks(table[row, is_selected])
        return ranks[key]

    for row in range(size):
        for column in range(row, size):
            in_both = is_known[row] & is_known[column]
            first_ranks, second_ranks = ranks_among(row, in_both), ranks_among(column, in_both)
            rho[row, column] = rho[column, row] = _correlation(first_ranks, second_ranks)
            tau[row, column] = tau[column, row] = _tau_b(first_ranks, second_ranks)
            common[row, column] = common[column, row] = in_both.sum()
    return Agreement(names, rho, tau, common)


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Spearman's rho: the correlation of the ranks of two arrays.

    Parameters
    ----------
    first, second : array, shape (n,)
        Ties share their mean rank.

    Returns
    -------
    float
        In [-1, 1]; NaN for fewer than two values, for an array of equal values, or if a value is NaN.

    Raises
    ------
    ValueError
        If the shapes differ.

    References
    ----------
    Spearman, C. (1904). The proof and measurement of association between two things. The American Journal of
    Psychology 15, 72-101.

    Examples
    --------
    >>> spearman([1, 2, 3, 4], [10, 30, 20, 40])
    0.8
    """
    return _correlation(*_ranks(first, second))


def kendall(first: ArrayLike, second: ArrayLike) -> float:
    """Kendall's tau-b of two arrays, (C - D) / sqrt((C + D + T) (C + D + U)).

    Of the n (n - 1) / 2 pairs, C have the same order in both arrays, D opposite orders, T are tied only in `first` and
    U only in `second`.

    Parameters
    ----------
    first, second : array, shape (n,)

    Returns
    -------
    float
        In [-1, 1]; NaN for fewer than two values, for an array of equal values, or if a value is NaN.

    Raises
    ------
    ValueError
        If the shapes differ.

    References
    ----------
    Kendall, M. G. (1945). The treatment of ties in ranking problems. Biometrika 33, 239-251.

    Examples
    --------
    >>> round(kendall([1, 2, 3, 4], [10, 30, 20, 40]), 4)  # five pairs agree, one does not
    0.6667
    """
    return _tau_b(*_ranks(first, second))


def _ranks(first: ArrayLike, second: ArrayLike) -> tuple[NDArray, NDArray]:
    first_values, second_values = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if first_values.shape != second_values.shape or first_values.ndim != 1:
        raise ValueError(
            f"first, second: one value each per forecaster, not shapes {first_values.shape} and {second_values.shape}"
        )
    return _mean_ranks(first_values), _mean_ranks(second_values)


def _mean_ranks(values: NDArray) -> NDArray:
    """Ranks from 1, ties at their mean; all NaN where a value is. SciPy's own checks take ten times as long."""
    if np.isnan(values).any():
        return np.full(len(values), np.nan)
    _, place, tied = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(tied) - (tied - 1) / 2)[place]


def _correlation(first: NDArray, second: NDArray) -> float:
    """Spearman's rho of ranks."""
    middle = (len(first) + 1) / 2
    first, second = first - middle, second - middle
    size = np.sqrt((first @ first) * (second @ second))
    return float(first @ second / size) if size > 0 else np.nan


def _tau_b(first: NDArray, second: NDArray) -> float:
    """Kendall's tau-b of ranks."""
    if len(first) > COUNTED:
        from scipy.stats import kendalltau  # takes a second to load, which every command would pay

        return float(kendalltau(first, second, variant="b").statistic)
    signs, second_signs = np.sign(first[:, None] - first), np.sign(second[:, None] - second)
    pairs, other_pairs = np.abs(signs).sum(), np.abs(second_signs).sum()
    return float((signs * second_signs).sum() / np.sqrt(pairs * other_pairs)) if pairs * other_pairs > 0 else np.nan
