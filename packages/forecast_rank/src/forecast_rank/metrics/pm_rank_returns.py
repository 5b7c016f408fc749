"""Returns of the package pm_rank 0.3.1 by its own definitions: stakes at clipped prices, in four modes.

Errors of the package are not reproduced.

References
----------
Prophet Arena team (2025). pm_rank: scoring and ranking for prediction markets, version 0.3.1.
"""

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from forecast_rank.metrics.flat_arrays import Codes, Floats, ragged_max
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.returns import return_stream
from forecast_rank.metrics.staking import NEGLIGIBLE_LOG_RATIO

Mode = Literal["default", "approximate", "yes_only", "market_level"]

PRICES = 0.005, 0.995
EPSILON = 1e-12


def average_return(panel: Panel, gamma: float = 0.0, mode: Mode = "default") -> Floats:
    """Gross payoff of a dollar on each question, in the package's four modes.

    Prices are clipped to [0.005, 0.995]. At gamma = 0 the first of tied legs takes all, where this library splits.

    * "default": per option the better of YES and NO (NO if (1 - p)/no > p/yes), then the stakes
      a ~ q (p/q)^(1/gamma) over those legs, though they are not exclusive. The package raises an error at gamma = 1;
      the formula is continued here.
    * "approximate": the same legs, mean-variance stakes (edge - level) / (gamma variance) above a water level.
    * "yes_only": the YES sides alone, as in this library.
    * "market_level": each option a YES/NO market with 1/n of the dollar, as in this library for options that are not
      exclusive; the package pays the side that lost.

    Parameters
    ----------
    panel : Panel
    gamma : float
        Risk aversion, in [0, 1].
    mode : {"default", "approximate", "yes_only", "market_level"}

    Returns
    -------
    array, shape (F,)
        NaN without both prices of every option.

    Raises
    ------
    ValueError
        If `gamma` is outside [0, 1], or for another mode.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.2, 0.8]]], [[0, 1]], odds=[[0.5, 0.5]], no_odds=[[0.4, 0.6]])
    >>> [average_return(panel, mode=mode).tolist() for mode in ("default", "yes_only", "market_level")]
    [[2.5], [2.0], [2.25]]
    """
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma: between 0 and 1, not {gamma}")
    low, high = PRICES
    probability, outcome = panel.probability, panel.outcome
    yes, no = np.clip(panel.odds, low, high), np.clip(panel.no_odds, low, high)
    starts, sizes, owner = panel.offsets[:-1], panel.sizes, panel.cell_forecast
    if mode == "yes_only":
        paid = _full_stakes(probability, yes, gamma, starts, sizes, owner) * outcome / yes
    elif mode in ("default", "approximate"):
        flip = (1 - probability) / no > probability / yes
        legs = np.where(flip, 1 - probability, probability), np.where(flip, no, yes)
        staked = (_full_stakes if mode == "default" else _mean_variance_stakes)(*legs, gamma, starts, sizes, owner)
        paid = staked * np.where(flip, 1 - outcome, outcome) / legs[1]
    elif mode == "market_level":
        pairs = np.arange(len(probability))
        chances, prices = np.stack([probability, 1 - probability], axis=1), np.stack([yes, no], axis=1)
        pair_sizes, account = np.full(len(probability), 2), np.repeat(pairs, 2)
        staked = _full_stakes(chances.ravel(), prices.ravel(), gamma, 2 * pairs, pair_sizes, account).reshape(-1, 2)
        wins = np.stack([outcome, 1 - outcome], axis=1)
        paid = (staked * wins / prices).sum(axis=1) / panel.spread(sizes)
    else:
        raise ValueError(f"mode: default, approximate, yes_only or market_level, not {mode}")
    priced = panel.priced & ~np.isnan(panel.sum_cells(panel.no_odds))
    return np.where(priced, panel.sum_cells(paid), np.nan)


