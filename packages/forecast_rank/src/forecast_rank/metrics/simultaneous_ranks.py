"""Rank ranges that hold for all forecasters together, from tests of all differences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from forecast_rank.metrics.flat_arrays import Codes, Floats
from forecast_rank.metrics.pair_sums import event_freedom
from forecast_rank.metrics.paired_tests import holm
from forecast_rank.metrics.uncertainty import LEVEL, EventSums, tail_levels

NO_SPREAD = 1e-10
"""A standard error below this share of the values' size is rounding."""


def simultaneous_rank_ranges(sums: EventSums, *, lower_is_better: bool = True, level: float = LEVEL) -> Floats:
    """Ranges of ranks that hold all true ranks together with probability `level`.

    Every two means are compared by t = (m_i - m_j) / SE_ij, SE_ij^2 = sum_e (u_ie - u_je)^2 over events with u_ie =
    sqrt((G_i - 1) / G_i) (S_ie - m_i W_ie) / (1 - W_ie / sum_e W_ie) / sum_e W_ie, with the degrees of freedom of the
    one with fewer effective events, (sum_e W_ie)^2 / sum_e W_ie^2 - 1.
    Holm's correction makes a false claim among all of them improbable. A forecaster's best rank is 1 plus the number of
    those who are significantly better, the worst is the number of forecasters less that of those who are significantly
    worse. Equal forecasters all may be first: their true rank is 1. Where all answered the same questions with the same
    weights, the tests are those of `paired_tests`, so that a range never contradicts them.

    Parameters
    ----------
    sums : EventSums, shape (N, E)
    lower_is_better : bool
    level : float
        In (0, 1).

    Returns
    -------
    array, shape (N, 2)
        Best and worst rank, 1 is the best. All ranks for a forecaster with fewer than two events or after ruin (sums
        that are NaN); NaN without weights.

    Raises
    ------
    ValueError
        If `level` is outside (0, 1).

    References
    ----------
    Mogstad, M., Romano, J. P., Shaikh, A. M. and Wilhelm, D. (2024). Inference for ranks with applications to mobility
    across neighbourhoods and academic achievement across countries. Review of Economic Studies 91, 476-518. Holm, S.
    (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6, 65-70.

    Examples
    --------
    >>> from forecast_rank.metrics.uncertainty import table_sums
    >>> scores = [[0.1, 0.2, 0.1, 0.2], [0.2, 0.2, 0.2, 0.1], [0.9, 0.8, 0.9, 0.8]]
    >>> simultaneous_rank_ranges(table_sums(scores)).tolist()
    [[1.0, 2.0], [1.0, 2.0], [3.0, 3.0]]
    """
    tail_levels(level)
    return all_rank_ranges(sums, len(sums.sums), lower_is_better=lower_is_better, level=level)


def rank_ranges_beside(sums: EventSums, forecasters: int, *, lower_is_better: bool, level: float = LEVEL) -> Floats:
    """The rank range that each further row would have among the first rows, tested against these alone.

    Parameters
    ----------
    sums : EventSums, shape (N + K, E)
    forecasters : int
        N.
    lower_is_better : bool
    level : float
        In (0, 1); for each of the K rows by itself.

    Returns
    -------
    array, shape (K, 2)
        As in `simultaneous_rank_ranges`.

    Examples
    --------
    >>> from forecast_rank.metrics.uncertainty import table_sums
    >>> scores = [[0.1, 0.2, 0.1, 0.2], [0.9, 0.8, 0.9, 0.8], [0.5, 0.4, 0.4, 0.5]]
    >>> rank_ranges_beside(table_sums(scores), 2, lower_is_better=True).tolist()
    [[2.0, 2.0]]
    """
    return all_rank_ranges(sums, forecasters, lower_is_better=lower_is_better, level=level)[forecasters:]


