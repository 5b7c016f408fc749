"""Item response model with forecasters integrated out: for many forecasters and few questions.

The parameters are z = (log a_1 .. log a_Q, b_1 .. b_Q, g_1 .. g_4). Abilities theta ~ N(0, 1) are summed over a grid of
nodes theta_n, so that the likelihood of a forecaster is L_f = sum_n pi_n exp(T_fn), with

    T_fn = sum_q w_fq [ a_q (theta_n - b_q) v_fq - a_q sum_k g_k r_fqk - log Z_nq ]

where v is the response and r its shares of the anchors.
"""

from collections.abc import Iterator

import numpy as np

from forecast_rank.metrics.cluster_robust import sum_table
from forecast_rank.metrics.flat_arrays import Floats, stable_order
from forecast_rank.metrics.irt_responses import (
    ANCHORS,
    IrtResponses,
    ResponseDistribution,
    anchor_shares,
    response_distribution,
)

LOG_A_SD, B_SD, SHAPE_SD = 1.0, 10.0, 10.0
"""Priors log a ~ N(0, 1), b ~ N(0, 10^2) and shape ~ N(0, 10^2): they only bound what data leave open."""
BOUNDS = ((-4.0, 4.0), (-60.0, 60.0), (-40.0, 40.0))
"""Of log a, b, shape."""
GRID = np.arange(-5, 5.01, 0.1)
"""Nodes of ability: fine enough for the posterior of somebody with a thousand answers."""
BLOCK = 1_000_000
"""Numbers handled at a time, forecasters by nodes."""


class MarginalOverForecasters:
    """Marginal likelihood of the questions' parameters, and the posterior of the forecasters' abilities."""

    def __init__(self, data: IrtResponses) -> None:
        self.forecasters, self.questions = data.forecasters, data.questions
        shape = (self.forecasters, self.questions)
        self.scored = sum_table(data.forecaster, data.question, data.weight * data.value, shape)
        self.present = sum_table(data.forecaster, data.question, data.weight, shape)
        shares = data.weight[:, None] * anchor_shares(data.value)
        self.shares = np.stack([np.bincount(data.question, share, self.questions) for share in shares.T], axis=1)
        self.log_mass = -np.square(GRID) / 2 - np.log(np.exp(-np.square(GRID) / 2).sum())

    @property
    def start(self) -> Floats:
        """Initial parameters: all questions equally difficult and discriminating."""
        return np.zeros(2 * self.questions + len(ANCHORS) - 2)

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Bounds of every parameter."""
        log_a, b, shape = BOUNDS
        return [log_a] * self.questions + [b] * self.questions + [shape] * (len(ANCHORS) - 2)

    def posteriors(self, z: Floats, distributions: ResponseDistribution) -> Iterator[tuple[slice, Floats, Floats]]:
        """Blocks of forecasters with their posterior masses, (forecasters, G), and log likelihoods, (forecasters,).

        The likelihoods leave out terms that do not depend on ability; `loss` adds them.
        """
        a, _, _ = self._unpack(z)
        slopes, log_norm = np.outer(a, GRID), distributions.log_norm.T.copy()
        step = max(BLOCK // len(GRID), 1)
        for first in range(0, self.forecasters, step):
            part = slice(first, min(first + step, self.forecasters))
            power = self.scored[part] @ slopes - self.present[part] @ log_norm + self.log_mass
            top = power.max(axis=1, keepdims=True)
            mass = np.exp(power - top)
            total = mass.sum(axis=1, keepdims=True)
            mass /= total
            yield part, mass, (top + np.log(total))[:, 0]

    def distributions(self, z: Floats) -> ResponseDistribution:
        """Distributions of the responses, (G, Q)."""
        a, b, shape = self._unpack(z)
        return response_distribution(a * (GRID[:, None] - b), a, shape)

    def loss(self, z: Floats) -> tuple[float, Floats]:
        """Minus the penalised log likelihood, and its gradient."""
        a, b, shape = self._unpack(z)
        distributions = self.distributions(z)
        scored, present, likelihood = np.zeros((len(GRID), len(a))), np.zeros((len(GRID), len(a))), 0.0
        for part, mass, logs in self.posteriors(z, distributions):
            likelihood += logs.sum()
            scored += mass.T @ self.scored[part]
            present += mass.T @ self.present[part]
        likelihood -= (a * b) @ scored.sum(axis=0) + a @ (self.shares @ shape)
        surplus = scored - present * distributions.mean
        excess = self.shares - np.einsum("nq,nqk->qk", present, distributions.chance)
        by_log_a = a * ((surplus * (GRID[:, None] - b)).sum(axis=0) - excess @ shape)
        gradient = np.concatenate([by_log_a, -a * surplus.sum(axis=0), -(a @ excess)[1:-1]])
        penalty, penalty_gradient = self.penalty(z)
        return penalty - likelihood, penalty_gradient - gradient

    def penalty(self, z: Floats) -> tuple[float, Floats]:
        """Minus the log prior density of the parameters, up to a constant, and its gradient."""
        sd = np.repeat([LOG_A_SD, B_SD, SHAPE_SD], [self.questions, self.questions, len(ANCHORS) - 2])
        return float(np.square(z / sd).sum() / 2), z / sd**2

    def abilities(self, z: Floats) -> tuple[Floats, Floats]:
        """Posterior means and standard deviations of the abilities, (N,) each."""
        moments = np.empty((self.forecasters, 2))
        for part, mass, _ in self.posteriors(z, self.distributions(z)):
            moments[part] = mass @ np.stack([GRID, GRID**2], axis=1)
        mean = moments[:, 0]
        return mean, np.sqrt(np.maximum(moments[:, 1] - mean**2, 0))

    def question_errors(self, z: Floats, data: IrtResponses) -> tuple[Floats, Floats]:
        """Standard errors of log a and of b, (Q,) each, from the empirical information.

        The inverse of sum_f c_f c_f' + prior, c_f the forecaster's share of the gradient for the question's (log a, b);
        other questions and the shape are held fixed.
        """
        a, b, shape = self._unpack(z)
        distributions = self.distributions(z)
        cost = distributions.chance @ shape
        sums = np.zeros((3, self.questions))
        order = stable_order(data.forecaster, self.forecasters)
        bounds = np.searchsorted(data.forecaster[order], np.arange(self.forecasters + 1))
        shares = anchor_shares(data.value) @ shape
        for part, mass, _ in self.posteriors(z, distributions):
            rows = order[bounds[part.start] : bounds[part.stop]]
            at, q = (data.forecaster[rows] - part.start, data.question[rows]), data.question[rows]
            weight, value = data.weight[rows], data.value[rows]
            ability = (mass @ GRID)[at[0]]
            by_b = -a[q] * weight * (value - (mass @ distributions.mean)[at])
            expected = (
                (mass @ (GRID[:, None] * distributions.mean))[at]
                - b[q] * (mass @ distributions.mean)[at]
                - (mass @ cost)[at]
            )
            by_log_a = a[q] * weight * (value * (ability - b[q]) - shares[rows] - expected)
            for row, product in enumerate((by_log_a**2, by_b**2, by_log_a * by_b)):
                sums[row] += np.bincount(q, product, self.questions)
        first, second, cross = sums[0] + 1 / LOG_A_SD**2, sums[1] + 1 / B_SD**2, sums[2]
        determinant = first * second - cross**2
        return np.sqrt(second / determinant), np.sqrt(first / determinant)

    def _unpack(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        shape = np.zeros(len(ANCHORS))
        shape[1:-1] = z[2 * self.questions :]
        return np.exp(z[: self.questions]), z[self.questions : 2 * self.questions], shape
