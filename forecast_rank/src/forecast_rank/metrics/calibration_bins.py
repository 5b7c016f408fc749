"""Bins of (probability, outcome) pairs for each forecaster, as used by `calibration`."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecast_rank.metrics.panel import Codes, Floats, Panel, spans

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
    code : array of int, shape (C,)
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
    code: Codes
    weight: Floats
    pairs: NDArray[np.int64]
    mass: Floats
    forecast: Floats
    outcome: Floats

    def table(self, sums: Floats) -> Floats:
        return sums.reshape(-1, self.bins)

    def sums(self, values: Floats) -> Floats:
        """Sums of the pairs' values in each bin: (C,) to (N x B,)."""
        return sum_by_code(self.code, values, len(self.mass))

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
    if bins < 1:
        raise ValueError(f"bins: at least 1, not {bins}")
    n_forecasters = len(panel.forecasters)
    if kind == "width":
        edges = np.tile(np.arange(bins + 1) / bins, (n_forecasters, 1))
        column = (panel.probability * bins + EDGE_TOLERANCE).astype(np.int64)
        np.minimum(column, bins - 1, out=column)
    elif kind == "count":
        edges, column = _equal_counts(panel.probability, panel.spread(panel.forecaster), n_forecasters, bins)
    else:
        raise ValueError(f"kind: width or count, not {kind}")
    code = panel.spread(panel.forecaster * bins)
    code += column
    del column  # hundreds of megabytes of a large panel
    weight = panel.spread(panel.weight / panel.sizes)
    mass = sum_by_code(code, weight, n_forecasters * bins)

    def mean(values: Floats) -> Floats:
        total = sum_by_code(code, weight * values, n_forecasters * bins)
        return np.divide(total, mass, out=np.full(len(mass), np.nan), where=mass > 0)

    pairs = np.bincount(code, minlength=n_forecasters * bins)
    return BinnedPairs(bins, edges, code, weight, pairs, mass, mean(panel.probability), mean(panel.outcome))


class DistinctPairs(NamedTuple):
    """The pairs of one forecaster summed by probability: K different ones in ascending order, all of shape (K,).

    Attributes
    ----------
    probability : array
    mass, happened : arrays
        Sums of the weights, and of weight x outcome.
    spread : array
        Sums of weight x (outcome - mean outcome)^2.
    lowest, highest : arrays
        Of the outcomes.
    """

    probability: Floats
    mass: Floats
    happened: Floats
    spread: Floats
    lowest: Floats
    highest: Floats


def distinct_pairs(panel: Panel) -> Iterator[tuple[int, DistinctPairs]]:
    """The forecasters with forecasts, each with the sums of their pairs; weighted as in `bin_pairs`."""
    people, asked = len(panel.forecasters), panel.questions
    whose = panel.forecaster.astype(np.uint16) if people <= np.iinfo(np.uint16).max else panel.forecaster
    order = np.argsort(whose, kind="stable")
    ends = np.cumsum(np.bincount(panel.forecaster, minlength=people))
    for person in range(people):
        own = order[ends[person - 1] if person else 0 : ends[person]]
        if not len(own):
            continue
        sizes = panel.sizes[own]
        stated = panel.probability[spans(panel.offsets[own], sizes)]
        by_probability = np.argsort(stated, kind="stable")
        stated = stated[by_probability]
        happened = asked.outcome[spans(asked.offsets[panel.question[own]], sizes)[by_probability]]
        weight = np.repeat(panel.weight[own] / sizes, sizes)[by_probability]
        starts = np.flatnonzero(np.concatenate([[True], np.diff(stated) > 0]))
        mass, total = np.add.reduceat(weight, starts), np.add.reduceat(weight * happened, starts)
        rate = np.repeat(total / mass, np.diff(np.append(starts, len(stated))))
        yield (
            person,
            DistinctPairs(
                stated[starts],
                mass,
                total,
                np.add.reduceat(weight * np.square(happened - rate), starts),
                np.minimum.reduceat(happened, starts),
                np.maximum.reduceat(happened, starts),
            ),
        )


def sum_by_code(code: Codes, values: Floats, length: int) -> Floats:
    """Sums of values by code, (length,)."""
    return np.asarray(np.bincount(code, values, length), dtype=np.float64)


def _equal_counts(values: Floats, forecaster: Codes, n_forecasters: int, bins: int) -> tuple[Floats, Codes]:
    """Edges, (people, bins + 1), at every m/bins-th of a person's m ordered values, and the bin of each value."""
    ends = np.cumsum(np.bincount(forecaster, minlength=n_forecasters))
    # NumPy sorts two-byte integers by radix, several times as fast.
    narrow = forecaster.astype(np.uint16) if n_forecasters <= np.iinfo(np.uint16).max else forecaster
    order = np.argsort(narrow, kind="stable")
    grouped, column = values[order], np.zeros(len(values), dtype=np.min_scalar_type(bins))
    edges = np.full((n_forecasters, bins + 1), np.nan)
    start = 0
    for person, end in enumerate(ends):
        own, start = slice(start, end), end
        ordered = np.sort(grouped[own])
        if len(ordered) == 0:
            continue
        cuts = ordered[np.arange(bins) * len(ordered) // bins]
        cuts = cuts[np.append(True, np.diff(cuts) > EDGE_TOLERANCE / bins)]
        reached = np.zeros(len(ordered), dtype=column.dtype)
        for cut in cuts[1:] - EDGE_TOLERANCE / bins:  # a fifth of the time of a binary search
            reached += grouped[own] >= cut
        column[order[own]] = reached
        edges[person, : len(cuts)], edges[person, len(cuts)] = cuts, ordered[-1]
    return edges, column