def all_rank_ranges(
    sums: EventSums,
    forecasters: int,
    *,
    lower_is_better: bool,
    level: float = LEVEL,
    freedom: Floats | None = None,
) -> Floats:
    """`simultaneous_rank_ranges` of the first rows, then `rank_ranges_beside` of the others, (N + K, 2).

    `freedom` are the degrees of freedom of each row, where the sums are a model's estimates, whose weights say nothing
    of the sizes of the events.
    """
    tail_levels(level)
    tests, size = _Tests(sums, freedom), len(sums.sums)
    forecaster_places, reference_places = np.arange(forecasters), np.arange(forecasters, size)
    pairs = tests.pairs(*np.triu_indices(forecasters, 1), lower_is_better)
    ranges = np.full((size, 2), np.nan)
    ranges[:forecasters] = tests.ranges(forecaster_places, pairs, level)[:forecasters]
    beside = tests.pairs(
        np.tile(forecaster_places, len(reference_places)), np.repeat(reference_places, forecasters), lower_is_better
    )
    for place, row in enumerate(reference_places):
        columns = slice(place * forecasters, (place + 1) * forecasters)
        ranges[row] = tests.ranges(np.append(forecaster_places, row), beside.part(columns), level)[row]
    return ranges


class _Pairs(NamedTuple):
    """Pairs of rows with p of equal means, NaN where there is no test, and 1 if the second is better, -1 if worse."""

    first: Codes
    second: Codes
    p: Floats
    sign: Floats

    def part(self, columns: slice) -> _Pairs:
        return _Pairs(self.first[columns], self.second[columns], self.p[columns], self.sign[columns])


class _Tests:
    """The means of all rows and the products of what each event adds to their errors."""

    def __init__(self, sums: EventSums, freedom: Floats | None = None) -> None:
        self.means, self.events = sums.means, sums.events
        mass = sums.weights.sum(axis=1)
        if freedom is None:
            freedom = event_freedom(mass, np.square(sums.weights).sum(axis=1))
        self.freedom = freedom
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.sqrt((self.events - 1.0) / self.events) / mass
            influence = self.means[:, None] * sums.weights
            np.subtract(sums.sums, influence, out=influence)
            influence *= scale[:, None]
            influence /= 1 - sums.weights / mass[:, None]
        self.known = (self.events > 1) & np.isfinite(influence).all(axis=1)
        influence[~self.known] = 0.0
        self.influence, self.products = influence, influence @ influence.T

    def ranges(self, rows: Codes, pairs: _Pairs, level: float) -> Floats:
        """Rank ranges among `rows` by the pairs that differ significantly after Holm's correction, (N + K, 2)."""
        claims = np.where(holm(pairs.p) < 1 - level, pairs.sign, 0.0)
        return _ranges(self.events > 0, rows, pairs.first, pairs.second, claims)

    def pairs(self, first: Codes, second: Codes, lower_is_better: bool) -> _Pairs:
        """The tests of these pairs of rows."""
        influence, means, is_known = self.influence, self.means, self.known
        squares = np.diag(self.products)
        square = squares[first] + squares[second] - 2 * self.products[first, second]
        # Near-equal rows cancel in the products: their difference is taken directly.
        close = np.flatnonzero(square < 1e-6 * (squares[first] + squares[second]))
        for pair in close:
            square[pair] = np.square(influence[first[pair]] - influence[second[pair]]).sum()
        gap = means[first] - means[second]
        size = NO_SPREAD * np.maximum(np.abs(means[first]), np.abs(means[second]))
        gap = np.where(np.abs(gap) <= size, 0.0, gap)
        error = np.sqrt(np.maximum(square, 0.0))
        testable = is_known[first] & is_known[second] & ((error > size) | (gap == 0))
        freedom = np.maximum(np.minimum(self.freedom[first], self.freedom[second]), 1)
        statistic = np.divide(np.abs(gap), error, out=np.zeros(len(gap)), where=testable & (error > size))
        p = np.where(testable, 2 * stdtr(freedom, -statistic), np.nan)
        return _Pairs(first, second, p, np.sign(gap) if lower_is_better else -np.sign(gap))


def _ranges(answered: NDArray[np.bool_], rows: Codes, first: Codes, second: Codes, claims: Floats) -> Floats:
    """Ranks among `rows` from claims about pairs: 1 if the second is better, -1 if the first is, 0 for none."""
    size = len(answered)
    better = np.bincount(first, claims > 0, size) + np.bincount(second, claims < 0, size)
    worse = np.bincount(first, claims < 0, size) + np.bincount(second, claims > 0, size)
    ranges = np.stack([1 + better, answered[rows].sum() - worse], axis=1)
    return np.where(answered[:, None], ranges, np.nan)