def stream(panel: Panel, values: Floats, increment: int = 100) -> Floats:
    """Each forecaster's running mean in the order of the file; this library's stream is in order of closing.

    Parameters
    ----------
    panel : Panel
    values : array, shape (F,)
    increment : int
        Questions per step.

    Returns
    -------
    array, shape (N, steps)
    """
    order = np.arange(len(panel.questions), dtype=np.float64)
    return return_stream(replace(panel, questions=replace(panel.questions, closed_at=order)), values, increment).means


def _full_stakes(probability: Floats, price: Floats, gamma: float, starts: Codes, sizes: Codes, owner: Codes) -> Floats:
    """q (p/q)^(1/gamma) over its sum in each group of legs; at gamma = 0 all on the first of the largest p/q."""
    if gamma == 0:
        edge = probability / price
        return _first(edge >= ragged_max(edge, starts, sizes)[owner], owner)
    with np.errstate(divide="ignore"):
        edge = np.log(probability) - np.log(price)
    top = ragged_max(edge, starts, sizes)
    gap = edge - np.where(top > -np.inf, top, 0.0)[owner]
    demand = price * np.exp(np.maximum(gap, -NEGLIGIBLE_LOG_RATIO * gamma) / gamma)
    total = np.bincount(owner, demand, len(starts))[owner]
    return np.divide(demand, total, out=np.full(len(demand), np.nan), where=total > 0)


def _mean_variance_stakes(
    probability: Floats, price: Floats, gamma: float, starts: Codes, sizes: Codes, owner: Codes
) -> Floats:
    """Stakes by edge a = p/q - 1 and variance b = p (1 - p)/q^2 of each leg, as if legs were independent.

    Legs with an edge above a level are staked by (a - level) / (gamma b), scaled to a dollar. Equal edges share it
    equally; without an edge above 0, or at gamma = 0, all goes on the largest.
    """
    probability = np.clip(probability, EPSILON, 1 - EPSILON)
    edge, variance = probability / price - 1, probability * (1 - probability) / np.square(price)
    first = edge[starts][owner]
    equal = np.bincount(owner, np.abs(edge - first) > 1e-8 + 1e-5 * np.abs(first), len(starts)) == 0
    best = _first(edge >= ragged_max(edge, starts, sizes)[owner], owner)
    positive = np.bincount(owner, edge > 0, len(starts)).astype(np.int64)
    order = np.lexsort((-edge, owner))
    filled, level = np.zeros(len(starts), dtype=np.int64), np.zeros(len(starts))
    inverse, ratio = np.zeros(len(starts)), np.zeros(len(starts))
    rising, rank = np.flatnonzero((positive > 0) & ~equal & (gamma >= EPSILON)), 0
    while len(rising):
        leg = order[starts[rising] + rank]
        inverse[rising] += 1 / variance[leg]
        ratio[rising] += edge[leg] / variance[leg]
        level[rising] = (ratio[rising] - gamma) / inverse[rising]
        rank += 1
        filled[rising] = rank
        rising = rising[positive[rising] > rank]
        rising = rising[edge[order[starts[rising] + rank]] > level[rising]]
    place = np.empty(len(edge), dtype=np.int64)
    place[order] = np.arange(len(edge)) - starts[owner]  # `order` keeps groups where they are
    excess = np.where(place < filled[owner], np.maximum(edge - level[owner], 0.0), 0.0) / variance
    total = np.bincount(owner, excess, len(starts))[owner]
    spread = np.divide(excess, total, out=best.copy(), where=total > max(gamma, EPSILON) * EPSILON)
    return np.where(equal[owner], 1 / sizes[owner], spread)


def _first(mask: NDArray[np.bool_], owner: Codes) -> Floats:
    """1 at the first leg of each group where `mask` holds, 0 elsewhere."""
    legs = np.flatnonzero(mask)
    groups = owner[legs]
    weights = np.zeros(len(mask))
    weights[legs[np.append(True, groups[1:] != groups[:-1])[: len(legs)]]] = 1.0
    return weights
