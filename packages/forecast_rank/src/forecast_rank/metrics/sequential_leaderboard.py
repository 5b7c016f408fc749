"""A leaderboard through time, with the date from which its leader is significantly ahead of everybody."""

from typing import NamedTuple

import numpy as np

from forecast_rank.metrics.anytime_valid import e_process
from forecast_rank.metrics.flat_arrays import Codes, Floats
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.uncertainty import LEVEL, event_sums, tail_levels


class SequentialLeaderboard(NamedTuple):
    """The leader after each of T events, in order of closing.

    Attributes
    ----------
    closed_at : array, shape (T,)
        When the last question of the event closed, in seconds since 1970; NaN if unknown.
    leader : array of int, shape (T,)
        The forecaster with the best mean so far; -1 before anybody has two events.
    e_value : array, shape (T,)
        Evidence that the leader is ahead of the forecaster who is hardest to tell apart; see `e_process`.
    threshold : float
        What `e_value` must reach: the number of ordered pairs over 1 - level (Bonferroni).
    since : array of int, shape (N,)
        Event after which each forecaster first led with an `e_value` above the threshold; -1 if never.
    """

    closed_at: Floats
    leader: Codes
    e_value: Floats
    threshold: float
    since: Codes


def sequential_leaderboard(
    panel: Panel, values: Floats, *, lower_is_better: bool = True, bound: float = 1.0, level: float = LEVEL
) -> SequentialLeaderboard:
    """The leaderboard after each event, valid though it is read after each.

    The difference of two forecasters on an event is that of their means over the questions that both answered there.
    With probability `level` no claim is ever wrong, at whatever time, among all pairs.

    Parameters
    ----------
    panel : Panel
    values : array, shape (F,)
        A bounded score of each forecast; NaN leaves a forecast out.
    lower_is_better : bool
    bound : float
        Largest possible difference of two scores; 1 for Brier scores.
    level : float
        In (0, 1).

    Returns
    -------
    SequentialLeaderboard

    Raises
    ------
    ValueError
        If `values` is not one per forecast, for a difference beyond the bound, or a level outside (0, 1).

    References
    ----------
    Choe, Y. J. and Ramdas, A. (2023). Comparing sequential forecasters. Operations Research 72, 1368-1387.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> from forecast_rank.metrics.proper_scores import brier
    >>> panel = from_arrays([[[0.9]] * 60, [[0.4]] * 60], [[1]] * 60, exclusive=False, closed_at=range(60))
    >>> board = sequential_leaderboard(panel, brier(panel))
    >>> board.since.tolist(), board.leader[-1].item(), round(board.threshold)
    ([41, -1], 0, 40)
    """
    tail_levels(level)
    values = panel.one_per_forecast(values)
    forecaster_count = len(panel.forecasters)
    order, closed_at = _events_in_order(panel)
    if not forecaster_count:
        return SequentialLeaderboard(closed_at, order, closed_at, 1 / (1 - level), order)
    means = _running_means(panel, values, order)
    leader, _ = _leaders(means, lower_is_better=lower_is_better)
    threshold = max(forecaster_count * (forecaster_count - 1), 1) / (1 - level)
    evidence = np.full((forecaster_count, len(order)), np.inf if forecaster_count > 1 else np.nan)
    for first in range(forecaster_count):
        for second in range(forecaster_count):
            if first != second:
                ahead = _differences(panel, values, order, first, second) * (1 if lower_is_better else -1)
                evidence[first] = np.minimum(evidence[first], _evidence(ahead, bound))
    led = np.flatnonzero(leader >= 0)
    e_value = np.full(len(order), np.nan)
    e_value[led] = evidence[leader[led], led]
    since = np.full(forecaster_count, -1, dtype=np.int64)
    for place in led[e_value[led] >= threshold][::-1].tolist():
        since[leader[place]] = place
    return SequentialLeaderboard(closed_at, leader, e_value, threshold, since)


def _events_in_order(panel: Panel) -> tuple[Codes, Floats]:
    """The columns of `event_sums` in order of the last closing, unknown ones last, and these times."""
    events, column = np.unique(panel.questions.event[panel.question], return_inverse=True)
    last = np.full(len(events), -np.inf)
    np.fmax.at(last, column, panel.questions.closed_at[panel.question])
    last = np.where(np.isfinite(last), last, np.nan)
    order = np.argsort(last, kind="stable")
    return order, last[order]


def _running_means(panel: Panel, values: Floats, order: Codes) -> Floats:
    """Each forecaster's mean after each event, (N, T); NaN before the second event."""
    sums, weights = (table[:, order] for table in event_sums(panel, values))
    total, mass = sums.cumsum(axis=1), weights.cumsum(axis=1)
    enough = (weights > 0).cumsum(axis=1) >= 2
    return np.divide(total, mass, out=np.full(mass.shape, np.nan), where=enough)


def _leaders(means: Floats, *, lower_is_better: bool) -> tuple[Codes, Floats]:
    """The best forecaster after each event, -1 without one, and the mean."""
    worst = np.inf if lower_is_better else -np.inf
    known_means = np.where(np.isnan(means), worst, means)
    best = known_means.argmin(axis=0) if lower_is_better else known_means.argmax(axis=0)
    mean = known_means[best, np.arange(means.shape[1])]
    return np.where(np.isfinite(mean), best, -1), mean


def _differences(panel: Panel, values: Floats, order: Codes, first: int, second: int) -> Floats:
    """The mean of `second` less that of `first` on the common questions of each event, NaN without one; (T,)."""
    pair = np.isin(panel.forecaster, (first, second)) & ~np.isnan(values)
    common = np.bincount(panel.question[pair], minlength=len(panel.questions)) == 2
    is_counted = pair & common[panel.question]
    sums = event_sums(panel, np.where(is_counted, values, np.nan))
    means = np.divide(sums.sums, sums.weights, out=np.full(sums.sums.shape, np.nan), where=sums.weights > 0)
    return (means[second] - means[first])[order]


def _evidence(differences: Floats, bound: float) -> Floats:
    """The e-process of differences of which some are missing: it stands still there."""
    is_known = ~np.isnan(differences)
    steps = np.concatenate([[1.0], e_process(differences[is_known], bound)])
    return steps[np.cumsum(is_known)]
