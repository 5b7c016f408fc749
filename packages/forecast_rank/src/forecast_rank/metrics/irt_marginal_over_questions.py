"""Marginal likelihood of the item response model with questions integrated out: for many questions and few forecasters.

The parameters are z = (theta_1 .. theta_N, g_1 .. g_4, m, log s, log t). Difficulties b ~ N(m, s^2) and discriminations
log a ~ N(0, t^2) of the questions are summed over a grid, so that the likelihood of a question is
L_q = sum_n pi_n exp(T_qn), with n a node (a_n, b_n), pi_n its prior mass, and

    T_qn = sum_f w_fq [ a_n (theta_f - b_n) v_fq - a_n sum_k g_k r_fqk - log Z_nf ]
         = a_n (S_q . theta - R_q . g) - a_n b_n sum_f S_qf - M_q . log Z_n

where S, M, R hold the sums of w v, w and w r (v the response, r its shares of the anchors): of questions by nodes there
is one matrix product, with M.
"""

from collections.abc import Iterator
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forecast_rank.metrics.cluster_robust import sum_table
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.irt_responses import (
    ANCHORS,
    IrtResponses,
    ResponseDistribution,
    anchor_shares,
    response_distribution,
)

ABILITY_SD = 3.0
"""Prior of abilities, N(0, 3^2), on the scale where the median discrimination is 1: it only bounds what data leave
open."""
SHAPE_SD = 10.0
"""Prior of the shape g and of the mean difficulty, N(0, 10^2)."""
HYPER = np.log([4.0, 0.5])
"""Prior medians of s and t; their logarithms have standard deviation 1."""
BOUNDS = [(-20.0, 20.0), (-40.0, 40.0), (-30.0, 30.0), (log(0.3), log(30.0)), (log(0.03), log(1.5))]
"""Of theta, g, m, log s, log t: beyond them the grid ends."""
LARGEST_STEP = 0.15
"""Largest step in u of the difficulties' grid a b = 3 sinh u: 0.45 near 0, for a prior deviation of at least 0.3."""
BLOCK = 100_000
"""Numbers handled at a time, questions by nodes: they stay in the processor's cache."""
PAIRS_BLOCK = 4_000_000
"""Numbers handled at a time for second derivatives."""
NEGLIGIBLE = 1e-6
"""Posterior mass of a node that is left out of second derivatives."""


class Nodes(NamedTuple):
    """The grid of G nodes at one value of the parameters.

    Attributes
    ----------
    a, b : arrays, shape (G,)
        Discrimination and difficulty.
    log_mass : array, shape (G,)
        Log prior mass.
    distribution : ResponseDistribution, shape (G, N)
    """

    a: Floats
    b: Floats
    log_mass: Floats
    distribution: ResponseDistribution


