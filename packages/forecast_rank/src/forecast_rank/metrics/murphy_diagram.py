"""Murphy diagrams: which forecaster is better by every proper score at once."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from forecast_rank.metrics.distinct_pairs import distinct_pairs
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel

THRESHOLDS = 101
"""Even steps from 0 to 1."""


class MurphyDiagram(NamedTuple):
    """Mean elementary scores of N forecasters at K thresholds.

    Attributes
    ----------
    threshold : array, shape (K,)
    score : array, shape (N, K)
        In [0, 1], lower is better; NaN for a forecaster without forecasts.
    """

    threshold: Floats
    score: Floats


def murphy_diagram(panel: Panel, thresholds: ArrayLike | None = None) -> MurphyDiagram:
    """The mean elementary scores of each forecaster, a curve over the thresholds t in [0, 1].

    The elementary score of a pair is t where p > t and the option did not happen, 1 - t where p <= t and it did, or 0:
    the regret of a bettor who buys at the price t where p is above it. Every proper score is a mixture of elementary
    scores. Who has the lower curve everywhere has the better mean by each; curves that cross leave it to the choice of
    the score. The Brier score is twice the area under the curve. Pairs are weighted w/n; a fractional outcome o counts
    as o that happened and 1 - o that did not.

    Parameters
    ----------
    panel : Panel
    thresholds : array, shape (K,), optional
        In [0, 1]; 0, 0.01, ..., 1 by default. Curves jump at the probabilities that were stated.

    Returns
    -------
    MurphyDiagram

    Raises
    ------
    ValueError
        If thresholds are no row of numbers, or one is outside [0, 1].

    References
    ----------
    Ehm, W., Gneiting, T., Jordan, A. and Krueger, F. (2016). Of quantiles and expectiles: consistent scoring functions,
    Choquet representations and forecast rankings. Journal of the Royal Statistical Society B 78, 505-562.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.8], [0.4]]], [[1], [0]], exclusive=False)
    >>> murphy_diagram(panel, [0.2, 0.6, 0.9]).score.round(3).tolist()  # 0.2 / 2, 0, 0.1 / 2
    [[0.1, 0.0, 0.05]]
    """
    steps = np.linspace(0, 1, THRESHOLDS) if thresholds is None else np.asarray(thresholds, dtype=np.float64)
    if steps.ndim != 1:
        raise ValueError(f"thresholds: shape {steps.shape}, not (K,)")
    outside = np.flatnonzero(~((steps >= 0) & (steps <= 1)))
    if len(outside):
        raise ValueError(f"thresholds: {steps[outside[0]]} at {outside[0]} is outside [0, 1]")
    score = np.full((len(panel.forecasters), len(steps)), np.nan)
    for person, pairs in distinct_pairs(panel):
        at_most = np.searchsorted(pairs.probability, steps, side="right")
        happened = np.concatenate([[0.0], np.cumsum(pairs.happened)])
        failed = np.concatenate([[0.0], np.cumsum(pairs.mass - pairs.happened)])
        regret = (1 - steps) * happened[at_most] + steps * (failed[-1] - failed[at_most])
        score[person] = regret / pairs.mass.sum()
    return MurphyDiagram(steps, score)
