"""Games: who scored better on the questions that two forecasters have in common."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from scoring.metrics.panel import Codes, Floats, Panel
from scoring.metrics.proper import brier
from scoring.metrics.sandwich import table

TIE = 1e-10
"""Scores are compared in steps of so much: equal steps tie."""
BLOCK = 2_000_000
"""Numbers handled at a time where a table of questions by forecasters is worked through."""
ITERATIONS = 200
TOLERANCE = 1e-9


class Games(NamedTuple):
    """Games of F forecasts, in the order of the panel, on questions of two forecasts at least.

    who, row : (F,), forecaster and question
    rank : (F,), twice the mean rank of a forecast among those on its question, 2 is the best alone
    stake : (Q,), what a game on each question weighs
    size : (Q,), forecasts on each question
    """

    who: Codes
    row: Codes
    rank: Codes
    stake: Floats
    size: Codes


def games_of(panel: Panel, who: Codes) -> Games:
    """The games of a panel whose questions have two forecasts at least; `who`, (F,), codes its forecasters.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.9]], [[0.5]], [[0.5]]], [[1]], exclusive=False)
    >>> games_of(panel, panel.forecaster).rank.tolist()  # the first alone, the others share places 2 and 3
    [2, 5, 5]
    """
    _, row, size = np.unique(panel.question, return_inverse=True, return_counts=True)
    steps = round(1 / TIE)
    key = row * (2 * steps) + np.rint(brier(panel) * steps).astype(np.int64)  # by question, then by score
    order = np.argsort(key)
    start = np.cumsum(size) - size
    # Runs of equal scores on one question share their mean place.
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.diff(key[order]) != 0
    run, first = np.cumsum(new) - 1, np.flatnonzero(new)
    last = np.append(first[1:], len(order)) - 1
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = (first + last)[run] + 2 - 2 * start[row[order]]
    stake = np.bincount(row, panel.weight) / size / (size - 1)
    return Games(who, row, rank, stake, size)


def wins_of(games: Games, people: int) -> Floats:
    """What each forecaster won against each other one, stakes summed, (N, N); row beats column."""
    questions = len(games.size)
    place = np.zeros((questions, people), dtype=np.min_scalar_type(2 * int(games.size.max())))
    place[games.row, games.who] = games.rank  # 0 where silent: better than nobody's rank, equal to nobody's
    order = np.argsort(games.who, kind="stable")
    bounds = np.searchsorted(games.who[order], np.arange(people + 1))
    wins = np.zeros((people, people))
    for person in range(people):
        rows = games.row[order[bounds[person] : bounds[person + 1]]]
        others, stake = place[rows], games.stake[rows]
        own = others[:, [person]]
        wins[person] = stake @ (others > own) + 0.5 * (stake @ (others == own))
    np.fill_diagonal(wins, 0)
    return wins


def shares_of(games: Games, theta: Floats) -> tuple[Floats, Floats]:
    """Each forecast's share of the gradient and of the Hessian's diagonal at `theta`, (F,) each."""
    people, questions = len(theta), len(games.size)
    chance = expit(theta[:, None] - theta)
    np.fill_diagonal(chance, 0)
    present = table(games.row, games.who, np.ones(len(games.who)), (questions, people))
    expected, information = np.empty(len(games.who)), np.empty(len(games.who))
    starts = np.append(np.cumsum(games.size) - games.size, len(games.who))
    step = max(BLOCK // people, 1)
    for first in range(0, questions, step):
        block = present[first : first + step]
        part = slice(starts[first], starts[min(first + step, questions)])
        at = games.row[part] - first, games.who[part]
        expected[part] = (block @ chance.T)[at]
        information[part] = (block @ (chance * (1 - chance)))[at]
    beaten = games.size[games.row] - games.rank / 2
    return games.stake[games.row] * (beaten - expected), games.stake[games.row] * information


def strengths_of(wins: Floats, ridge: float) -> Floats:
    """The penalised maximum by damped Newton steps, (N,), mean 0."""
    games, theta = wins + wins.T, np.zeros(len(wins))

    def gain(values: Floats) -> float:
        return float(-(wins * np.logaddexp(0, values - values[:, None])).sum() - ridge / 2 * (values @ values))

    for _ in range(ITERATIONS):
        chance = expit(theta[:, None] - theta)
        uphill = (wins - games * chance).sum(axis=1) - ridge * theta
        if np.abs(uphill).max() <= TOLERANCE * max(games.sum(), 1.0):
            break
        spread = games * chance * (1 - chance)
        step = np.linalg.solve(np.diag(spread.sum(axis=1) + ridge) - spread, uphill)
        length, before = 1.0, gain(theta)
        while length > 1e-10 and gain(theta + length * step) < before + 1e-4 * length * (uphill @ step) - 1e-12:
            length /= 2
        theta = theta + length * step
    return theta - theta.mean()
