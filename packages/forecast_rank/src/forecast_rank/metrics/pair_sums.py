"""Differences of every two forecasters by event: sums of parts of the data that add up to paired tests of the whole."""

from typing import NamedTuple

import numpy as np

from forecast_rank.metrics.blocks import row_slices
from forecast_rank.metrics.flat_arrays import Codes, Floats, distinct_codes
from forecast_rank.metrics.panel import Panel

NO_SPREAD = 1e-10
"""A standard error below this share of the difference's size is rounding."""


class PairSums(NamedTuple):
    """K rows, one for each pair of forecasters and event with a common question.

    Attributes
    ----------
    first, second : array of int, shape (K,)
        Forecasters, first < second.
    event : array of int, shape (K,)
        Codes into `panel.questions.event_names`.
    questions : array of int, shape (K,)
        Common questions.
    away, weight : arrays, shape (K,)
        Sums over these of w (first - second) and of w, the mean of the two weights.
    """

    first: Codes
    second: Codes
    event: Codes
    questions: Codes
    away: Floats
    weight: Floats


def pair_sums(panel: Panel, values: Floats) -> PairSums:
    """The sums of which `paired_tests` consists.

    Parameters
    ----------
    panel : Panel
    values : array, shape (F,)
        A finite score of each forecast; NaN leaves a forecast out.

    Returns
    -------
    PairSums

    References
    ----------
    Liang, K.-Y. and Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models. Biometrika 73,
    13-22.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays(np.full((2, 3, 2), 0.5), [[1, 0]] * 3, event=["e", "e", "f"])
    >>> sums = pair_sums(panel, np.array([0.1, 0.2, 0.1, 0.3, 0.1, 0.4]))
    >>> sums.away.round(3).tolist(), sums.weight.tolist()
    ([-0.3, -0.3], [2.0, 1.0])
    """
    table, weights, starts = by_event(panel, values)
    events, _ = panel.events
    forecaster_count = len(panel.forecasters)
    rows = [np.zeros((6, 0))]
    for one in range(forecaster_count - 1 if len(events) else 0):
        for rivals in row_slices(one + 1, forecaster_count, table.shape[1]):
            in_both = (weights[one] > 0) & (weights[rivals] > 0)
            weight = np.where(in_both, (weights[one] + weights[rivals]) / 2, 0.0)
            away = (table[one] - table[rivals]) * weight
            count, moved, mass = (
                np.add.reduceat(summand, starts, axis=1) for summand in (in_both.astype(np.float64), away, weight)
            )
            pair, event = np.nonzero(mass > 0)
            sums = [part[pair, event] for part in (count, moved, mass)]
            rows.append(np.stack([np.full(len(pair), one), pair + rivals.start, events[event], *sums]))
    first, second, code, questions, moved, mass = np.concatenate(rows, axis=1)
    codes = [column.astype(np.int64) for column in (first, second, code, questions)]
    return PairSums(codes[0], codes[1], codes[2], codes[3], moved, mass)


def by_event(panel: Panel, values: Floats) -> tuple[Floats, Floats, Codes]:
    """Values and weights as tables of (N, questions), 0 where missing; questions are ordered by event.

    The third array has the first column of each event.
    """
    question_codes, column = distinct_codes(panel.question)
    event = panel.questions.event[question_codes]
    order = np.argsort(event, kind="stable")
    place = np.empty(len(question_codes), dtype=np.int64)
    place[order] = np.arange(len(question_codes))
    is_counted = ~np.isnan(values)
    cell = panel.forecaster[is_counted], place[column[is_counted]]
    table = np.zeros((len(panel.forecasters), len(question_codes)))
    weights = np.zeros_like(table)
    table[cell] = np.where(np.isinf(values[is_counted]), 0.0, values[is_counted])
    weights[cell] = panel.weight[is_counted]
    starts = np.flatnonzero(np.diff(event[order], prepend=-1))
    return table, weights, starts


