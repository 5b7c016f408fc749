"""Forecasts that are revised: what each forecaster's forecast on a question is worth from each time on."""

import numpy as np
from numpy.typing import ArrayLike

from forecast_rank.metrics.flat_arrays import Floats


def standing_forecasts(
    forecaster: ArrayLike, made_at: ArrayLike, values: Floats, opened_at: float, closed_at: float
) -> tuple[Floats, Floats]:
    """The times at which a forecast is made, (T,), and the value of each forecaster from then on, (T, N).

    A forecast made before the opening stands from the opening on; one made at or after the closing does not count. Of
    several at one time the last in the order of the arrays counts. NaN where a forecaster has no forecast.

    Raises ValueError unless the question closes after it opens.

    Examples
    --------
    >>> times, values = standing_forecasts([0, 1, 0], [-3, 5, 8], np.array([0.5, 0.7, 1.0]), 0, 10)
    >>> times.tolist(), values.tolist()
    ([0.0, 5.0, 8.0], [[0.5, nan], [0.5, 0.7], [1.0, 0.7]])
    """
    if not closed_at > opened_at:
        raise ValueError(f"closed_at: after opened_at, {opened_at}, not {closed_at}")
    codes, times_made = np.asarray(forecaster, dtype=np.int64), np.asarray(made_at, dtype=np.float64)
    size = int(np.max(codes, initial=-1)) + 1
    inside = np.flatnonzero(times_made < closed_at)
    order = inside[np.argsort(times_made[inside], kind="stable")]
    codes, ordered = codes[order], values[order]
    times, place = np.unique(np.maximum(times_made[order], opened_at), return_inverse=True)
    table = np.full((len(times), size), np.nan)
    current = np.full(size, np.nan)
    bounds = np.searchsorted(place, np.arange(len(times) + 1))
    for row in range(len(times)):
        part = slice(bounds[row], bounds[row + 1])
        current[codes[part]] = ordered[part]  # the last of several at one time
        table[row] = current
    return times, table
