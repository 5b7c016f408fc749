"""Skill: the Brier score compared with that of a reference on the same questions."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from forecast_rank.metrics.blocks import by_blocks
from forecast_rank.metrics.brier import brier_score
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.proper_scores import brier
from forecast_rank.metrics.uncertainty import cluster_se, event_sums


class MeanAlpha(NamedTuple):
    """Mean alpha of each forecaster.

    Attributes
    ----------
    value, standard_error : arrays, shape (N,)
    """

    value: Floats
    standard_error: Floats


def brier_skill(own: ArrayLike, reference: ArrayLike) -> Floats:
    """The Brier skill score 1 - own / reference.

    Parameters
    ----------
    own, reference : array, shape (N,)
        Mean Brier scores in the same form over the same questions.

    Returns
    -------
    array, shape (N,)
        1 is perfect, 0 equals the reference, negative is worse. NaN where the reference is 0 or either is NaN.

    Raises
    ------
    ValueError
        For a negative score.

    References
    ----------
    Murphy, A. H. (1973). Hedging and skill scores for probability forecasts. Journal of Applied Meteorology 12,
    215-223.

    Examples
    --------
    >>> brier_skill([0.125, 0.5], [0.25, 0.25]).tolist()
    [0.5, -1.0]
    """
    score, base = np.broadcast_arrays(np.asarray(own, dtype=np.float64), np.asarray(reference, dtype=np.float64))
    if (score < 0).any():
        raise ValueError("own: a Brier score is at least 0")
    if (base < 0).any():
        raise ValueError("reference: a Brier score is at least 0")
    return 1 - np.divide(score, base, out=np.full(score.shape, np.nan), where=base > 0)


def brier_skill_against(panel: Panel, reference: Floats) -> Floats:
    """Each forecaster's skill, 1 - mean Brier / mean reference, over the forecasts that have a reference.

    A ratio of means, not a mean of ratios, so that a question with a reference near 0 does not dominate.

    Parameters
    ----------
    panel : Panel
    reference : array, shape (F,)
        Brier score in mean form of the reference on each forecast's question, NaN without one: `market_brier(panel)` or
        `uniform_brier(panel)`.

    Returns
    -------
    array, shape (N,)
        Higher is better. NaN without a reference, or where the reference is always right.

    Raises
    ------
    ValueError
        If `reference` is not one per forecast.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.9, 0.1], [0.7, 0.3]]], [[1, 0], [1, 0]])
    >>> brier_skill_against(panel, uniform_brier(panel)).round(3).tolist()  # 1 - (0.01 + 0.09) / (0.25 + 0.25)
    [0.8]
    """
    reference = panel.one_per_forecast(reference, "reference")
    scores = np.where(np.isnan(reference), np.nan, brier(panel))
    return brier_skill(panel.forecaster_means(scores), panel.forecaster_means(reference))


def market_probability(panel: Panel) -> Floats:
    """Market probabilities of each forecast: mid prices, normalised to sum 1 where options are exclusive.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    array, shape (C,)
        NaN for all cells of a forecast that lacks a price.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.9, 0.1]]], [[1, 0]], odds=[[0.6, 0.2]])
    >>> market_probability(panel).round(6).tolist()  # 0.6 and 0.2, over 0.8
    [0.75, 0.25]
    """
    mid = panel.mid
    sums = panel.sum_cells(mid)
    return mid / panel.spread(np.where(panel.exclusive, sums, np.where(np.isnan(sums), np.nan, 1.0)))


@by_blocks
def market_brier(panel: Panel) -> Floats:
    """Brier score of the market, mean form, on the question and at the prices of each forecast.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    array, shape (F,)
        In [0, 1]; NaN without prices.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.9, 0.1]]], [[1, 0]], odds=[[0.6, 0.2]])
    >>> market_brier(panel).round(6).tolist()
    [0.0625]
    """
    return panel.sum_cells(brier_score(market_probability(panel), panel.outcome)) / panel.sizes


@by_blocks
def uniform_brier(panel: Panel) -> Floats:
    """Brier score, mean form, of the uniform forecast on each forecast's question: 1/n, or 0.5 if not exclusive.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    array, shape (F,)
        In [0, 0.25].

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> uniform_brier(from_arrays([[[0.9, 0.1]]], [[1, 0]])).tolist()
    [0.25]
    """
    uniform = panel.spread(np.where(panel.exclusive, 1 / panel.sizes, 0.5))
    return panel.sum_cells(brier_score(uniform, panel.outcome)) / panel.sizes


@by_blocks
def alpha(panel: Panel) -> Floats:
    """Brier score of the market less that of the forecaster, mean form, on the same question.

    The market is taken at the prices seen with that very forecast, so that forecasting at another hour brings no
    advantage.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    array, shape (F,)
        Above 0 where the forecaster was closer to the outcome; NaN without prices.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.9, 0.1]]], [[1, 0]], odds=[[0.72, 0.34]], no_odds=[[0.32, 0.7]])
    >>> alpha(panel).round(6).tolist()  # mid prices 0.7 and 0.32, over their sum: 0.686275; 0.098424 - 0.01
    [0.088424]
    """
    return market_brier(panel) - brier(panel)


def alpha_mean(panel: Panel) -> MeanAlpha:
    """Each forecaster's weighted mean of `alpha`, with a standard error clustered by event.

    SE = sqrt(G / (G - 1) sum_e (sum_i w_i (a_i - m))^2) / sum_i w_i over G events.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    MeanAlpha
        The value is NaN for a forecaster without prices, the error for one with fewer than two priced events.

    References
    ----------
    Liang, K.-Y. and Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models. Biometrika 73,
    13-22.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.5], [1.0]]], [[1], [1]], odds=[[0.5], [0.5]], exclusive=False)
    >>> mean, error = alpha_mean(panel)
    >>> mean.tolist(), error.tolist()  # alphas 0 and 0.25
    ([0.125], [0.125])
    """
    sums = event_sums(panel, alpha(panel))
    return MeanAlpha(sums.means, cluster_se(sums))


@by_blocks
def overround(panel: Panel) -> Floats:
    """The cost of buying every outcome at the asks, less the dollar that it pays.

    sum_k ask_k - 1 where options are exclusive, else the mean over options of YES ask + NO ask - 1. Returns are
    computed at the asks; nothing divides the overround away.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    array, shape (F,)
        NaN without prices.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> overround(from_arrays([[[0.5, 0.5]]], [[1, 0]], odds=[[0.6, 0.45]])).round(6).tolist()
    [0.05]
    """
    sums = panel.sum_cells(panel.odds)
    return np.where(panel.exclusive, sums, (sums + panel.sum_cells(panel.no_odds)) / panel.sizes) - 1
