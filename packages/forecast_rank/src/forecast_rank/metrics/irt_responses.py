"""Responses of forecasters to questions, and their distribution in the item response model."""

from typing import NamedTuple

import numpy as np

from forecast_rank.metrics.brier import brier_score
from forecast_rank.metrics.flat_arrays import Codes, Floats
from forecast_rank.metrics.panel import Panel

ANCHORS = np.linspace(0, 1, 6)
"""The values that a response may take in the model, from worst to best: the source's six."""


class IrtResponses(NamedTuple):
    """Responses of F forecasts, by N forecasters on Q questions that all have at least one.

    Attributes
    ----------
    forecasters, questions : int
        N and Q.
    forecaster, question : arrays of int, shape (F,)
        Codes; `question` is in ascending order.
    value : array, shape (F,)
        In [0, 1], 1 is perfect.
    weight : array, shape (F,)
        With mean 1.
    event : array of int, shape (F,)
    """

    forecasters: int
    questions: int
    forecaster: Codes
    question: Codes
    value: Floats
    weight: Floats
    event: Codes

    def sample(self, step: int) -> "IrtResponses":
        """Every step-th question, from the first. A forecaster may be left without responses."""
        in_sample = self.question % step == 0
        columns = (column[in_sample] for column in (self.value, self.weight, self.event))
        count = -(-self.questions // step)
        return IrtResponses(
            self.forecasters, count, self.forecaster[in_sample], self.question[in_sample] // step, *columns
        )


def response(panel: Panel) -> Floats:
    """The response of each forecast: 1 less its Brier score rescaled to [0, 1].

    1 - sum_k (p_k - o_k)^2 / 2 where options are exclusive, whatever their number; 1 - (1/n) sum_k (p_k - o_k)^2 where
    they are not. Both are 1 - (p - o)^2 on a binary question.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    array, shape (F,)
        1 is perfect, 0 the worst possible.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> response(from_arrays([[[1.0, 0, 0], [0.5, 0.5, 0], [1.0, 0, 0]]], [[1, 0, 0], [1, 0, 0], [0, 1, 0]])).tolist()
    [1.0, 0.75, 0.0]
    """
    squares = panel.sum_cells(brier_score(panel.probability, panel.outcome))
    return np.clip(1 - squares / np.where(panel.exclusive, 2, panel.sizes), 0, 1)


def anchor_shares(value: Floats) -> Floats:
    """Each response as shares of the two anchors beside it, with the same mean.

    Parameters
    ----------
    value : array, shape (F,)

    Returns
    -------
    array, shape (F, 6)
        Rows sum to 1.

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


class ResponseDistribution(NamedTuple):
    """The distribution of responses at many parameter values at once, of any shape (...).

    Attributes
    ----------
    log_norm : array, shape (...)
        Log of the normalising sum over anchors.
    by_anchor : array, shape (6, ...)
        Probability of each anchor.
    mean, variance : arrays, shape (...)
    """

    log_norm: Floats
    by_anchor: Floats
    mean: Floats
    variance: Floats

    @property
    def chance(self) -> Floats:
        """Probability of each anchor, (..., 6)."""
        return np.moveaxis(self.by_anchor, 0, -1)


def response_distribution(tilt: Floats, sharpness: Floats, shape: Floats) -> ResponseDistribution:
    """P(anchor s_k) proportional to exp(tilt s_k - sharpness shape_k).

    Parameters
    ----------
    tilt : array, shape (...)
        a (theta - b).
    sharpness : array
        a; broadcast to `tilt`.
    shape : array, shape (6,)
        0 at both ends.

    Returns
    -------
    ResponseDistribution

    Examples
    --------
    >>> tilt = np.array(np.log(3.0) * 5)  # each anchor is three times as likely as the one below it
    >>> response_distribution(tilt, np.array(0.0), np.zeros(6)).chance.round(3).tolist()
    [0.003, 0.008, 0.025, 0.074, 0.223, 0.668]
    """
    sharpness = np.reshape(sharpness, (1,) * (np.ndim(tilt) - np.ndim(sharpness)) + np.shape(sharpness))
    powers = np.multiply.outer(ANCHORS, tilt) - np.multiply.outer(shape, sharpness)
    top = powers.max(axis=0)
    powers -= top
    chance = np.exp(powers, out=powers)
    total = chance.sum(axis=0)
    chance /= total
    mean = np.tensordot(ANCHORS, chance, axes=1)
    variance = np.tensordot(ANCHORS**2, chance, axes=1) - mean**2
    return ResponseDistribution(top + np.log(total), chance, mean, np.maximum(variance, 0))
