"""Logistic recalibration of each forecaster's probabilities."""

import numpy as np

from forecast_rank.metrics.calibration_bins import DistinctPairs, distinct_pairs
from forecast_rank.metrics.panel import Floats, Panel

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
    lines = np.full((len(panel.forecasters), 2), np.nan)
    for person, pairs in distinct_pairs(panel):
        lines[person] = _line(pairs, clip)
    return lines


def _line(pairs: DistinctPairs, clip: float) -> Floats:
    """Slope and intercept of one forecaster; NaN where no finite maximum exists, or the steps do not converge."""
    probability = np.clip(pairs.probability, clip, 1 - clip)
    logit = np.log(probability / (1 - probability))
    weight, happened = pairs.mass / pairs.mass.sum(), pairs.happened / pairs.mass.sum()
    none = np.full(2, np.nan)
    if not _overlap(logit, pairs):
        return none
    target, moment = happened.sum(), happened @ logit
    best, best_loss, step = np.array([1.0, 0.0]), np.inf, np.zeros(2)
    for _ in range(STEPS):
        slope, intercept = best + step
        line = slope * logit + intercept
        decay = np.exp(-np.abs(line))
        loss = weight @ (np.maximum(line, 0) + np.log1p(decay)) - slope * moment - intercept * target
        if loss <= best_loss + 1e-12:
            rate = np.where(line >= 0, 1.0, decay) / (1 + decay)
            information = weight * rate * (1 - rate)
            a, b, c = information @ np.square(logit), information @ logit, information.sum()
            slopes = moment - weight @ (rate * logit), target - weight @ rate
            best, best_loss, determinant = np.array([slope, intercept]), loss, a * c - b * b
            newton = np.array([c * slopes[0] - b * slopes[1], a * slopes[1] - b * slopes[0]])
            step = newton / determinant if determinant > 0 else np.zeros(2)
        else:  # A step that increases the loss by more than rounding is halved and tried again from its start.
            step = step / 2
        if np.abs(step).max() <= 1e-10:
            break
    return best + step if np.abs(step).max() <= 1e-8 else none


def _overlap(logit: Floats, pairs: DistinctPairs) -> bool:
    """Whether the logits of options that happened and did not happen overlap, so that a finite maximum exists."""
    happened, failed = logit[pairs.highest > 0], logit[pairs.lowest < 1]
    return len(happened) > 0 < len(failed) and happened.min() < failed.max() and failed.min() < happened.max()
