"""The Brier score of forecasts that are revised, averaged over the days that a question was open."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from forecast_rank.metrics.flat_arrays import Floats, spans
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.standing_forecasts import standing_forecasts

DAY = 86_400.0
"""Seconds."""


class DailyBrier(NamedTuple):
    """Scores of N forecasters on one question.

    Attributes
    ----------
    brier : array, shape (N,)
        Mean over the days with a forecast; NaN without any.
    coverage : array, shape (N,)
        Share of the question's days with a forecast.
    days : int
        That the question was open; the last may be shorter.
    """

    brier: Floats
    coverage: Floats
    days: int


def daily_brier(
    forecaster: ArrayLike,
    made_at: ArrayLike,
    probability: ArrayLike,
    outcome: ArrayLike,
    *,
    opened_at: float,
    closed_at: float,
    day: float = DAY,
) -> DailyBrier:
    """The time-averaged Brier score of all forecasters on one question, (1/D) sum_d (p_d - o)^2.

    The forecast of a day is the last that was made before its end, and stands on later days until it is revised. The
    mean is over the D days from the forecaster's first forecast on, without those after a withdrawal.

    Parameters
    ----------
    forecaster : array of int, shape (K,)
        Codes from 0 of who made each of K forecasts, in whatever order.
    made_at : array, shape (K,)
        Seconds. A forecast made before the opening stands from then on; one made after the closing does not count.
    probability : array, shape (K,) or (K, n)
        Of the event, or of each of n options; NaN withdraws the forecast.
    outcome : float, or array of shape (n,)
        1 for what happened, else 0.
    opened_at, closed_at : float
        Seconds; days are counted from the opening.
    day : float
        Length of a day in the units of the times, above 0. Short ones give the average over time.

    Returns
    -------
    DailyBrier
        In the mean form, in [0, 1], lower is better; for the codes up to the largest.

    Raises
    ------
    ValueError
        If shapes disagree, a number is outside [0, 1], the day is not above 0, or the question does not close after it
        opens.

    References
    ----------
    Mellers, B. et al. (2014). Psychological strategies for winning a geopolitical forecasting tournament. Psychological
    Science 25, 1106-1115 (in the sum form, twice this for two options).

    Examples
    --------
    >>> scores = daily_brier([0, 1, 0], [0, 2, 3], [0.5, 0.8, 1.0], 1, opened_at=0, closed_at=4, day=1)
    >>> scores.brier.round(4).tolist(), scores.coverage.tolist()  # (3 x 0.25 + 0) / 4, and 0.04 on two days
    ([0.1875, 0.04], [1.0, 0.5])
    """
    if not day > 0:
        raise ValueError(f"day: above 0, not {day}")
    probabilities, happened = np.asarray(probability, dtype=np.float64), np.asarray(outcome, dtype=np.float64)
    count = np.shape(forecaster)
    if np.shape(made_at) != count or probabilities.shape != (*count, *happened.shape):
        raise ValueError(
            f"probability: shape {probabilities.shape} does not go with forecaster of shape {count}, made_at of shape "
            f"{np.shape(made_at)} and outcome of shape {happened.shape}"
        )
    for name, numbers in (("probability", probabilities), ("outcome", happened)):
        outside = (numbers < 0) | (numbers > 1)
        if outside.any():
            place = tuple(np.argwhere(outside)[0].tolist())
            raise ValueError(f"{name}: {numbers[place]} at {list(place)} is outside [0, 1]")
    scores = np.square(probabilities - happened).reshape(len(probabilities), happened.size).mean(axis=1)
    times, table = standing_forecasts(forecaster, made_at, scores, opened_at, closed_at)
    days = int(np.ceil((closed_at - opened_at) / day))
    ends = np.minimum(opened_at + day * np.arange(1, days + 1), closed_at)
    unanswered = np.full((1, table.shape[1]), np.nan)
    daily = np.concatenate([unanswered, table])[np.searchsorted(times, ends, side="left")]
    answered = (~np.isnan(daily)).sum(axis=0)
    total = np.nansum(daily, axis=0)
    brier = np.divide(total, answered, out=np.full(len(answered), np.nan), where=answered > 0)
    return DailyBrier(brier, answered / days, days)


def daily_brier_scores(panel: Panel, revisions: Panel) -> Floats:
    """`daily_brier` of each forecaster on each question of a panel.

    A question opens with the first forecast that anybody made of it.

    Parameters
    ----------
    panel : Panel
        The forecasts that count.
    revisions : Panel
        All versions of them with their times, of the same forecasters and questions.

    Returns
    -------
    array, shape (F,)
        NaN on a question without a closing time, without times of its forecasts, or that closes as it opens.

    References
    ----------
    As for `daily_brier`.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[1.0]]], [[1]], exclusive=False, closed_at=[4 * DAY])
    >>> twice = replace(from_arrays([[[0.5]], [[1.0]]], [[1]], exclusive=False, closed_at=[4 * DAY]),
    ...     forecasters=["f0"], forecaster=np.array([0, 0]), made_at=np.array([0, 3 * DAY]))
    >>> daily_brier_scores(panel, twice).tolist()  # 0.25 on three days of four
    [0.1875]
    """
    table = np.full((len(panel.forecasters), len(panel.questions)), np.nan)
    questions = revisions.questions
    begins = np.searchsorted(revisions.question, np.arange(len(questions) + 1))
    for question, closed_at in enumerate(questions.closed_at.tolist()):
        rows = np.arange(begins[question], begins[question + 1])
        rows = rows[~np.isnan(revisions.made_at[rows])]
        if not len(rows) or not closed_at > revisions.made_at[rows].min():
            continue
        cells = spans(revisions.offsets[rows], revisions.sizes[rows])
        outcome = questions.outcome[questions.offsets[question] : questions.offsets[question + 1]]
        scores = daily_brier(
            revisions.forecaster[rows],
            revisions.made_at[rows],
            revisions.probability[cells].reshape(len(rows), len(outcome)),
            outcome,
            opened_at=float(revisions.made_at[rows].min()),
            closed_at=closed_at,
        )
        table[: len(scores.brier), question] = scores.brier
    return table[panel.forecaster, panel.question]
