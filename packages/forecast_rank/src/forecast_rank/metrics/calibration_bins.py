"""Bins of (probability, outcome) pairs for each forecaster, as used by `calibration`."""

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecast_rank.metrics.blocks import CELLS, block_slices
from forecast_rank.metrics.flat_arrays import Floats, stable_order
from forecast_rank.metrics.panel import Panel

EDGE_TOLERANCE = 1e-9
"""Bin widths by which a probability may miss an edge from below, through rounding, and still be at the edge."""

GRID = 1024
"""Cells of a grid over [0, 1] in which values are counted before they are sorted; a power of 2."""

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


def share_bins(panel: Panel, second: Panel, bins: int, kind: Kind = "width") -> None:
    """Gives `second`, which differs from the panel in its events alone, the pairs of the panel in bins."""
    second.shared(("bins", bins, kind), lambda: bin_pairs(panel, bins, kind))


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
    for rows, block in block_slices(panel, max(CELLS, size)):
        place, mass_of = code[block].astype(np.intp), weight[block]
        pairs += np.bincount(place, minlength=size)
        mass += np.bincount(place, mass_of, size)
        forecast += np.bincount(place, mass_of * panel.probability[block], size)
        outcome += np.bincount(place, mass_of * panel.outcome_of(rows), size)

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
    """Edges, (people, bins + 1), at every m/bins-th of a person's m ordered values, and the code of each pair.

    Values are counted in the cells of a grid, which tells in which cells edges lie. Only values there are sorted, and
    compared with edges.
    """
    forecaster_count, width = len(panel.forecasters), GRID + 1  # the last cell is that of probability 1
    cell = panel.spread((panel.forecaster * width).astype(np.int32))
    counts = np.zeros(forecaster_count * width, dtype=np.int64)
    for block in _blocks(len(cell), max(CELLS, len(counts))):
        cell[block] += _grid_cell(panel.probability[block])
        counts += np.bincount(cell[block], minlength=len(counts))
    through = np.cumsum(counts.reshape(forecaster_count, width), axis=1)
    total = through[:, -1]
    rank = np.concatenate([np.arange(bins) * total[:, None] // bins, total[:, None] - 1], axis=1)
    answered = np.flatnonzero(total)
    at = [np.searchsorted(through[person], rank[person], side="right") for person in answered]
    at_cell = np.reshape(at, (len(answered), bins + 1)).astype(np.int64) + answered[:, None] * width
    before = np.take_along_axis(through.ravel() - counts, at_cell.ravel(), 0).reshape(at_cell.shape)
    values = _in_order(panel.probability, cell, at_cell, rank[answered] - before)

    edges, steps = np.full((forecaster_count, bins + 1), np.nan), np.full((forecaster_count, bins), np.inf)
    for person, ordered in zip(answered.tolist(), values, strict=True):
        cuts, last = ordered[:-1], ordered[-1]
        cuts = cuts[np.append(True, np.diff(cuts) > EDGE_TOLERANCE / bins)]
        edges[person, : len(cuts)], edges[person, len(cuts)] = cuts, last
        steps[person, : len(cuts) - 1] = cuts[1:] - EDGE_TOLERANCE / bins
    return edges, _steps_reached(panel.probability, cell, steps)


def _grid_cell(probability: Floats) -> NDArray[np.int32]:
    """The cell of each value; a larger value is in no lower cell, since a product with a power of 2 is exact."""
    return (probability * GRID).astype(np.int32)


def _in_order(
    values: Floats, cell: NDArray[np.int32], cell_codes: NDArray[np.int64], rank: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The value of each rank, from 0, among the values in each wanted cell."""
    cells = np.unique(cell_codes)
    place_of_cell = np.zeros(int(cell.max(initial=0)) + 1, dtype=np.int32)
    place_of_cell[cells] = np.arange(1, len(cells) + 1)
    places_of, group_of = [np.zeros(0, dtype=np.intp)], [np.zeros(0, dtype=np.int32)]
    for block in _blocks(len(cell)):
        group = np.take(place_of_cell, cell[block])
        places = np.flatnonzero(group)
        places_of.append(places + block.start)
        group_of.append(group[places])
    places, group = np.concatenate(places_of), np.concatenate(group_of)
    order = stable_order(group, len(cells) + 1)
    ordered = values[places[order]]
    ends = np.cumsum(np.bincount(group, minlength=len(cells) + 1))
    for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        ordered[first:last].sort()
    return ordered[ends[place_of_cell[cell_codes] - 1] + rank]


def _steps_reached(values: Floats, cell: NDArray[np.int32], steps: Floats) -> NDArray[np.int32]:
    """Person x bins + the number of the person's ascending steps that each value reaches."""
    forecaster_count, bins = steps.shape
    width = GRID + 1
    person, k = np.nonzero(np.isfinite(steps))
    at_cell = person * width + _grid_cell(steps[person, k])
    in_cell = np.bincount(at_cell, minlength=forecaster_count * width)
    lower = np.cumsum(in_cell.reshape(forecaster_count, width), axis=1).ravel() - in_cell
    of_cell = lower + np.repeat(np.arange(forecaster_count) * bins, width)
    of_cell = np.where(in_cell > 0, -1 - of_cell, of_cell).astype(np.int32)
    code = np.empty(len(cell), dtype=np.int32)
    for block in _blocks(len(cell)):
        np.take(of_cell, cell[block], out=code[block], mode="clip")  # unlike "raise" without a copy
    mixed = np.flatnonzero(code < 0)  # values that lie in the cell of a step are compared with it
    code[mixed] = -1 - code[mixed]
    forecaster, mixed_values, first = cell[mixed] // width, values[mixed], code[mixed] % bins
    steps_below = np.zeros(len(mixed), dtype=np.int32)
    for step in range(int(in_cell.max(initial=0))):
        steps_below += (mixed_values >= steps[forecaster, np.minimum(first + step, bins - 1)]) & (
            step < in_cell[cell[mixed]]
        )
    code[mixed] += steps_below
    return code
