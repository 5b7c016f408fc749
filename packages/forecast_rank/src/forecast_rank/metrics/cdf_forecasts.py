"""Forecasts of a number as cumulative probabilities at thresholds."""

import numpy as np
from numpy.typing import ArrayLike

from forecast_rank.metrics.flat_arrays import Floats


def cdf_arrays(y_true: ArrayLike, thresholds: ArrayLike, probabilities: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """The outcomes, (n,), and the thresholds and cumulative probabilities of each forecast, both (n, K).

    Raises ValueError, with the forecast, for shapes that disagree, fewer than two thresholds, a number that is not
    finite, thresholds that do not rise, and probabilities that fall or lie outside [0, 1].

    Examples
    --------
    >>> [array.tolist() for array in cdf_arrays([4.0], [0.0, 5.0], [[0.2, 0.9]])]
    [[4.0], [[0.0, 5.0]], [[0.2, 0.9]]]
    """
    y, x, p = (np.asarray(values, dtype=np.float64) for values in (y_true, thresholds, probabilities))
    shape = p.shape
    if y.ndim != 1 or p.ndim != 2 or len(p) != len(y) or shape[1] < 2 or x.shape not in (shape, shape[1:]):
        raise ValueError(
            f"probabilities: shape {shape} does not go with y_true of shape {y.shape} and thresholds of shape "
            f"{x.shape}, of which there are two at least"
        )
    x = np.broadcast_to(x, shape)
    _check("y_true", "is not finite", np.isfinite(y))
    _check("thresholds", "has one that is not finite", np.isfinite(x).all(axis=1))
    _check("thresholds", "does not rise", (np.diff(x, axis=1) > 0).all(axis=1))
    _check("probabilities", "has one outside [0, 1]", ((p >= 0) & (p <= 1)).all(axis=1))
    _check("probabilities", "falls", (np.diff(p, axis=1) >= 0).all(axis=1))
    return y, x, p


def _check(name: str, fault: str, is_right: ArrayLike) -> None:
    wrong = np.flatnonzero(~np.asarray(is_right))
    if len(wrong):
        raise ValueError(f"{name}: forecast {wrong[0]} {fault}")
