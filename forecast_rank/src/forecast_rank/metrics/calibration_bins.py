"""Bins of (probability, outcome) pairs for each forecaster, as used by `calibration`."""

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecast_rank.metrics.blocks import CELLS
from forecast_rank.metrics.panel import Floats, Panel

EDGE_TOLERANCE = 1e-9
"""Bin widths by which a probability may miss an edge from below, through rounding, and still be at the edge."""

Kind = Literal["width", "count"]


class BinnedPairs(NamedTuple):
    """Pairs in B bins of each of N forecasters. Arrays over bins are flat, (N x B,); `table` makes them (N, B).

    Attributes
    ----------
    bins : int
    edges : array, shape (N, B + 1)
        NaN beyond the last bin of a forecaster with fewer.
    code : array of int32, shape (C,)
        Forecaster x B + bin of each pair.
    weight : array, shape (C,)
        Weight of the forecast over its number of options.
    pairs, mass : arrays, shape (N x B,)
        Number of pairs in a bin, and their weight.
    forecast, outcome : arrays, shape (N x B,)
        Weighted means of p and o; NaN in an empty bin.
    """

    bins: int
    edges: Floats
    code: NDArray[np.int32]
    weight: Floats
    pairs: NDArray[np.int64]
    mass: Floats
    forecast: Floats
    outcome: Floats

    def table(self, sums: Floats) -> Floats:
        return sums.reshape(-1, self.bins)

    def sums(self, values: Callable[[slice], Floats]) -> Floats:
        """Sums over the pairs of each bin, (N x B,), of the values that a function gives for a block of them."""
        return sums_by_code(self.code.__getitem__, values, len(self.code), len(self.mass))

    @property
    def gap(self) -> Floats:
        """|mean forecast - mean outcome| of each bin, (N, B); NaN in an empty one."""
        return self.table(np.abs(self.forecast - self.outcome))

    @property
    def share(self) -> Floats:
        """Each bin's part of its forecaster's weight, (N, B)."""
        mass = self.table(self.mass)
        total = mass.sum(axis=1, keepdims=True)
        return np.divide(mass, total, out=np.zeros(mass.shape), where=total > 0)

    def mean(self, values: Floats) -> Floats:
        """Means over bins, weighted with their shares: (N, B) to (N,); NaN for a forecaster without forecasts."""
        share = self.share
        mean = (share * np.where(share > 0, values, 0.0)).sum(axis=1)
        return np.where(share.sum(axis=1) > 0, mean, np.nan)


def bin_pairs(panel: Panel, bins: int, kind: Kind) -> BinnedPairs:
    """All pairs of the panel in bins. Raises ValueError for fewer than one bin or another kind."""
    return panel.shared(("bins", bins, kind), lambda: _bin_pairs(panel, bins, kind))


def _bin_pairs(panel: Panel, bins: int, kind: Kind) -> BinnedPairs:
    if bins < 1:
        raise ValueError(f"bins: at least 1, not {bins}")
    n_forecasters = len(panel.forecasters)
    size = n_forecasters * bins
    if kind == "width":
        code = panel.spread((panel.forecaster * bins).astype(np.int32))
        edges = np.tile(np.arange(bins + 1) / bins, (n_forecasters, 1))
        for block in _blocks(len(code)):
            place = (panel.probability[block] * bins + EDGE_TOLERANCE).astype(np.int32)
            code[block] += np.minimum(place, bins - 1)
    elif kind == "count":
        edges, code = _equal_counts(panel, bins)
    else:
        raise ValueError(f"kind: width or count, not {kind}")
    weight = panel.spread(panel.weight / panel.sizes)
    pairs, (mass, forecast, outcome) = np.zeros(size, dtype=np.int64), np.zeros((3, size))
    for block in _blocks(len(code), max(CELLS, size)):
        place, mass_of = code[block].astype(np.intp), weight[block]
        pairs += np.bincount(place, minlength=size)
        mass += np.bincount(place, mass_of, size)
        forecast += np.bincount(place, mass_of * panel.probability[block], size)
        outcome += np.bincount(place, mass_of * panel.outcome[block], size)

    def mean(total: Floats) -> Floats:
        return np.divide(total, mass, out=np.full(size, np.nan), where=mass > 0)

    return BinnedPairs(bins, edges, code, weight, pairs, mass, mean(forecast), mean(outcome))


def sums_by_code(
    code: Callable[[slice], NDArray[np.integer]], values: Callable[[slice], Floats], pairs: int, length: int
) -> Floats:
    """Sums of values by code, (length,); both are given for a block of the pairs at a time, to keep memory small."""
    total = np.zeros(length)
    for block in _blocks(pairs, max(CELLS, length)):
        total += np.bincount(code(block), values(block), length)
    return total


def _blocks(pairs: int, size: int = CELLS) -> Iterator[slice]:
    return (slice(first, min(first + size, pairs)) for first in range(0, pairs, size))


def _equal_counts(panel: Panel, bins: int) -> tuple[Floats, NDArray[np.int32]]:
    """Edges, (people, bins + 1), at every m/bins-th of a person's m ordered values, and the code of each pair."""
    people = len(panel.forecasters)
    ends = np.cumsum(np.bincount(panel.forecaster, panel.sizes, people).astype(np.int64))
    # NumPy sorts two-byte integers by radix, several times as fast.
    narrow = panel.forecaster.astype(np.uint16) if people <= np.iinfo(np.uint16).max else panel.forecaster
    order = np.argsort(panel.spread(narrow), kind="stable")
    grouped, code = panel.probability[order], np.empty(len(order), dtype=np.int32)
    edges = np.full((people, bins + 1), np.nan)
    start = 0
    for person, end in enumerate(ends):
        own, start = slice(start, end), end
        ordered = np.sort(grouped[own])
        if len(ordered) == 0:
            continue
        cuts = ordered[np.arange(bins) * len(ordered) // bins]
        cuts = cuts[np.append(True, np.diff(cuts) > EDGE_TOLERANCE / bins)]
        reached = np.zeros(len(ordered), dtype=np.min_scalar_type(bins))
        for cut in cuts[1:] - EDGE_TOLERANCE / bins:  # a fifth of the time of a binary search
            reached += grouped[own] >= cut
        code[order[own]] = reached + np.int32(person * bins)
        edges[person, : len(cuts)], edges[person, len(cuts)] = cuts, ordered[-1]
    return edges, code
