"""Logistic recalibration of each forecaster's probabilities."""

import numpy as np

from forecast_rank.metrics.distinct_pairs import LOGIT_CLIP, distinct_pairs, fitted_line
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel


def recalibration_line(panel: Panel, clip: float = LOGIT_CLIP) -> Floats:
    """Logistic recalibration, logit P(o = 1) = intercept + slope logit(p), by weighted maximum likelihood over pairs.

    Slope 1 and intercept 0 mean calibration; a slope below 1 overconfidence, above 1 underconfidence; an intercept
    above 0 probabilities that are too low. If the pairs hold both options of binary questions, the intercept is 0 by
    symmetry.

    Parameters
    ----------
    panel : Panel
    clip : float
        Probabilities are clipped to [clip, 1 - clip]; in (0, 0.5).

    Returns
    -------
    array, shape (N, 2)
        Slope, intercept. NaN where no finite maximum exists: the logits of options that happened and did not happen do
        not overlap, or all are equal.

    Raises
    ------
    ValueError
        If `clip` is outside (0, 0.5).

    Examples
    --------
    A third of the options at 20 % happened, two thirds of those at 80 %: ln 2 / ln 4.

    >>> from forecast_rank.metrics.panel import from_arrays
    >>> forecasts, outcomes = [[[0.2]] * 3 + [[0.8]] * 3], [[1], [0], [0], [1], [1], [0]]
    >>> (recalibration_line(from_arrays(forecasts, outcomes, exclusive=False)).round(6) + 0.0).tolist()
    [[0.5, 0.0]]

    References
    ----------
    Cox, D. R. (1958). Two further applications of a model for binary regression. Biometrika 45, 562-565. Miller, M. E.,
    Hui, S. L. and Tierney, W. M. (1991). Validation techniques for logistic regression models. Statistics in Medicine
    10, 1213-1226.
    """
    if not 0 < clip < 0.5:
        raise ValueError(f"clip: between 0 and 0.5, not {clip}")
    lines = np.full((len(panel.forecasters), 2), np.nan)
    for person, pairs in distinct_pairs(panel):
        lines[person] = fitted_line(pairs, clip)
    return lines
