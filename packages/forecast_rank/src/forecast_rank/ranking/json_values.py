"""Figures of NumPy as values that JSON has."""

import math
from typing import Any

import numpy as np

from forecast_rank.metrics.flat_arrays import Floats


def to_json_value(value: Any) -> Any:
    """A NumPy number or array as Python values; None for infinite or missing numbers and for an array of them."""
    if isinstance(value, np.ndarray):
        items = [to_json_value(item) for item in (value.tolist() if value.ndim == 1 else value)]
        return None if items and all(item is None for item in items) else items
    if isinstance(value, float):  # first, as most are; NumPy's usual floats among them
        return float(value) if math.isfinite(value) else None
    if isinstance(value, np.bool_ | bool):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.floating):
        return float(value) if math.isfinite(value) else None
    return value


def to_json_list(values: Floats) -> list[float | None]:
    """An array as Python numbers, None for infinite or missing values."""
    return [value if math.isfinite(value) else None for value in values.tolist()]
