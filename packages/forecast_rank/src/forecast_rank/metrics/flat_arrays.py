"""Arrays of codes, and of rows of different lengths one after another: their order, their spans and their maxima."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
SPARSE = 16
"""Codes up to so many times their number are counted in a table, larger ones are sorted."""


def distinct_codes(codes: Codes) -> tuple[Codes, Codes]:
    """The codes that occur, in order, and the place of each code in them; without sorting unless codes are sparse."""
    if int(codes.max(initial=0)) > SPARSE * len(codes):
        return np.unique(codes, return_inverse=True)
    is_used = np.bincount(codes) > 0
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[codes]


def stable_order(codes: NDArray[np.integer], count: int) -> Codes:
    """The order that sorts codes below `count` and leaves equal ones as they stand; by radix sort if they are few."""
    return np.argsort(codes.astype(np.min_scalar_type(count), copy=False), kind="stable")


def spans(starts: Codes, sizes: Codes) -> Codes:
    """start, start + 1, …, start + size - 1 of every span, one after another."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + sizes, sizes)


def ragged_max(values: Floats, starts: Codes, sizes: Codes) -> Floats:
    """The maximum of values[start : start + size] for each start. Several times as fast as `maximum.reduceat`."""
    largest = values[starts]
    rows, column = np.flatnonzero(sizes > 1), 1
    while len(rows):
        largest[rows] = np.maximum(largest[rows], values[starts[rows] + column])
        column += 1
        rows = rows[sizes[rows] > column]
    return largest
