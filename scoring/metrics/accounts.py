"""Accounts: dollars bet on legs that exclude each other, by a utility of constant relative risk aversion.

A forecast on options that exclude each other is one account of a dollar with a leg per option. One on options that do
not is an account of 1/n of the dollar per option, with two legs, YES and NO, at the market's two asks. All is done in
logarithms: (p/q)^(1/gamma) overflows for a small gamma.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scoring.metrics.panel import Codes, Floats, Panel, ragged_max
from scoring.metrics.proper import TIE, settled

DEEP = 800.0
"""exp(-800) is 0: what lies deeper below the best edge gets nothing."""


class Accounts(NamedTuple):
    """Where the dollars lie: A accounts with L legs in all; the legs of an account exclude each other.

    forecast, share : (A,), whose dollar and what part of it
    starts, sizes : (A,), first leg and number of legs
    account : (L,), whose leg it is
    probability, price, outcome : (L,)
    cells : the cells that lie, in order, in exclusive accounts; then those of YES/NO accounts
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


class Wealth(NamedTuple):
    """Logarithms of what is owned: if each leg happens (L,), if none of the chosen does (A,); which are chosen (L,)."""

    legs: Floats
    cash: Floats
    chosen: NDArray[np.bool_]


def accounts_of(panel: Panel) -> Accounts:
    """The accounts of all forecasts that saw a price of every option, and of every side where two are bet on."""
    priced = panel.priced & (panel.exclusive | ~np.isnan(panel.sum_cells(panel.no_odds)))
    if priced.all() and panel.exclusive.all():
        return Accounts(
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
    whole = priced & panel.exclusive
    in_whole, in_pairs = (np.flatnonzero(panel.spread(mask)) for mask in (whole, priced & ~panel.exclusive))

    def legs(yes: Floats, no: Floats) -> Floats:
        return np.concatenate([yes[in_whole], np.stack([yes[in_pairs], no[in_pairs]], axis=1).ravel()])

    pairs = panel.cell_forecast[in_pairs]
    sizes = np.concatenate([panel.sizes[whole], np.full(len(pairs), 2)])
    return Accounts(
        forecast=np.concatenate([np.flatnonzero(whole), pairs]),
        share=np.concatenate([np.ones(np.count_nonzero(whole)), 1 / panel.sizes[pairs]]),
        starts=np.cumsum(sizes) - sizes,
        sizes=sizes,
        account=np.repeat(np.arange(len(sizes)), sizes),
        probability=legs(panel.probability, 1 - panel.probability),
        price=legs(panel.odds, panel.no_odds),
        outcome=legs(panel.outcome, 1 - panel.outcome),
        cells=(in_whole, in_pairs),
    )


def _edges(accounts: Accounts) -> Floats:
    """ln(p/q) of each leg, minus infinity where p is 0."""
    edges = _log(accounts.probability)
    edges -= np.log(accounts.price)
    return edges


def _below(edges: Floats, top: Floats, gamma: float) -> Floats:
    """exp((edge - top) / gamma), its limit 1 or 0 at gamma = 0; edges within 1e-12 of the top are at the top."""
    gap = edges - top
    gap[gap > -TIE] = 0.0
    if gamma == 0:
        return (gap == 0).astype(np.float64)
    np.maximum(gap, -DEEP * gamma, out=gap)
    gap /= gamma
    return np.exp(gap, out=gap)


def pull(accounts: Accounts, gamma: float) -> Floats:
    """(p/q)^(1/gamma) of each leg over the largest of its account: times the price, what is staked, up to a factor."""
    _check(gamma)
    edges = _edges(accounts)
    top = accounts.max(edges)
    return _below(edges, accounts.spread(np.where(top > -np.inf, top, 0.0)), gamma)


def wealth(accounts: Accounts, gamma: float) -> Wealth:
    """What `cash_stakes` leave, in logarithms: exact where (p/q)^(1/gamma) itself would be 0 or infinite."""
    _check(gamma)
    mass = accounts.sum(accounts.probability)
    mass = np.where(mass > 0, mass, 1.0)
    probability, edges = accounts.probability / accounts.spread(mass), _edges(accounts) - accounts.spread(np.log(mass))
    rate, free = np.ones(len(mass)), np.ones(len(mass))
    chosen, grows = np.zeros(len(edges), dtype=bool), True
    # What is worth it at a higher rate is so at a lower one: the set only grows, so it need not grow one by one.
    while grows:
        before, chosen = np.count_nonzero(chosen), edges > accounts.spread(_log(rate)) + TIE
        grows = bool(np.count_nonzero(chosen) > before)
        left = accounts.sum(np.where(chosen, 0.0, probability))
        free = 1 - accounts.sum(np.where(chosen, accounts.price, 0.0))
        rate = np.minimum(rate, np.divide(left, free, out=np.zeros(len(rate)), where=free > 0))
    bets = accounts.max(chosen.astype(np.float64)) > 0
    top = np.where(bets, accounts.max(edges), 0.0)
    floor = np.where(bets, _log(rate), 0.0)
    above = accounts.spread(top)
    drawn = np.where(chosen, _below(edges, above, gamma), 0.0)
    scale = np.log(np.where(bets, free, 1.0) * _below(floor, top, gamma) + accounts.sum(drawn * accounts.price))
    cash = _deepened(floor - top, gamma) - scale
    legs = np.where(chosen, _deepened(edges - above, gamma) - accounts.spread(scale), accounts.spread(cash))
    return Wealth(legs, cash, chosen)


def _deepened(gap: Floats, gamma: float) -> Floats:
    """gap / gamma, at gamma = 0 its limit; the logarithm of `_below`, where that would be rounded to 0."""
    near = gap > -TIE
    if gamma == 0:
        return np.where(near, 0.0, -np.inf)
    with np.errstate(over="ignore"):
        return np.where(near, 0.0, gap / gamma)


def expected(accounts: Accounts, legs: Floats) -> Floats:
    """Values of legs, weighted with what happened: (L,) to (A,). Those of what did not happen may be infinite."""
    happened = accounts.outcome > 0
    return accounts.sum(accounts.outcome * np.where(happened, legs, 0.0))


def of_forecasts(panel: Panel, accounts: Accounts, values: Floats) -> Floats:
    """Values of accounts, weighted with their shares: (A,) to (F,), NaN where nothing is known."""
    result = np.bincount(accounts.forecast, accounts.share * values, len(panel))
    known = np.zeros(len(panel), dtype=bool)
    known[accounts.forecast] = True
    known &= settled(panel)
    return np.where(known, result, np.nan)


def _log(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(values)


def _check(gamma: float) -> None:
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma: between 0 and 1, not {gamma}")
