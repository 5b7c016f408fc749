"""Bins of (probability, outcome) pairs, forecaster by forecaster; see `calibration` for what they are for."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scoring.metrics.panel import Codes, Floats, Panel

DUST = 1e-9
"""Bin widths by which a probability may miss an edge from below, through rounding, and still be at the edge."""

Kind = Literal["width", "count"]


class Binned(NamedTuple):
    """Pairs in B bins of each of N forecasters; N x B arrays are flat, `table` folds them.

    edges : (N, B + 1), NaN beyond the last bin of a forecaster who has fewer
    code : (C,), forecaster x B + bin of each pair
    weight : (C,), the forecast's weight over the number of its options
    pairs, mass : (N x B,), how many pairs are in a bin, and their weight
    forecast, outcome : (N x B,), weighted means of p and o, NaN in an empty bin
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
        return sums_by(self.code, values, len(self.mass))

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


def sort_into_bins(panel: Panel, bins: int, kind: Kind) -> Binned:
    """All pairs of the panel in bins. Raises ValueError for fewer than one bin or another kind."""
    if bins < 1:
        raise ValueError(f"bins: at least 1, not {bins}")
    people = len(panel.forecasters)
    who, weight = panel.spread(panel.forecaster), panel.spread(panel.weight / panel.sizes)
    if kind == "width":
        edges = np.tile(np.arange(bins + 1) / bins, (people, 1))
        column = np.minimum((panel.probability * bins + DUST).astype(np.int64), bins - 1)
    elif kind == "count":
        edges, column = _equal_counts(panel.probability, who, people, bins)
    else:
        raise ValueError(f"kind: width or count, not {kind}")
    code = who * bins + column
    mass = sums_by(code, weight, people * bins)

    def mean(values: Floats) -> Floats:
        total = sums_by(code, weight * values, people * bins)
        return np.divide(total, mass, out=np.full(len(mass), np.nan), where=mass > 0)

    pairs = np.bincount(code, minlength=people * bins)
    return Binned(bins, edges, code, weight, pairs, mass, mean(panel.probability), mean(panel.outcome))


def sums_by(code: Codes, values: Floats, length: int) -> Floats:
    """Sums of values by code, (length,)."""
    return np.asarray(np.bincount(code, values, length), dtype=np.float64)


def _equal_counts(values: Floats, who: Codes, people: int, bins: int) -> tuple[Floats, Codes]:
    """Edges, (people, bins + 1), at every m/bins-th of a person's m ordered values, and the bin of each value."""
    ends = np.cumsum(np.bincount(who, minlength=people))
    # Two bytes are sorted by radix, several times as fast.
    narrow = who.astype(np.uint16) if people <= np.iinfo(np.uint16).max else who
    order = np.argsort(narrow, kind="stable")
    grouped, column = values[order], np.zeros(len(values), dtype=np.int64)
    edges = np.full((people, bins + 1), np.nan)
    start = 0
    for person, end in enumerate(ends):
        mine, start = slice(start, end), end
        ordered = np.sort(grouped[mine])
        if len(ordered) == 0:
            continue
        cuts = ordered[np.arange(bins) * len(ordered) // bins]
        cuts = cuts[np.append(True, np.diff(cuts) > DUST / bins)]
        column[order[mine]] = np.searchsorted(cuts[1:] - DUST / bins, grouped[mine], side="right")
        edges[person, : len(cuts)], edges[person, len(cuts)] = cuts, ordered[-1]
    return edges, column
