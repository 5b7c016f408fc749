"""Ratings on the scale of chess: Elo's running update, and Bradley–Terry ratings through time with intervals."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from forecast_rank.metrics.bradley_terry import pairwise_ability
from forecast_rank.metrics.flat_arrays import Codes, Floats
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.proper_scores import brier

BASE, SCALE = 1000.0, 400.0 / np.log(10)
"""Rating of the average forecaster, and points per logit: 400 points are odds of ten to one."""


class RatingHistory(NamedTuple):
    """Ratings after every `step` questions.

    Attributes
    ----------
    questions : array of int, shape (T,)
        Questions so far.
    closed_at : array, shape (T,)
        When the last of them closed, in seconds since 1970; NaN if unknown.
    rating, se : arrays, shape (T, N)
        Ratings and their standard errors; NaN for a forecaster without comparisons so far.
    """

    questions: Codes
    closed_at: Floats
    rating: Floats
    se: Floats


def elo(panel: Panel, k: float = 16.0) -> Floats:
    """Elo ratings after all questions in order of closing.

    On a question each forecaster meets each other one; the lower Brier score wins, equal scores are half a win. All
    gain k / (m - 1) sum (result - expected result) at once, m the number of forecasters on the question. A rating
    follows the last few hundred questions and depends on their order: `rating_history` does not.

    Parameters
    ----------
    panel : Panel
    k : float
        Largest gain on a question, above 0.

    Returns
    -------
    array, shape (N,)
        With mean 1000 where all met all.

    Raises
    ------
    ValueError
        Unless `k` is above 0.

    References
    ----------
    Elo, A. E. (1978). The Rating of Chessplayers, Past and Present.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> elo(from_arrays([[[0.9]], [[0.5]]], [[1]], exclusive=False)).tolist()  # half of k from even odds
    [1008.0, 992.0]
    """
    if not k > 0:
        raise ValueError(f"k: above 0, not {k}")
    rating = np.full(len(panel.forecasters), BASE)
    score = brier(panel)
    starts = np.flatnonzero(np.diff(panel.question, prepend=-1))
    ends = np.append(starts[1:], len(panel))
    for place in np.argsort(panel.questions.closed_at[panel.question[starts]], kind="stable").tolist():
        part = slice(starts[place], ends[place])
        forecaster, loss = panel.forecaster[part], score[part]
        if len(forecaster) > 1:
            result = (loss[:, None] < loss) + 0.5 * (loss[:, None] == loss)
            expected = expit((rating[forecaster][:, None] - rating[forecaster]) / SCALE)
            rating[forecaster] += k / (len(forecaster) - 1) * (result - expected).sum(axis=1)
    return rating


def rating_history(panel: Panel, step: int = 100, ridge: float = 0.1) -> RatingHistory:
    """Bradley–Terry ratings by all comparisons so far, one row per `step` questions in order of closing.

    `pairwise_ability` in points, 1000 + 400 / ln 10 per logit, as public model arenas publish them. Intervals are
    rating ± z se. Wins count whatever the margin: see there.

    Parameters
    ----------
    panel : Panel
    step : int
        Questions per row; the last row holds all.
    ridge : float
        As in `pairwise_ability`.

    Returns
    -------
    RatingHistory

    Raises
    ------
    ValueError
        If `step` is below 1, or unless `ridge` is above 0.

    References
    ----------
    Chiang, W.-L. et al. (2024). Chatbot Arena: an open platform for evaluating LLMs by human preference. Proceedings of
    the 41st International Conference on Machine Learning.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> better = np.array([0.9, 0.9, 0.9, 0.4])[:, None]
    >>> panel = from_arrays([better, 1.1 - better], [[1]] * 4, exclusive=False, closed_at=range(4))
    >>> history = rating_history(panel, step=2, ridge=1e-9)
    >>> difference = history.rating[:, 0] - history.rating[:, 1]  # 3 wins of 4: 400 log10(3)
    >>> history.questions.tolist(), difference[-1].round(1).item()
    ([2, 4], 190.8)
    """
    if step < 1:
        raise ValueError(f"step: at least 1, not {step}")
    question_codes = np.unique(panel.question)
    order = question_codes[np.argsort(panel.questions.closed_at[question_codes], kind="stable")]
    place = np.zeros(len(panel.questions), dtype=np.int64)
    place[order] = np.arange(len(order))
    counts = np.append(np.arange(step, len(order), step), len(order))[: len(order)]
    rows = [pairwise_ability(panel.take(place[panel.question] < count), ridge) for count in counts]
    shape = (len(counts), len(panel.forecasters))
    return RatingHistory(
        counts,
        panel.questions.closed_at[order[counts - 1]],
        BASE + SCALE * np.array([row.value for row in rows]).reshape(shape),
        SCALE * np.array([row.se for row in rows]).reshape(shape),
    )
