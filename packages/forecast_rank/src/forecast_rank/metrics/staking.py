"""Staking accounts: dollars bet on exclusive legs, with constant relative risk aversion.

A forecast on exclusive options is one account of a dollar with a leg per option. A forecast on other options is an
account of 1/n of the dollar per option, with the two legs YES and NO. Computed in logarithms, since (p/q)^(1/gamma)
overflows for a small gamma.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecast_rank.metrics.blocks import arrays_by_blocks
from forecast_rank.metrics.flat_arrays import Codes, Floats, ragged_max
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.proper_scores import TIE, settled

NEGLIGIBLE_LOG_RATIO = 800.0
"""exp(-800) is 0: what lies deeper below the best edge gets nothing."""


class StakingAccounts(NamedTuple):
    """A accounts with L legs in all. Exactly one leg of an account pays.

    Attributes
    ----------
    forecast : array of int, shape (A,)
    share : array, shape (A,)
        Part of the forecast's dollar in the account.
    starts, sizes : arrays of int, shape (A,)
        First leg and number of legs.
    account : array of int, shape (L,)
    probability, price, outcome : arrays, shape (L,)
    cells : tuple of two arrays of int
        Cells of the legs, in order: those of accounts of exclusive options, then those of YES/NO accounts.
    """

    forecast: Codes
    share: Floats
    starts: Codes
    sizes: Codes
    account: Codes
    probability: Floats
    price: Floats
    outcome: Floats
    cells: tuple[Codes, Codes]

    def sum(self, legs: Floats) -> Floats:
        return np.asarray(np.bincount(self.account, legs, len(self.share)), dtype=np.float64)

    def max(self, legs: Floats) -> Floats:
        return ragged_max(legs, self.starts, self.sizes)

    def spread(self, values: NDArray) -> NDArray:
        return np.repeat(values, self.sizes)


class LogWealth(NamedTuple):
    """Logarithms of final wealth.

    Attributes
    ----------
    legs : array, shape (L,)
        If the leg pays.
    cash : array, shape (A,)
        If none of the chosen legs pays.
    chosen : array of bool, shape (L,)
        Legs with a stake.
    """

    legs: Floats
    cash: Floats
    chosen: NDArray[np.bool_]


def staking_accounts(panel: Panel) -> StakingAccounts:
    """The accounts of all forecasts with a price of every option, and of both sides where options are not exclusive."""
    priced = panel.priced & (panel.exclusive | ~np.isnan(panel.sum_cells(panel.no_odds)))
    if priced.all() and panel.exclusive.all():
        return StakingAccounts(
            forecast=np.arange(len(panel)),
            share=np.ones(len(panel)),
            starts=panel.offsets[:-1],
            sizes=panel.sizes,
            account=panel.cell_forecast,
            probability=panel.probability,
            price=panel.odds,
            outcome=panel.outcome,
            cells=(np.arange(len(panel.probability)), np.zeros(0, dtype=np.int64)),
        )
    single = priced & panel.exclusive
    in_single, in_pairs = (np.flatnonzero(panel.spread(mask)) for mask in (single, priced & ~panel.exclusive))

    def legs(yes: Floats, no: Floats) -> Floats:
        return np.concatenate([yes[in_single], np.stack([yes[in_pairs], no[in_pairs]], axis=1).ravel()])

    pairs = panel.cell_forecast[in_pairs]
    sizes = np.concatenate([panel.sizes[single], np.full(len(pairs), 2)])
    return StakingAccounts(
        forecast=np.concatenate([np.flatnonzero(single), pairs]),
        share=np.concatenate([np.ones(np.count_nonzero(single)), 1 / panel.sizes[pairs]]),
        starts=np.cumsum(sizes) - sizes,
        sizes=sizes,
        account=np.repeat(np.arange(len(sizes)), sizes),
        probability=legs(panel.probability, 1 - panel.probability),
        price=legs(panel.odds, panel.no_odds),
        outcome=legs(panel.outcome, 1 - panel.outcome),
        cells=(in_single, in_pairs),
    )


def _edges(accounts: StakingAccounts) -> Floats:
    """ln(p/q) of each leg, minus infinity where p is 0."""
    edges = _log(accounts.probability)
    edges -= np.log(accounts.price)
    return edges


def _below(edges: Floats, top: Floats, gamma: float) -> Floats:
    """exp((edge - top) / gamma), at gamma = 0 its limit 1 or 0. Edges within 1e-12 of the top count as the top."""
    gap = edges - top
    gap[gap > -TIE] = 0.0
    if gamma == 0:
        return (gap == 0).astype(np.float64)
    np.maximum(gap, -NEGLIGIBLE_LOG_RATIO * gamma, out=gap)
    gap /= gamma
    return np.exp(gap, out=gap)


def relative_demand(accounts: StakingAccounts, gamma: float) -> Floats:
    """(p/q)^(1/gamma) of each leg over the largest of its account. Times the price it is proportional to the stake."""
    _check(gamma)
    edges = _edges(accounts)
    top = accounts.max(edges)
    return _below(edges, accounts.spread(np.where(top > -np.inf, top, 0.0)), gamma)


class ChosenBets(NamedTuple):
    """The legs that are worth a stake, the same at every risk aversion.

    Attributes
    ----------
    edges : array, shape (L,)
        ln(p/q) with probabilities that sum to 1 in their account.
    chosen : array of bool, shape (L,)
    top : array, shape (A,)
        The largest edge.
    floor : array, shape (A,)
        ln of the ratio R of `returns.cash_stakes`, the edge of cash.
    free : array, shape (A,)
        1 less the prices of the chosen legs.
    """

    edges: Floats
    chosen: NDArray[np.bool_]
    top: Floats
    floor: Floats
    free: Floats


def chosen_bets(accounts: StakingAccounts) -> ChosenBets:
    """The set S of `returns.cash_stakes` in each account; where it is empty, top and floor are 0 and free is 1."""
    mass = accounts.sum(accounts.probability)
    mass = np.where(mass > 0, mass, 1.0)
    probability, edges = accounts.probability / accounts.spread(mass), _edges(accounts) - accounts.spread(np.log(mass))
    rate, free = np.ones(len(mass)), np.ones(len(mass))
    is_selected, grows = np.zeros(len(edges), dtype=bool), True
    # The set only grows as the rate falls, so all options above the rate are added at once.
    while grows:
        before, is_selected = np.count_nonzero(is_selected), edges > accounts.spread(_log(rate)) + TIE
        grows = bool(np.count_nonzero(is_selected) > before)
        unstaked = accounts.sum(np.where(is_selected, 0.0, probability))
        free = 1 - accounts.sum(np.where(is_selected, accounts.price, 0.0))
        rate = np.minimum(rate, np.divide(unstaked, free, out=np.zeros(len(rate)), where=free > 0))
    has_stakes = accounts.max(is_selected.astype(np.float64)) > 0
    return ChosenBets(
        edges,
        is_selected,
        top=np.where(has_stakes, accounts.max(edges), 0.0),
        floor=np.where(has_stakes, _log(rate), 0.0),
        free=np.where(has_stakes, free, 1.0),
    )


def optimal_log_wealth(accounts: StakingAccounts, gamma: float, bets: ChosenBets | None = None) -> LogWealth:
    """Logarithms of the wealth with the stakes of `returns.cash_stakes`, exact where (p/q)^(1/gamma) would overflow."""
    _check(gamma)
    edges, is_selected, top, floor, free = chosen_bets(accounts) if bets is None else bets
    above = accounts.spread(top)
    drawn = np.where(is_selected, _below(edges, above, gamma), 0.0)
    scale = np.log(free * _below(floor, top, gamma) + accounts.sum(drawn * accounts.price))
    cash = _deepened(floor - top, gamma) - scale
    legs = np.where(is_selected, _deepened(edges - above, gamma) - accounts.spread(scale), accounts.spread(cash))
    return LogWealth(legs, cash, is_selected)


def _deepened(gap: Floats, gamma: float) -> Floats:
    """gap / gamma, at gamma = 0 its limit: the logarithm of `_below` where that would underflow to 0."""
    near = gap > -TIE
    if gamma == 0:
        return np.where(near, 0.0, -np.inf)
    with np.errstate(over="ignore"):
        return np.where(near, 0.0, gap / gamma)


def outcome_weighted_sums(accounts: StakingAccounts, legs: Floats) -> Floats:
    """Sums of leg values weighted by their outcomes: (L,) to (A,). Values of legs with outcome 0 may be infinite."""
    happened = accounts.outcome > 0
    return accounts.sum(accounts.outcome * np.where(happened, legs, 0.0))


def forecast_values(panel: Panel, accounts: StakingAccounts, values: Floats) -> Floats:
    """Account values weighted by their shares: (A,) to (F,), NaN for a forecast without prices or a settled outcome."""
    result = np.bincount(accounts.forecast, accounts.share * values, len(panel))
    is_known = np.zeros(len(panel), dtype=bool)
    is_known[accounts.forecast] = True
    is_known &= settled(panel)
    return np.where(is_known, result, np.nan)


def payoff(panel: Panel, accounts: StakingAccounts, gamma: float) -> Floats:
    """`returns.average_return` by the accounts of the panel, (F,)."""
    demand = relative_demand(accounts, gamma)
    paid, cost = accounts.sum(accounts.outcome * demand), accounts.sum(demand * accounts.price)
    ratio = np.divide(paid, cost, out=np.full(len(cost), np.nan), where=cost > 0)
    return forecast_values(panel, accounts, ratio)


def realised_log_wealth(panel: Panel, accounts: StakingAccounts, owned: LogWealth) -> Floats:
    """`returns.log_wealth` by the accounts of the panel and their optimal wealth, (F,)."""
    return forecast_values(panel, accounts, outcome_weighted_sums(accounts, owned.legs))


def realised_utility(panel: Panel, accounts: StakingAccounts, owned: LogWealth, gamma: float) -> Floats:
    """W^(1 - gamma) - 1 of the wealths W of each forecast, ln W at gamma = 1, (F,)."""
    # W^s - 1 rather than W^s: near gamma = 1 all powers are close to 1, and rounding would remove their differences.
    utility = np.expm1((1 - gamma) * owned.legs) if gamma < 1 else owned.legs
    return forecast_values(panel, accounts, outcome_weighted_sums(accounts, utility))


def equivalent_return(mean: Floats, gamma: float) -> Floats:
    """The certain returns with these means of `realised_utility`."""
    power = 1 - gamma
    if power == 0:
        return np.exp(mean)
    ruined = mean <= -1
    return np.where(ruined, 0.0, np.exp(np.log1p(np.where(ruined, 0.0, mean)) / power))


@arrays_by_blocks
def betting_results(panel: Panel, gammas: Sequence[float]) -> list[Floats]:
    """Three arrays for each of G risk aversions, of values of each forecast, (F,).

    They are `average_return`, `log_wealth` and `realised_utility`, apart from each other, so that each can leave memory
    when it has been used.
    """
    accounts = staking_accounts(panel)
    bets = chosen_bets(accounts)
    owned = {gamma: optimal_log_wealth(accounts, gamma, bets) for gamma in gammas}
    return [
        row
        for gamma in gammas
        for row in (
            payoff(panel, accounts, gamma),
            realised_log_wealth(panel, accounts, owned[gamma]),
            realised_utility(panel, accounts, owned[gamma], gamma),
        )
    ]


def _log(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(values)


def _check(gamma: float) -> None:
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma: between 0 and 1, not {gamma}")
