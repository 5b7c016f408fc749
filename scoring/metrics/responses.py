"""How well a forecast did as a response to a question, and the law that item response theory gives such responses."""

from typing import NamedTuple

import numpy as np

from scoring.metrics.brier import brier_score
from scoring.metrics.panel import Codes, Floats, Panel

ANCHORS = np.linspace(0, 1, 6)
"""The values that a response may take in the model, from worst to best: the source's six."""


class Responses(NamedTuple):
    """The responses of F forecasts, of N forecasters on Q questions, all of whom (and all of which) have some.

    forecaster, question : (F,), codes below N and Q; question in ascending order
    value : (F,), in [0, 1], 1 is perfect
    weight : (F,), mean 1
    event : (F,), codes
    """

    forecasters: int
    questions: int
    forecaster: Codes
    question: Codes
    value: Floats
    weight: Floats
    event: Codes

    def sample(self, step: int) -> "Responses":
        """Every step-th question, from the first; a forecaster may be left without responses."""
        kept = self.question % step == 0
        columns = (column[kept] for column in (self.value, self.weight, self.event))
        count = -(-self.questions // step)
        return Responses(self.forecasters, count, self.forecaster[kept], self.question[kept] // step, *columns)


def response(panel: Panel) -> Floats:
    """How well each forecast did, 1 less its Brier score brought to [0, 1]: (F,), 1 is perfect, 0 as wrong as can be.

    1 - sum_k (p_k - o_k)^2 / 2 where options exclude each other, so that a response means the same whatever the number
    of options; 1 - (1/n) sum_k (p_k - o_k)^2 where they do not. Both are 1 - (p - o)^2 on a binary question.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> response(from_arrays([[[1.0, 0, 0], [0.5, 0.5, 0], [1.0, 0, 0]]], [[1, 0, 0], [1, 0, 0], [0, 1, 0]])).tolist()
    [1.0, 0.75, 0.0]
    """
    squares = panel.sum_cells(brier_score(panel.probability, panel.outcome))
    return np.clip(1 - squares / np.where(panel.exclusive, 2, panel.sizes), 0, 1)


def anchor_shares(value: Floats) -> Floats:
    """Each response as shares in the two anchors beside it, so that its mean is kept: (F,) to (F, 6), rows sum to 1.

    Examples
    --------
    >>> anchor_shares(np.array([0.85])).round(2).tolist()
    [[0.0, 0.0, 0.0, 0.0, 0.75, 0.25]]
    """
    steps = len(ANCHORS) - 1
    place = np.asarray(value) * steps
    below = np.minimum(place.astype(np.int64), steps - 1)
    shares = np.zeros((len(place), steps + 1))
    row = np.arange(len(place))
    shares[row, below] = 1 - (place - below)
    shares[row, below + 1] = place - below
    return shares


class Law(NamedTuple):
    """The distribution of responses at many values of the parameters at once, of any shape (...).

    log_norm : (...), the log of the sum over anchors
    chance : (..., 6), the probability of each anchor
    mean, variance : (...), of the response
    """

    log_norm: Floats
    chance: Floats
    mean: Floats
    variance: Floats


def law(tilt: Floats, sharpness: Floats, shape: Floats) -> Law:
    """P(anchor s_k) proportional to exp(tilt s_k - sharpness shape_k).

    Parameters
    ----------
    tilt : array of shape (...), a (theta - b)
    sharpness : array that broadcasts to it, a
    shape : array of shape (6,), 0 at both ends

    Examples
    --------
    >>> law(np.array(np.log(3.0) * 5), np.array(0.0), np.zeros(6)).chance.round(3).tolist()  # each thrice the one below
    [0.003, 0.008, 0.025, 0.074, 0.223, 0.668]
    """
    powers = tilt[..., None] * ANCHORS - np.asarray(sharpness)[..., None] * shape
    top = powers.max(axis=-1, keepdims=True)
    powers -= top
    chance = np.exp(powers, out=powers)
    total = chance.sum(axis=-1, keepdims=True)
    chance /= total
    mean = chance @ ANCHORS
    return Law((top + np.log(total))[..., 0], chance, mean, np.maximum(chance @ ANCHORS**2 - mean**2, 0))
