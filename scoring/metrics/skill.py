"""Skill: a forecaster's Brier score beside that of a reference on the same questions."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from scoring.metrics.brier import brier_score
from scoring.metrics.panel import Floats, Panel
from scoring.metrics.proper import brier
from scoring.metrics.uncertainty import cluster_se, event_sums


class Alpha(NamedTuple):
    """Each forecaster's mean alpha with its standard error, both (N,)."""

    value: Floats
    standard_error: Floats


def brier_skill(own: ArrayLike, reference: ArrayLike) -> Floats:
    """The Brier skill score 1 - own / reference: (N,), 1 is perfect, 0 is the reference, below 0 is worse.

    Both scores in the same form and over the same questions. NaN where the reference is 0 (it can not be beaten) or
    either is NaN.

    Raises ValueError for a negative score.

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
    """Each forecaster's skill 1 - mean Brier / mean reference over the forecasts that have a reference: (N,).

    Parameters
    ----------
    reference : (F,), the Brier score in mean form that the reference has on the question of each forecast, NaN where it
        has none: `market_brier(panel)` or `uniform_brier(panel)`

    A ratio of means, not a mean of ratios: one question that the reference had nearly right does not decide. NaN for a
    forecaster without a reference or with one that is always right.

    Raises ValueError if `reference` is not one per forecast.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.9, 0.1], [0.7, 0.3]]], [[1, 0], [1, 0]])
    >>> brier_skill_against(panel, uniform_brier(panel)).round(3).tolist()  # 1 - (0.01 + 0.09) / (0.25 + 0.25)
    [0.8]
    """
    if reference.shape != (len(panel),):
        raise ValueError(f"reference: one per forecast, {len(panel)}, not shape {reference.shape}")
    own = np.where(np.isnan(reference), np.nan, brier(panel))
    return brier_skill(panel.forecaster_means(own), panel.forecaster_means(reference))


def market_probability(panel: Panel) -> Floats:
    """What the market said at the prices of each forecast, (C,): mid prices, over their sum if options are exclusive.

    The mid price is half way between the YES ask and the YES bid, which is one less the NO ask. NaN for the cells of a
    forecast that lacks a price.
    """
    mid = panel.mid
    sums = panel.sum_cells(mid)
    return mid / panel.spread(np.where(panel.exclusive, sums, np.where(np.isnan(sums), np.nan, 1.0)))


def market_brier(panel: Panel) -> Floats:
    """The market's Brier score, mean form, on the question and at the prices of each forecast: (F,), NaN unpriced."""
    return panel.sum_cells(brier_score(market_probability(panel), panel.outcome)) / panel.sizes


def uniform_brier(panel: Panel) -> Floats:
    """The Brier score, mean form, of saying 1/n (0.5 where options are not exclusive) to each question: (F,)."""
    uniform = panel.spread(np.where(panel.exclusive, 1 / panel.sizes, 0.5))
    return panel.sum_cells(brier_score(uniform, panel.outcome)) / panel.sizes


def alpha(panel: Panel) -> Floats:
    """The market's Brier score less the forecaster's own: (F,), above 0 where the forecaster was nearer; NaN unpriced.

    Mean form, the same question, and the prices that were seen with that very forecast, so nobody gains by asking at
    another hour. See `market_probability` for the market's vector.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.9, 0.1]]], [[1, 0]], odds=[[0.72, 0.34]], no_odds=[[0.32, 0.7]])
    >>> alpha(panel).round(6).tolist()  # mid prices 0.7 and 0.32, over their sum: 0.686275; 0.098424 - 0.01
    [0.088424]
    """
    return market_brier(panel) - brier(panel)


def alpha_mean(panel: Panel) -> Alpha:
    """Each forecaster's weighted mean of `alpha`, with a standard error clustered by event: two arrays (N,).

    SE = sqrt(G / (G - 1) sum_e (sum_i w_i (a_i - m))^2) / sum_i w_i over G events. The value is NaN for a forecaster
    without prices, the error for one with fewer than two priced events.

    References
    ----------
    Liang, K.-Y. and Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models. Biometrika 73,
    13-22.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.5], [1.0]]], [[1], [1]], odds=[[0.5], [0.5]], exclusive=False)
    >>> mean, error = alpha_mean(panel)
    >>> mean.tolist(), error.tolist()  # alphas 0 and 0.25
    ([0.125], [0.125])
    """
    sums = event_sums(panel, alpha(panel))
    return Alpha(sums.means, cluster_se(sums))


def overround(panel: Panel) -> Floats:
    """How much more than a dollar it costs to buy every outcome at the asks: (F,), NaN unpriced.

    sum_k ask_k - 1 where options are exclusive; else the mean over options of YES ask + NO ask - 1. Nothing in the
    suite divides it away: returns are at the asks.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> overround(from_arrays([[[0.5, 0.5]]], [[1, 0]], odds=[[0.6, 0.45]])).round(6).tolist()
    [0.05]
    """
    sums = panel.sum_cells(panel.odds)
    return np.where(panel.exclusive, sums, (sums + panel.sum_cells(panel.no_odds)) / panel.sizes) - 1
