"""Contests: what happened against all who took part, and the linear pool that does best in them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from scoring.metrics.panel import Codes, Floats, Panel
from scoring.metrics.sandwich import gram, table

ITERATIONS = 200
TOLERANCE = 1e-9
"""A gain or a slope per question (in nats) that counts as none."""


class Contests(NamedTuple):
    """What happened, as contests between the side that won and all who took part; T contests on Q questions.

    support : (T, N), the probability each forecaster gave to what happened, 0 where they were silent
    present : (Q, N), 1 where they answered
    question : (T,), row of `present` that a contest is about
    weight : (T,), of each contest; a question's contests share the mean weight of its forecasts
    impossible : how many contests were left out because everybody gave 0 to what happened
    """

    support: NDArray | sparse.csr_array
    present: NDArray | sparse.csr_array
    question: Codes
    weight: Floats
    impossible: int


def contests(panel: Panel) -> Contests:
    """The contests of a panel: one per question, won by what happened.

    An option that happened in part is a contest with that part of the weight. Where options are not exclusive each is a
    contest of its own between YES and NO, with 1/n of the weight.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> held = contests(from_arrays([[[0.2, 0.7]], [[0.5, 0.5]]], [[1, 0]], exclusive=False))
    >>> held.support.round(2).tolist(), held.weight.tolist()  # the first option happened, the second did not
    ([[0.2, 0.5], [0.3, 0.5]], [0.5, 0.5])
    """
    people, asked = len(panel.forecasters), len(panel.questions)
    answers = np.bincount(panel.question, minlength=asked)
    mean_weight = np.bincount(panel.question, panel.weight, asked) / np.maximum(answers, 1)
    row = np.cumsum(answers > 0) - 1
    option, outcome, cell_question = panel.cell_option, panel.outcome, panel.question[panel.cell_forecast]
    who, loose = panel.forecaster[panel.cell_forecast], ~panel.questions.exclusive[cell_question]
    yes = np.flatnonzero(outcome > 0)
    no = np.flatnonzero(loose & (outcome < 1))
    cell = np.concatenate([yes, no])
    # A contest is an option and a side of it.
    key = np.concatenate([2 * option[yes], 2 * option[no] + 1])
    held = np.zeros(2 * len(panel.questions.outcome), dtype=bool)
    held[key] = True
    index, count = (np.cumsum(held) - 1)[key], int(held.sum())
    said = np.concatenate([panel.probability[yes], 1 - panel.probability[no]])
    support = table(index, who[cell], said, (count, people))
    of_cell = cell_question[cell]
    part = np.concatenate([outcome[yes], 1 - outcome[no]]) * mean_weight[of_cell]
    weight, question = np.zeros(count), np.zeros(count, dtype=np.int64)
    weight[index] = np.where(loose[cell], part / panel.questions.sizes[of_cell], part)
    question[index] = row[of_cell]
    present = table(row[panel.question], panel.forecaster, np.ones(len(panel)), (int((answers > 0).sum()), people))
    possible = np.bincount(index, said, count) > 0
    return Contests(support[possible], present, question[possible], weight[possible], int((~possible).sum()))


def best_pool(
    support: NDArray | sparse.csr_array,
    present: NDArray | sparse.csr_array,
    share: Floats,
    of_question: Floats,
    pseudo: float,
) -> tuple[Floats, float, int]:
    """Maximises the pool's log-likelihood over theta >= 0: theta summing to 1, the KKT gap, iterations.

    Works on f(theta) + log(sum theta) - sum theta, whose maximum is that of the scale-free f at sum theta = 1. Follows
    the central path, theta z = mu, from mu = 0.1 / N down to the pseudo-count (or to nothing), mu falling whenever
    mu sum log theta + f is flat enough.
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
        won, everybody = support @ theta, present @ theta
        slope = support.T @ (share / won) - present.T @ (of_question / everybody)
        # At theta / mass, with the pseudo-count's own pull: what must be at most 0.
        gap = float((mass * slope + pseudo * (mass / theta - size)).max())
        if gap <= TOLERANCE:
            break
        free = slope + (1 - pseudo * size) / mass - 1
        while barrier > floor and np.abs(theta * free + barrier).max() <= 2 * barrier:
            barrier = max(floor, min(0.1 * barrier, barrier**1.5))
        curvature = gram(support, share / won**2) - gram(present, of_question / everybody**2)
        curvature += (1 - pseudo * size) / mass**2
        uphill = free + barrier / theta
        # In relative steps d theta / theta, where all numbers are of one size. What makes f convex in places is at most
        # the forecasters' shares in the crowd, so these are what is added if need be.
        system = theta[:, None] * curvature * theta + np.diag(theta * slack)
        crowd = theta * (present.T @ (of_question / everybody)) + barrier
        step = theta * _ascent(system, crowd, theta * uphill)
        turn = barrier / theta - slack - slack / theta * step
        length, before = _stay_inside(theta, step), gain(theta)
        while length > 1e-12 and gain(theta + length * step) < before + 1e-4 * length * (uphill @ step) - 1e-13:
            length /= 2
        theta = theta + length * step
        slack = slack + _stay_inside(slack, turn) * turn
    return theta / theta.sum(), gap, iteration


def _stay_inside(point: Floats, step: Floats) -> float:
    """The length of a step, at most 1, that goes 99.5 % of the way to the nearest bound at 0."""
    falling = step < 0
    return min(1.0, 0.995 * float((-point[falling] / step[falling]).min())) if falling.any() else 1.0


def _ascent(system: Floats, spare: Floats, slope: Floats) -> Floats:
    """Newton's step (system + extra diag(spare))^-1 slope, with the least of some extras that makes it ascend."""
    for extra in (0.0, 1e-3, 1e-2, 0.1, 1.0, 10.0):
        try:
            factor = linalg.cho_factor(system + np.diag(extra * spare), check_finite=False)
        except linalg.LinAlgError:
            continue
        return np.asarray(linalg.cho_solve(factor, slope, check_finite=False))
    return slope / spare
