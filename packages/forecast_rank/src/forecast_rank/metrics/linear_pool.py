"""The linear pool of forecasters with the highest likelihood, by a primal-dual interior point method."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from forecast_rank.metrics.cluster_robust import sum_table, weighted_gram
from forecast_rank.metrics.flat_arrays import Codes, Floats
from forecast_rank.metrics.panel import Panel

ITERATIONS = 200
TOLERANCE = 1e-9
"""A gain or a slope per question (in nats) that counts as none."""


class PoolContests(NamedTuple):
    """Outcomes as contests between the winning side and all participants: T contests on Q questions.

    Attributes
    ----------
    support : array or sparse array, shape (T, N)
        Probability that each forecaster gave to the outcome; 0 without a forecast.
    present : array or sparse array, shape (Q, N)
        1 where the forecaster made a forecast.
    question : array of int, shape (T,)
        Row of `present` of each contest.
    weight : array, shape (T,)
        A question's contests share the mean weight of its forecasts.
    impossible : int
        Contests left out because every forecaster gave the outcome probability 0.
    """

    support: NDArray | sparse.csr_array
    present: NDArray | sparse.csr_array
    question: Codes
    weight: Floats
    impossible: int


def pool_contests(panel: Panel) -> PoolContests:
    """The contests of a panel: one per question, won by the outcome.

    A fractional outcome is a contest with that fraction of the weight. Options that are not exclusive are contests of
    their own between YES and NO, with 1/n of the weight each.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    PoolContests

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> contests = pool_contests(from_arrays([[[0.2, 0.7]], [[0.5, 0.5]]], [[1, 0]], exclusive=False))
    >>> contests.support.round(2).tolist(), contests.weight.tolist()  # the first option happened, the second did not
    ([[0.2, 0.5], [0.3, 0.5]], [0.5, 0.5])
    """
    n_forecasters, n_questions = len(panel.forecasters), len(panel.questions)
    answers = np.bincount(panel.question, minlength=n_questions)
    mean_weight = np.bincount(panel.question, panel.weight, n_questions) / np.maximum(answers, 1)
    row = np.cumsum(answers > 0) - 1
    questions = panel.questions
    option_question = np.repeat(np.arange(n_questions), questions.sizes)
    won = questions.outcome > 0
    has_failed = ~questions.exclusive[option_question] & (questions.outcome < 1)
    option = panel.cell_option
    yes, no = np.flatnonzero(won[option]), np.flatnonzero(has_failed[option])
    cell = np.concatenate([yes, no])
    option = option[cell]
    # A contest is an option with one of its two sides.
    key = 2 * option
    key[len(yes) :] += 1
    occurs = np.zeros(2 * len(questions.outcome), dtype=bool)
    occurs[key] = True
    index, count = (np.cumsum(occurs) - 1)[key], int(occurs.sum())
    probability = np.concatenate([panel.probability[yes], 1 - panel.probability[no]])
    forecaster = panel.forecaster[np.searchsorted(panel.offsets, cell, side="right") - 1]
    support = sum_table(index, forecaster, probability, (count, n_forecasters))
    of_cell = option_question[option]
    part = questions.outcome[option]
    part[len(yes) :] = 1 - part[len(yes) :]
    part *= mean_weight[of_cell]
    weight, question = np.zeros(count), np.zeros(count, dtype=np.int64)
    weight[index] = np.where(questions.exclusive[of_cell], part, part / questions.sizes[of_cell])
    question[index] = row[of_cell]
    present = sum_table(
        row[panel.question], panel.forecaster, np.ones(len(panel)), (int((answers > 0).sum()), n_forecasters)
    )
    possible = np.bincount(index, probability, count) > 0
    return PoolContests(support[possible], present, question[possible], weight[possible], int((~possible).sum()))


def maximise_pool_likelihood(
    support: NDArray | sparse.csr_array,
    present: NDArray | sparse.csr_array,
    share: Floats,
    of_question: Floats,
    pseudo: float,
) -> tuple[Floats, float, int]:
    """Weights theta >= 0 of the linear pool with the highest log-likelihood.

    Maximises f(theta) + log(sum theta) - sum theta, whose maximum is that of the scale-free f at sum theta = 1, along
    the central path theta z = mu, from mu = 0.1 / N down to the pseudo-count (or to nothing); mu falls whenever mu sum
    log theta + f is flat enough.

    Parameters
    ----------
    support, present : arrays or sparse arrays
        See `PoolContests`.
    share : array, shape (T,)
        Weights of the contests, summing to 1.
    of_question : array, shape (Q,)
        `share` summed by question.
    pseudo : float
        Pseudo-count of each forecaster over the total weight.

    Returns
    -------
    theta : array, shape (N,)
        Sums to 1.
    gap : float
        Karush–Kuhn–Tucker gap, in nats per question.
    iterations : int
    """
    size = support.shape[1]
    theta, slack = np.full(size, 1 / size), np.full(size, 0.1)
    floor, barrier = max(pseudo, TOLERANCE / 100), max(pseudo, 0.1 / size)
    gap, iteration = np.inf, 0

    def gain(weights: Floats) -> float:
        mass = weights.sum()
        likelihood = share @ np.log(support @ weights) - of_question @ np.log(present @ weights)
        return float(likelihood + (1 - pseudo * size) * np.log(mass) - mass + barrier * np.log(weights).sum())

    for iteration in range(1, ITERATIONS + 1):  # noqa: B007
        mass = theta.sum()
        outcome_mass, total_mass = support @ theta, present @ theta
        slope = support.T @ (share / outcome_mass) - present.T @ (of_question / total_mass)
        # Derivative at theta / mass, with the pseudo-count's; it is at most 0 at the maximum.
        gap = float((mass * slope + pseudo * (mass / theta - size)).max())
        if gap <= TOLERANCE:
            break
        free = slope + (1 - pseudo * size) / mass - 1
        while barrier > floor and np.abs(theta * free + barrier).max() <= 2 * barrier:
            barrier = max(floor, min(0.1 * barrier, barrier**1.5))
        curvature = weighted_gram(support, share / outcome_mass**2) - weighted_gram(
            present, of_question / total_mass**2
        )
        curvature += (1 - pseudo * size) / mass**2
        gradient = free + barrier / theta
        # Newton's system in relative steps d theta / theta, where all numbers are of one size. The convex part of f
        # is at most the forecasters' shares of the crowd, so adding these makes the system definite.
        system = theta[:, None] * curvature * theta + np.diag(theta * slack)
        crowd = theta * (present.T @ (of_question / total_mass)) + barrier
        step = theta * _ascent(system, crowd, theta * gradient)
        turn = barrier / theta - slack - slack / theta * step
        length, before = _stay_inside(theta, step), gain(theta)
        while length > 1e-12 and gain(theta + length * step) < before + 1e-4 * length * (gradient @ step) - 1e-13:
            length /= 2
        theta = theta + length * step
        slack = slack + _stay_inside(slack, turn) * turn
    return theta / theta.sum(), gap, iteration


def _stay_inside(point: Floats, step: Floats) -> float:
    """Step length, at most 1, that goes 99.5 % of the way to the nearest bound at 0."""
    falling = step < 0
    return min(1.0, 0.995 * float((-point[falling] / step[falling]).min())) if falling.any() else 1.0


def _ascent(system: Floats, spare: Floats, slope: Floats) -> Floats:
    """Newton step (system + extra diag(spare))^-1 slope, with the smallest extra that makes it definite."""
    for extra in (0.0, 1e-3, 1e-2, 0.1, 1.0, 10.0):
        try:
            factor = linalg.cho_factor(system + np.diag(extra * spare), check_finite=False)
        except linalg.LinAlgError:
            continue
        return np.asarray(linalg.cho_solve(factor, slope, check_finite=False))
    return slope / spare