class MarginalOverQuestions:
    """Marginal likelihood of the abilities, with its derivatives, and the posterior of the questions' parameters.

    `spacing` multiplies the steps of the grid: 1 is exact enough to report, more is faster.
    """

    def __init__(self, data: IrtResponses, spacing: float = 1.0) -> None:
        self.forecasters, self.questions = data.forecasters, data.questions
        shape = (self.questions, self.forecasters)
        self.scored = sum_table(data.question, data.forecaster, data.weight * data.value, shape)
        self.present = sum_table(data.question, data.forecaster, data.weight, shape)
        self.total_scored = np.bincount(data.question, data.weight * data.value, self.questions)
        shares = data.weight[:, None] * anchor_shares(data.value)
        columns = [np.bincount(data.question, share, self.questions) for share in shares.T]
        self.shares = np.stack(columns, axis=1)
        # A question with more answers has a sharper posterior, which needs a finer grid. With few answers the estimated
        # prior may be as narrow as its bound, and the grid must resolve the prior.
        fine = np.sqrt(50 / max(len(data.value) / self.questions, 1.0))
        x = _even(3.0, spacing * np.clip(0.5 * fine, 0.25, 0.5))
        points = _even(4.2, along := spacing * np.clip(0.2 * fine, 0.1, LARGEST_STEP))
        grid = np.meshgrid(x, points, indexing="ij")
        # log a = t x; a b = 3 sinh u: steps that grow as the information about b falls.
        self.x, self.product = grid[0].ravel(), 3 * np.sinh(grid[1].ravel())
        self.log_step = np.log(3 * np.cosh(grid[1].ravel()) * along)
        self.log_x = -np.square(self.x) / 2 - np.log(np.exp(-np.square(x) / 2).sum())

    @property
    def start(self) -> Floats:
        """Initial parameters: all forecasters equally able."""
        return np.concatenate([np.zeros(self.forecasters + len(ANCHORS) - 1), HYPER])

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Bounds of every parameter."""
        return [BOUNDS[0]] * self.forecasters + [BOUNDS[1]] * (len(ANCHORS) - 2) + BOUNDS[2:]

    def nodes(self, z: Floats) -> Nodes:
        """The grid at parameters z."""
        theta, shape, m, s, t = self._unpack(z)
        a = np.exp(t * self.x)
        b = self.product / a
        # db = d(ab) / a on a line of equal a.
        log_mass = self.log_x - np.square((b - m) / s) / 2 - np.log(a) + self.log_step
        # Here scipy's `logsumexp` would take a quarter of a small fit.
        log_mass -= log_mass.max()
        log_mass -= np.log(np.exp(log_mass).sum())
        eta = a[:, None] * theta - self.product[:, None]
        return Nodes(a, b, log_mass, response_distribution(eta, a[:, None], shape))

    def posteriors(self, z: Floats, nodes: Nodes) -> Iterator[tuple[slice, Floats, Floats]]:
        """Blocks of questions with their posterior masses, (questions, G), and log likelihoods, (questions,)."""
        for part, mass, total, top in self._likelihoods(self._gain(z), nodes):
            mass /= total[:, None]
            yield part, mass, top + np.log(total)

    def _gain(self, z: Floats) -> Floats:
        """S_q . theta - R_q . g, the slope of T_qn by a at constant a b, (Q,)."""
        theta, shape, *_ = self._unpack(z)
        return np.asarray(self.scored @ theta - self.shares @ shape)

    def _likelihoods(self, gain: Floats, nodes: Nodes) -> Iterator[tuple[slice, Floats, Floats, Floats]]:
        """Blocks of questions with posterior masses times `total`, (questions, G); `total` and `top`, (questions,).

        The likelihood of a question is total x exp(top).
        """
        log_norm = nodes.distribution.log_norm.T.copy()
        slopes = np.stack([gain, -self.total_scored, np.ones(self.questions)], axis=1)
        rows = np.stack([nodes.a, self.product, nodes.log_mass])
        step = max(BLOCK // len(nodes.a), 1)
        for first in range(0, self.questions, step):
            part = slice(first, min(first + step, self.questions))
            power = slopes[part] @ rows
            power -= self.present[part] @ log_norm
            top = power.max(axis=1)
            power -= top[:, None]
            mass = np.exp(power, out=power)
            yield part, mass, mass.sum(axis=1), top

    def loss(self, z: Floats) -> tuple[float, Floats]:
        """Minus the penalised log likelihood, and its gradient.

        By Fisher's identity the gradient of log L_q is the posterior mean of the gradient of T_qn + log pi_n.
        """
        theta, shape, m, s, t = self._unpack(z)
        nodes, gain = self.nodes(z), self._gain(z)
        size = len(nodes.a)
        present, node_mass, node_gain = np.zeros((size, self.forecasters)), np.zeros(size), np.zeros(size)
        mean_a, likelihood = np.empty(self.questions), 0.0
        for part, mass, total, top in self._likelihoods(gain, nodes):
            likelihood += float((top + np.log(total)).sum())
            mean_a[part] = (mass @ nodes.a) / total
            node_mass += mass.T @ (1 / total)
            node_gain += mass.T @ (gain[part] / total)
            present += (self._scaled(part, 1 / total).T @ mass).T
        chance, mean = nodes.distribution.by_anchor, nodes.distribution.mean
        weighted = nodes.a[:, None] * present
        standard = (nodes.b - m) / s
        # Posterior mass above the prior's, whose derivative is that of the normalised prior.
        added = node_mass - self.questions * np.exp(nodes.log_mass)
        expected = mean * theta - np.tensordot(shape, chance, axes=1)
        # Derivative by log a at constant a b.
        by_a = nodes.a * (node_gain - (present * expected).sum(axis=1)) + added * (standard * nodes.b / s - 1)
        excess = mean_a @ self.shares - np.tensordot(chance, weighted, axes=2)
        gradient = np.concatenate(
            [
                mean_a @ self.scored - (weighted * mean).sum(axis=0),
                -excess[1:-1],
                [added @ standard / s, added @ (np.square(standard) - 1), (by_a * t * self.x).sum()],
            ]
        )
        penalty, penalty_gradient = self.penalty(z)
        return penalty - likelihood, penalty_gradient - gradient

    def _scaled(self, part: slice, factor: Floats) -> NDArray | sparse.csr_array:
        """A block of `present` with each question's row multiplied by its factor."""
        block = self.present[part]
        return block * factor[:, None] if isinstance(block, np.ndarray) else sparse.diags_array(factor) @ block

    def penalty(self, z: Floats) -> tuple[float, Floats]:
        """Minus the log prior density of the parameters, up to a constant, and its gradient."""
        inner = len(ANCHORS) - 2
        sd = np.repeat([ABILITY_SD, SHAPE_SD, 1.0], [self.forecasters, inner + 1, len(HYPER)])
        deviation = (z - np.concatenate([np.zeros(self.forecasters + inner + 1), HYPER])) / sd
        return float(deviation @ deviation / 2), deviation / sd

    def questions_at(self, z: Floats) -> tuple[Floats, Floats, Floats, Floats, float]:
        """Posterior means and standard deviations of b and of a, (Q,) each; and the log likelihood."""
        nodes = self.nodes(z)
        values = np.stack([nodes.b, nodes.a, nodes.b**2, nodes.a**2], axis=1)
        moments, likelihood = np.empty((self.questions, 4)), 0.0
        for part, mass, logs in self.posteriors(z, nodes):
            moments[part] = mass @ values
            likelihood += logs.sum()
        b, a, b2, a2 = moments.T
        return b, np.sqrt(np.maximum(b2 - b**2, 0)), a, np.sqrt(np.maximum(a2 - a**2, 0)), float(likelihood)

    def curvature(self, z: Floats, data: IrtResponses) -> tuple[Floats, Floats, Floats]:
        """The Hessian for the abilities, (N, N), and each response's share of gradient and of information, (F,) each.

        Louis: the posterior mean of the complete-data information less the posterior covariance of the complete-data
        gradient c_qnf = w a_n (v_fq - mean_nf), summed over questions. Shape and prior are held fixed.
        """
        nodes = self.nodes(z)
        gradient, information = np.empty(len(data.value)), np.empty(len(data.value))
        hessian = np.eye(self.forecasters) / ABILITY_SD**2
        expected, spread = (
            nodes.a[:, None] * nodes.distribution.mean,
            np.square(nodes.a)[:, None] * nodes.distribution.variance,
        )
        bounds = np.searchsorted(data.question, np.arange(self.questions + 1))
        for part, mass, _ in self.posteriors(z, nodes):
            rows = slice(bounds[part.start], bounds[part.stop])
            at = data.question[rows] - part.start, data.forecaster[rows]
            weight, value = data.weight[rows], data.value[rows]
            mean_a = (mass @ nodes.a)[at[0]]
            gradient[rows] = weight * (mean_a * value - (mass @ expected)[at])
            information[rows] = weight * (mass @ spread)[at]
            hessian -= self._missing(part, mass, nodes, expected)
        hessian += np.diag(np.bincount(data.forecaster, information, self.forecasters))
        return hessian, gradient, information

    def _missing(self, part: slice, mass: Floats, nodes: Nodes, expected: Floats) -> Floats:
        """Posterior covariance of the gradient, summed over a block of questions, (N, N)."""
        total = np.zeros((self.forecasters, self.forecasters))
        question, node = np.nonzero(mass > NEGLIGIBLE)
        step = max(PAIRS_BLOCK // self.forecasters, 1)
        scored, present = _dense(self.scored[part]), _dense(self.present[part])
        middle = (mass @ nodes.a)[:, None] * scored - present * (mass @ expected)
        for first in range(0, len(node), step):
            q, n = question[first : first + step], node[first : first + step]
            deviation = nodes.a[n, None] * scored[q] - present[q] * expected[n] - middle[q]
            deviation *= np.sqrt(mass[q, n])[:, None]
            total += deviation.T @ deviation
        return total

    def _unpack(self, z: Floats) -> tuple[Floats, Floats, float, float, float]:
        inner = len(ANCHORS) - 2
        shape = np.zeros(len(ANCHORS))
        shape[1:-1] = z[self.forecasters : self.forecasters + inner]
        m, log_s, log_t = z[self.forecasters + inner :]
        return z[: self.forecasters], shape, float(m), float(np.exp(log_s)), float(np.exp(log_t))


def _even(reach: float, step: float) -> Floats:
    """From -reach to reach, or a little further, in equal steps."""
    count = int(np.ceil(reach / step))
    return step * np.arange(-count, count + 1, dtype=np.float64)


def _dense(matrix: NDArray | sparse.csr_array) -> Floats:
    return np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.toarray(), dtype=np.float64)
