"""Pairwise comparisons of forecasters on common questions, and the Bradley–Terry strengths that explain them."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from forecast_rank.metrics.blocks import row_slices
from forecast_rank.metrics.cluster_robust import sum_table
from forecast_rank.metrics.flat_arrays import Codes, Floats, distinct_codes, stable_order
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.proper_scores import brier

TIE = 1e-10
"""Scores are compared in steps of so much: equal steps tie."""
BLOCK = 2_000_000
"""Numbers handled at a time where a table of questions by forecasters is worked through."""
ITERATIONS = 200
TOLERANCE = 1e-9


class PairwiseComparisons(NamedTuple):
    """F forecasts in the order of the panel, on questions with at least two forecasts.

    Attributes
    ----------
    forecaster, question : arrays of int, shape (F,)
        Forecaster and question.
    rank : array of int, shape (F,)
        Twice the mean rank among the forecasts on the question; 2 is the best alone.
    stake : array, shape (Q,)
        Weight of a comparison on each question.
    size : array of int, shape (Q,)
        Forecasts on each question.
    """

    forecaster: Codes
    question: Codes
    rank: Codes
    stake: Floats
    size: Codes


def pairwise_comparisons(panel: Panel, forecaster: Codes) -> PairwiseComparisons:
    """The comparisons of a panel whose questions have at least two forecasts.

    Parameters
    ----------
    panel : Panel
    forecaster : array of int, shape (F,)
        Codes of the forecasters.

    Returns
    -------
    PairwiseComparisons

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.9]], [[0.5]], [[0.5]]], [[1]], exclusive=False)
    >>> pairwise_comparisons(panel, panel.forecaster).rank.tolist()  # the other two share the ranks 2 and 3
    [2, 5, 5]
    """
    _, question = distinct_codes(panel.question)
    size = np.bincount(question)
    steps = round(1 / TIE)
    key = question * (2 * steps) + np.rint(brier(panel) * steps).astype(np.int64)  # by question, then by score
    order = np.argsort(key)
    start = np.cumsum(size) - size
    # Equal scores on one question share their mean rank.
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.diff(key[order]) != 0
    run, first = np.cumsum(new) - 1, np.flatnonzero(new)
    last = np.append(first[1:], len(order)) - 1
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = (first + last)[run] + 2 - 2 * start[question[order]]
    stake = np.bincount(question, panel.weight) / size / (size - 1)
    return PairwiseComparisons(forecaster, question, rank, stake, size)


def win_matrix(comparisons: PairwiseComparisons, n_forecasters: int) -> Floats:
    """Weight of the comparisons that each forecaster won against each other one, (N, N); row beats column."""
    questions = len(comparisons.size)
    rank_table = np.zeros((questions, n_forecasters), dtype=np.min_scalar_type(2 * int(comparisons.size.max())))
    rank_table[comparisons.question, comparisons.forecaster] = (
        comparisons.rank
    )  # 0 without a forecast: below every rank, so neither a win nor a tie
    order = stable_order(comparisons.forecaster, n_forecasters)
    bounds = np.searchsorted(comparisons.forecaster[order], np.arange(n_forecasters + 1))
    wins = np.zeros((n_forecasters, n_forecasters))
    for i in range(n_forecasters):
        item_codes = comparisons.question[order[bounds[i] : bounds[i + 1]]]
        for block in row_slices(0, len(item_codes), n_forecasters):
            rows = item_codes[block]
            ranks = rank_table[rows]
            half_wins = (ranks > ranks[:, [i]]).view(np.uint8) + (ranks >= ranks[:, [i]])  # two for a win
            wins[i] += comparisons.stake[rows] @ half_wins / 2
    np.fill_diagonal(wins, 0)
    return wins


def likelihood_contributions(comparisons: PairwiseComparisons, theta: Floats) -> tuple[Floats, Floats]:
    """Each forecast's contribution to the gradient and to the Hessian's diagonal at `theta`, (F,) each."""
    n_forecasters, questions = len(theta), len(comparisons.size)
    chance = expit(theta[:, None] - theta)
    np.fill_diagonal(chance, 0)
    present = sum_table(
        comparisons.question, comparisons.forecaster, np.ones(len(comparisons.forecaster)), (questions, n_forecasters)
    )
    expected, information = np.empty(len(comparisons.forecaster)), np.empty(len(comparisons.forecaster))
    starts = np.append(np.cumsum(comparisons.size) - comparisons.size, len(comparisons.forecaster))
    step = max(BLOCK // n_forecasters, 1)
    for first in range(0, questions, step):
        block = present[first : first + step]
        part = slice(starts[first], starts[min(first + step, questions)])
        at = comparisons.question[part] - first, comparisons.forecaster[part]
        expected[part] = (block @ chance.T)[at]
        information[part] = (block @ (chance * (1 - chance)))[at]
    beaten = comparisons.size[comparisons.question] - comparisons.rank / 2
    return comparisons.stake[comparisons.question] * (beaten - expected), comparisons.stake[
        comparisons.question
    ] * information


def fit_strengths(wins: Floats, ridge: float) -> Floats:
    """Strengths at the penalised maximum likelihood by damped Newton steps, (N,), with mean 0."""
    games, theta = wins + wins.T, np.zeros(len(wins))

    def gain(values: Floats) -> float:
        return float(-(wins * np.logaddexp(0, values - values[:, None])).sum() - ridge / 2 * (values @ values))

    for _ in range(ITERATIONS):
        chance = expit(theta[:, None] - theta)
        gradient = (wins - games * chance).sum(axis=1) - ridge * theta
        if np.abs(gradient).max() <= TOLERANCE * max(games.sum(), 1.0):
            break
        spread = games * chance * (1 - chance)
        step = np.linalg.solve(np.diag(spread.sum(axis=1) + ridge) - spread, gradient)
        length, before = 1.0, gain(theta)
        while length > 1e-10 and gain(theta + length * step) < before + 1e-4 * length * (gradient @ step) - 1e-12:
            length /= 2
        theta = theta + length * step
    return theta - theta.mean()
