"""Proper scores of each forecast: Brier, logarithmic, spherical; and accuracy of the top option.

p_k is the probability of option k, o_k its outcome: 0 or 1, or a fraction where a question is scored before it
resolves. Where options are exclusive, a forecast is one vector. Where they are not, each option is a binary question
(p_k, 1 - p_k), and the forecast's score is the mean over the options; a plain binary question so has the same score as
one option or as two.
"""

import numpy as np
from numpy.typing import NDArray

from forecast_rank.metrics.blocks import by_blocks
from forecast_rank.metrics.brier import brier_score
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel

LOG_CLIP = 1e-6
TIE = 1e-12
"""Probabilities (or ratios of them) nearer than this are equal."""


def settled(panel: Panel) -> NDArray[np.bool_]:
    """Whether each forecast's question has a complete outcome.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    array of bool, shape (F,)
        Where options are exclusive: whether outcomes sum to 1 within 1e-6. Elsewhere always true. Scores that need the
        probability of the option that happened are NaN where this is false.
    """
    questions = panel.questions
    if len(questions) == 0:
        return np.ones(len(panel), dtype=bool)
    sums = np.add.reduceat(questions.outcome, questions.offsets[:-1])
    return (~questions.exclusive | (np.abs(sums - 1) <= 1e-6))[panel.question]


@by_blocks
def brier(panel: Panel) -> Floats:
    """The Brier score in its mean form, (1/n) sum_k (p_k - o_k)^2.

    Equal to (p - o)^2 on a binary question. Defined for any outcome, fractions too. At most 2/n for exclusive options,
    so that questions of many options score lower.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    array, shape (F,)
        In [0, 1], lower is better.

    References
    ----------
    Brier, G. W. (1950). Verification of forecasts expressed in terms of probability. Monthly Weather Review 78, 1-3.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> brier(from_arrays([[[0.7, 0.2, 0.1]]], [[1, 0, 0]])).round(6).tolist()  # (0.09 + 0.04 + 0.01) / 3
    [0.046667]
    """
    return panel.sum_cells(brier_score(panel.probability, panel.outcome)) / panel.sizes


@by_blocks
def brier_sum(panel: Panel) -> Floats:
    """The Brier score in its sum form, sum_k (p_k - o_k)^2, as in Brier's own paper.

    Where options are not exclusive: the mean over them of the binary sum 2 (p_k - o_k)^2. Twice the mean form on a
    binary question.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    array, shape (F,)
        In [0, 2], lower is better.

    References
    ----------
    Brier, G. W. (1950). Verification of forecasts expressed in terms of probability. Monthly Weather Review 78, 1-3.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> brier_sum(from_arrays([[[0.7, 0.2, 0.1]]], [[1, 0, 0]])).round(6).tolist()
    [0.14]
    >>> brier_sum(from_arrays([[[0.7]]], [[1]], exclusive=False)).round(6).tolist()  # as (0.7, 0.3)
    [0.18]
    """
    sums = panel.sum_cells(brier_score(panel.probability, panel.outcome))
    return np.where(panel.exclusive, sums, 2 * sums / panel.sizes)


@by_blocks
def log_score(panel: Panel, clip: float = LOG_CLIP) -> Floats:
    """The natural logarithm of the probability of the option that happened, sum_k o_k ln max(p_k, clip).

    Where options are not exclusive: the mean over them of o_k ln max(p_k, clip) + (1 - o_k) ln max(1 - p_k, clip).

    Parameters
    ----------
    panel : Panel
    clip : float
        Lowest probability that is charged, in [0, 1). With 0, a forecast that gave probability 0 to the outcome scores
        minus infinity. Clipping bounds the loss, so the score is proper only for forecasts above `clip`: report
        `infinite_losses` beside it.

    Returns
    -------
    array, shape (F,)
        At most 0, higher is better; NaN where `settled` is false.

    Raises
    ------
    ValueError
        If `clip` is outside [0, 1).

    References
    ----------
    Good, I. J. (1952). Rational decisions. Journal of the Royal Statistical Society B 14, 107-114.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> log_score(from_arrays([[[0.5, 0.5], [1.0, 0.0]]], [[1, 0], [0, 1]])).round(4).tolist()
    [-0.6931, -13.8155]
    """
    if not 0 <= clip < 1:
        raise ValueError(f"clip: at least 0 and below 1, not {clip}")
    count, outcome = len(panel), panel.outcome
    happened = np.flatnonzero(outcome > 0)
    gains = outcome[happened] * _log(panel.probability[happened], clip)
    score = np.asarray(np.bincount(panel.cell_forecast[happened], gains, count), dtype=np.float64)
    loose = ~panel.exclusive
    if loose.any():
        failed = np.flatnonzero(panel.spread(loose) & (outcome < 1))
        losses = (1 - outcome[failed]) * _log(1 - panel.probability[failed], clip)
        score += np.bincount(panel.cell_forecast[failed], losses, count)
        score = np.where(loose, score / panel.sizes, score)
    return _where_settled(panel, score)


