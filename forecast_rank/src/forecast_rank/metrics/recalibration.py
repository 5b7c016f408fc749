"""Logistic recalibration of each forecaster's probabilities."""

import numpy as np
from numpy.typing import NDArray

from forecast_rank.metrics.calibration_bins import sum_by_code
from forecast_rank.metrics.panel import Codes, Floats, Panel

LOGIT_CLIP = 1e-6
STEPS = 50


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
    n_forecasters = len(panel.forecasters)
    forecaster, weight = panel.spread(panel.forecaster), panel.spread(panel.weight / panel.sizes)
    probability = np.clip(panel.probability, clip, 1 - clip)
    outcome, logit = panel.outcome, np.log(probability / (1 - probability))

    def sums(values: Floats) -> Floats:
        return sum_by_code(forecaster, values, n_forecasters)

    weight /= sums(weight)[forecaster]
    target, moment = sums(weight * outcome), sums(weight * outcome * logit)
    exists = _overlap(forecaster, logit, outcome, n_forecasters)
    best, best_loss = np.stack([np.ones(n_forecasters), np.zeros(n_forecasters)]), np.full(n_forecasters, np.inf)
    step = np.zeros((2, n_forecasters))
    for _ in range(STEPS):
        slope, intercept = best + step
        line = slope[forecaster] * logit + intercept[forecaster]
        decay = np.exp(-np.abs(line))
        loss = sums(weight * (np.maximum(line, 0) + np.log1p(decay))) - slope * moment - intercept * target
        rate = np.where(line >= 0, 1.0, decay) / (1 + decay)
        information = weight * rate * (1 - rate)
        weighted_logit = information * logit
        a, b, c = sums(weighted_logit * logit), sums(weighted_logit), sums(information)
        slope_gradient, intercept_gradient = moment - sums(weight * rate * logit), target - sums(weight * rate)
        # A step that increases the loss by more than rounding is halved and tried again from its start.
        improved = loss <= best_loss + 1e-12
        best, best_loss = np.where(improved, [slope, intercept], best), np.where(improved, loss, best_loss)
        determinant = a * c - b * b
        newton = np.stack([c * slope_gradient - b * intercept_gradient, a * intercept_gradient - b * slope_gradient])
        newton = np.divide(newton, determinant, out=np.zeros(newton.shape), where=determinant > 0)
        step = np.where(improved, newton, step / 2)
        if (np.abs(step).max(axis=0)[exists] <= 1e-10).all():
            break
    converged = exists & (np.abs(step).max(axis=0) <= 1e-8)
    return np.where(converged, best, np.nan).T


def _overlap(forecaster: Codes, logit: Floats, outcome: Floats, n_forecasters: int) -> NDArray[np.bool_]:
    """Whether the logits of options that happened and did not happen overlap, so that a finite maximum exists, (N,)."""
    low, high = np.full((2, n_forecasters, 2), np.inf)
    high = -high
    for column, mask in enumerate((outcome > 0, outcome < 1)):
        np.minimum.at(low[:, column], forecaster[mask], logit[mask])
        np.maximum.at(high[:, column], forecaster[mask], logit[mask])
    return (low[:, 0] < high[:, 1]) & (low[:, 1] < high[:, 0])