class EventErrors(NamedTuple):
    """Errors of means over events of any size, arrays of shape (K,).

    Attributes
    ----------
    events : array of int
        Events with weight.
    weight : array
        Their weights, summed.
    mean : array
        NaN without weight.
    se : array
        NaN for fewer than two events, 0 where only rounding varies.
    freedom : array
        Degrees of freedom of Student's t: one less than the effective number of events, at least 1.
    """

    events: Codes
    weight: Floats
    mean: Floats
    se: Floats
    freedom: Floats


def event_errors(sums: Floats, weights: Floats) -> EventErrors:
    """Weighted means of K rows over E events, with errors that hold where one event is much larger than others.

    With D_e and W_e an event's sum and weight, m = sum D / sum W and h_e = W_e / sum W: se = sqrt((G - 1) / G sum_e
    ((D_e - m W_e) / (1 - h_e))^2) / sum W. A large event pulls the mean towards itself, which hides its surprise; the
    leverage 1 - h_e undoes that. The effective number of events is (sum W)^2 / sum W^2. Equal events have
    sqrt(G / (G - 1) sum_e (D_e - m W_e)^2) / sum W and G - 1 degrees of freedom.

    Parameters
    ----------
    sums, weights : arrays, shape (K, E)
        0 where a row has no event.

    Returns
    -------
    EventErrors

    References
    ----------
    Bell, R. M. and McCaffrey, D. F. (2002). Bias reduction in standard errors for linear regression with multi-stage
    samples. Survey Methodology 28, 169-181 (CR3). Carter, A. V., Schnepel, K. T. and Steigerwald, D. G. (2017).
    Asymptotic behavior of a t-test robust to cluster heterogeneity. Review of Economics and Statistics 99, 698-709.

    Examples
    --------
    >>> errors = event_errors(np.array([[1.0, 3.0], [2.0, 3.0]]), np.array([[1.0, 1.0], [2.0, 1.0]]))
    >>> errors.se.round(4).tolist(), errors.freedom.tolist()  # equal events: 1; one of two thirds: leverage 1/3 and 2/3
    ([1.0, 1.0541], [1.0, 1.0])
    """
    count, mass = (weights > 0).sum(axis=1), weights.sum(axis=1)
    mean = np.divide(sums.sum(axis=1), mass, out=np.full(len(mass), np.nan), where=mass > 0)
    share = np.divide(weights, mass[:, None], out=np.zeros_like(weights), where=mass[:, None] > 0)
    residual = sums - np.nan_to_num(mean)[:, None] * weights
    np.divide(residual, 1 - share, out=residual, where=share < 1)
    squares = np.square(residual).sum(axis=1)
    se = clustered_error(squares, np.square(sums).sum(axis=1), count.astype(np.float64), mass)
    return EventErrors(count, mass, mean, se, event_freedom(mass, np.square(weights).sum(axis=1)))


def clustered_error(squares: Floats, size: Floats, events: Floats, weight: Floats) -> Floats:
    """Standard errors of means over events, sqrt((G - 1) / G squares) / sum_e W_e.

    `squares` are sums of squares of residuals divided by their leverage, `size` those of D_e, `events` is G and
    `weight` the sum of W_e; NaN for fewer than two events, 0 for squares that are rounding.
    """
    squares = np.where(squares < NO_SPREAD**2 * size, 0.0, squares)
    scale = np.divide(events - 1.0, events, out=np.full(len(weight), np.nan), where=events > 1)
    return np.divide(np.sqrt(scale * squares), weight, out=np.full(len(weight), np.nan), where=weight > 0)


def event_freedom(weight: Floats, squared_weight: Floats) -> Floats:
    """One less than the effective number of events, (sum W)^2 / sum W^2, at least 1."""
    number = np.divide(np.square(weight), squared_weight, out=np.ones(len(weight)), where=squared_weight > 0)
    return np.maximum(number - 1, 1.0)