def infinite_losses(panel: Panel) -> NDArray[np.int64]:
    """Number of forecasts whose unclipped logarithmic loss is infinite.

    They gave probability 0 to an option with o_k > 0 or, where options are not exclusive, 1 to an option with o_k < 1.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    array of int, shape (N,)
        Unweighted counts.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> infinite_losses(from_arrays([[[0.5, 0.5], [1.0, 0.0]]], [[1, 0], [0, 1]])).tolist()
    [1]
    """
    return np.bincount(panel.forecaster, _loses_all(panel), len(panel.forecasters)).astype(np.int64)


@by_blocks
def _loses_all(panel: Panel) -> Floats:
    """1 for each forecast with an infinite loss, else 0."""
    outcome, probability = panel.outcome, panel.probability
    impossible = (probability <= 0) & (outcome > 0)
    certain = (probability >= 1) & (outcome < 1)
    if certain.any():
        impossible |= certain & panel.spread(~panel.exclusive)
    return (panel.sum_cells(impossible.astype(np.float64)) > 0).astype(np.float64)


@by_blocks
def spherical(panel: Panel) -> Floats:
    """The spherical score, sum_k o_k p_k / |p|_2.

    Where options are not exclusive: the mean over them of (o_k p_k + (1 - o_k)(1 - p_k)) / |(p_k, 1 - p_k)|. A vector
    of zeros scores 0, the minimum.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    array, shape (F,)
        In [0, 1], higher is better; NaN where `settled` is false.

    References
    ----------
    Good, I. J. (1971). Comment on "Measuring information and uncertainty" by R. J. Buehler. In: Foundations of
    Statistical Inference, 337-339. Gneiting, T. and Raftery, A. E. (2007). Strictly proper scoring rules, prediction,
    and estimation. Journal of the American Statistical Association 102, 359-378.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> spherical(from_arrays([[[0.6, 0.8]]], [[1, 0]])).round(6).tolist()
    [0.6]
    """
    probability, outcome = panel.probability, panel.outcome
    outcome_probability, length = (
        panel.sum_cells(probability * outcome),
        np.sqrt(panel.sum_cells(np.square(probability))),
    )
    score = np.divide(outcome_probability, length, out=np.zeros(len(panel)), where=length > 0)
    loose = ~panel.exclusive
    if loose.any():
        two_way = (outcome * probability + (1 - outcome) * (1 - probability)) / np.hypot(probability, 1 - probability)
        score = np.where(loose, panel.sum_cells(two_way) / panel.sizes, score)
    return _where_settled(panel, score)


@by_blocks
def accuracy(panel: Panel) -> Floats:
    """Whether the most probable option happened: 1 or 0, and 1/m if it is tied with m - 1 others.

    Where options are not exclusive: the share of options on the right side of 0.5; one half for a probability of 0.5.
    Fractional outcomes count as fractions. Probabilities within 1e-12 are tied.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    array, shape (F,)
        In [0, 1], higher is better; NaN where `settled` is false.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> accuracy(from_arrays([[[0.4, 0.4, 0.2], [0.1, 0.2, 0.7]]], [[1, 0, 0], [0, 0, 1]])).tolist()
    [0.5, 1.0]
    """
    probability, outcome = panel.probability, panel.outcome
    top = probability >= panel.spread(panel.max_cells(probability)) - TIE
    score = panel.sum_cells(top * outcome) / panel.sum_cells(top.astype(np.float64))
    loose = ~panel.exclusive
    if loose.any():
        correct = np.select([probability > 0.5 + TIE, probability < 0.5 - TIE], [outcome, 1 - outcome], 0.5)
        score = np.where(loose, panel.sum_cells(correct) / panel.sizes, score)
    return _where_settled(panel, score)


def by_category(panel: Panel, values: Floats) -> Floats:
    """Each forecaster's weighted mean of a score within each category.

    Parameters
    ----------
    panel : Panel
    values : array, shape (F,)
        A score of each forecast; NaN values are left out with their weight.

    Returns
    -------
    array, shape (N, number of categories)
        Columns as in `panel.questions.category_names`; NaN for a category without values.

    Raises
    ------
    ValueError
        If `values` is not one per forecast.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> by_category(from_arrays([[[0.5, 0.5], [0.9, 0.1]]], [[1, 0], [1, 0]]), np.array([0.25, 0.01])).tolist()
    [[0.13]]
    """
    values = panel.one_per_forecast(values)
    forecaster_count, categories = len(panel.forecasters), len(panel.questions.category_names)
    is_counted = ~np.isnan(values)
    cell = (panel.forecaster * categories + panel.questions.category[panel.question])[is_counted]
    weight = panel.weight[is_counted]
    total = np.bincount(cell, weight * values[is_counted], forecaster_count * categories)
    mass = np.bincount(cell, weight, forecaster_count * categories)
    means = np.divide(total, mass, out=np.full(forecaster_count * categories, np.nan), where=mass > 0)
    return means.reshape(forecaster_count, categories)


def _log(probability: Floats, clip: float) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(probability, clip))


def _where_settled(panel: Panel, score: Floats) -> Floats:
    is_known = settled(panel)
    return score if is_known.all() else np.where(is_known, score, np.nan)
