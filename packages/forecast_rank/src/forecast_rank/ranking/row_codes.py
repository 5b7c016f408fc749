"""Codes of names, and consecutive groups of rows."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from forecast_rank.files.cells import by_category
from forecast_rank.metrics.flat_arrays import Codes, Floats

Mask = NDArray[np.bool_]


def name_codes(names: pl.Series) -> tuple[NDArray[np.int32], list[str]]:
    """Codes of a categorical column in the order of the sorted names, -1 where it is empty, and the names."""
    kinds = names.unique().drop_nulls()
    texts = kinds.cast(pl.String)
    kinds = kinds.gather(texts.arg_sort()).filter(texts.sort() != "")
    return by_category(names, kinds, np.arange(len(kinds), dtype=np.int32), -1), kinds.cast(pl.String).to_list()


def one_if_missing(values: Floats) -> Floats:
    """The values with 1 for NaN; without memory of its own where all are missing."""
    missing = np.isnan(values)
    return np.broadcast_to(1.0, len(values)) if missing.all() else np.where(missing, 1.0, values)


def changes(values: NDArray) -> Mask:
    """True where a value differs from the one before it, and at the first."""
    return np.concatenate([[True], values[1:] != values[:-1]])[: len(values)]


def offsets_of(sizes: Codes) -> Codes:
    """Where each of consecutive groups begins, and where the last ends: (n,) to (n + 1,)."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
