"""Thurstone–Mosteller abilities from the margins by which forecasters beat each other on common questions."""

from typing import NamedTuple

import numpy as np

from forecast_rank.metrics.difficulty_adjustment import AdjustedScores, adjusted_brier
from forecast_rank.metrics.flat_arrays import Codes, Floats
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.uncertainty import EventSums


class MarginAbility(NamedTuple):
    """Ability in standard deviations of a score difference: Phi(value_i - value_j) is the chance that i scores better.

    Attributes
    ----------
    value : array, shape (N,)
        Mean 0 over the forecasters compared; NaN outside the largest component.
    se : array, shape (N,)
        Standard error clustered by event, with the noise taken as known; NaN for a forecaster with fewer than two
        events.
    noise : float
        Standard deviation of the difference of two forecasters' scores on one question, less their mean difference.
    component : array of int, shape (N,)
        See `connectivity`; -1 for a forecaster without forecasts.
    sums : EventSums, shape (N, E)
        `value` as means over events (`uncertainty.linearised_sums`).
    """

    value: Floats
    se: Floats
    noise: float
    component: Codes
    sums: EventSums


def margin_ability(panel: Panel, values: Floats, *, fit: AdjustedScores | None = None) -> MarginAbility:
    """Thurstone–Mosteller abilities (case V) from score differences instead of wins.

    On a common question the score of j less that of i is normal with mean noise x (theta_i - theta_j) and standard
    deviation `noise`, the same for all pairs. The differences are fitted by least squares within questions, as in
    `adjusted_brier`; noise^2 is twice the residual variance, with F - N - Q + 1 degrees of freedom. Unlike wins alone
    (`bradley_terry.pairwise_ability`), margins keep the score proper: who is better by 0.01 on most questions and worse
    by 0.5 on a few is not the better forecaster.

    Parameters
    ----------
    panel : Panel
    values : array, shape (F,)
        A score of each forecast, lower is better; NaN leaves a forecast out.
    fit : AdjustedScores, optional
        `adjusted_brier(panel, values)`, if it is known.

    Returns
    -------
    MarginAbility
        NaN where the noise is 0 or not known, as with fewer than two common questions.

    Raises
    ------
    ValueError
        If `values` is not one per forecast.

    References
    ----------
    Thurstone, L. L. (1927). A law of comparative judgment. Psychological Review 34, 273-286. Mosteller, F. (1951).
    Remarks on the method of paired comparisons: I. The least squares solution assuming equal standard deviations and
    equal correlations. Psychometrika 16, 3-9.

    Examples
    --------
    >>> from forecast_rank.metrics.brier import brier_score
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.9], [0.8]], [[0.5], [0.6]]], [[1], [1]], exclusive=False)
    >>> scores = np.array([0.01, 0.25, 0.04, 0.16])  # differences 0.24 and 0.12: mean 0.18, deviation 0.12 / sqrt(2)
    >>> ability = margin_ability(panel, scores)
    >>> (ability.value * ability.noise).round(4).tolist(), round(ability.noise, 4)
    ([0.09, -0.09], 0.0849)
    """
    fit = adjusted_brier(panel, values) if fit is None else fit
    noise = np.sqrt(2) * fit.residual_deviation if fit.residual_deviation > 0 else np.nan
    sums = EventSums(fit.effect_sums.sums / -noise, fit.effect_sums.weights)
    return MarginAbility(-fit.effect / noise, fit.effect_se / noise, float(noise), fit.component, sums)
