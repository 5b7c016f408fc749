"""Betting returns of a forecast: one dollar per question, staked with constant relative risk aversion.

gamma in [0, 1] is the risk aversion of U(w) = w^(1 - gamma) / (1 - gamma), ln w at gamma = 1. q is the ask: a contract
bought at q pays 1 if its option happens, so that a dollar staked pays 1/q. There are two ways to stake:

* *the whole dollar* (`stakes`, `average_return`). The stakes maximise a utility, but payoffs are averaged as they are.
  For gamma > 0 this does not reward honest forecasts, and since asks sum to more than 1 even a perfect forecaster may
  lose.
* *with cash* (`cash_stakes`, `log_wealth`, `certainty_equivalent`). Wealth is judged by the utility that chose the
  stakes, so that honest forecasts are optimal.

Exclusive options share one account. Other options are YES/NO markets with an account of 1/n of the dollar each, at the
market's two asks. Figures are gross, per dollar; net is gross - 1. They are NaN for a forecast without a price of every
option (and side), and where `settled` is false.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecast_rank.metrics.blocks import by_blocks
from forecast_rank.metrics.closing_columns import closing_columns
from forecast_rank.metrics.flat_arrays import Codes, Floats
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.staking import (
    StakingAccounts,
    equivalent_return,
    optimal_log_wealth,
    payoff,
    realised_log_wealth,
    realised_utility,
    relative_demand,
    staking_accounts,
)


class Stakes(NamedTuple):
    """Stakes of each forecast, NaN without prices.

    Attributes
    ----------
    yes, no : arrays, shape (C,)
        Dollars on YES and on NO of each option; NO is 0 where options are exclusive.
    cash : array, shape (F,)
    """

    yes: Floats
    no: Floats
    cash: Floats


class ReturnStream(NamedTuple):
    """Running means in order of closing, with S steps.

    Attributes
    ----------
    questions : array of int, shape (S,)
        Number of questions closed.
    closed_at : array, shape (S,)
        Close of the last of them, seconds since 1970; NaN if unknown.
    means : array, shape (N, S)
        Each forecaster's mean over those questions; NaN before the first forecast.
    """

    questions: Codes
    closed_at: Floats
    means: Floats


def stakes(panel: Panel, gamma: float) -> Stakes:
    """Stakes of the whole dollar, a_k = q_k (p_k / q_k)^(1/gamma) over their sum.

    gamma = 1 stakes a = p. gamma = 0 stakes all on the largest p / q, ties (1e-12, relative) in proportion to q, which
    is the limit. Computed in logarithms, so that no gamma overflows. A vector of zeros stakes nothing.

    Parameters
    ----------
    panel : Panel
    gamma : float
        Risk aversion, in [0, 1].

    Returns
    -------
    Stakes

    Raises
    ------
    ValueError
        If `gamma` is outside [0, 1].

    References
    ----------
    Merton, R. C. (1969). Lifetime portfolio selection under uncertainty. Review of Economics and Statistics 51, 247-257
    (the utility). Kelly, J. L. (1956). A new interpretation of information rate. Bell System Technical Journal 35,
    917-926 (gamma = 1).

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.6, 0.4]]], [[1, 0]], odds=[[0.5, 0.5]])
    >>> [stakes(panel, gamma).yes.round(4).tolist() for gamma in (0, 0.5, 1)]
    [[1.0, 0.0], [0.6923, 0.3077], [0.6, 0.4]]
    """
    accounts = staking_accounts(panel)
    demand = relative_demand(accounts, gamma)
    total = accounts.spread(accounts.sum(demand * accounts.price) / accounts.share)
    staked = np.divide(demand * accounts.price, total, out=np.zeros(len(demand)), where=total > 0)
    return _stakes(panel, accounts, staked, np.zeros(len(accounts.share)))


@by_blocks
def average_return(panel: Panel, gamma: float = 0.0) -> Floats:
    """Gross payoff of each forecast's dollar, a_j / q_j for the option j that happened, with the stakes a of `stakes`.

    A fractional outcome pays its fraction. The mean over forecasts is the averaged return; at gamma = 0 it is that of a
    risk-neutral bettor.

    Parameters
    ----------
    panel : Panel
    gamma : float
        Risk aversion, in [0, 1].

    Returns
    -------
    array, shape (F,)
        1 is break-even, higher is better. NaN without prices, where `settled` is false, and for a vector of zeros.

    Raises
    ------
    ValueError
        If `gamma` is outside [0, 1].

    Examples
    --------
    A forecasts 0.45 and B 0.9 where YES and NO cost 0.5 and YES happens 6 times in 10: A buys NO and B buys YES.

    >>> from forecast_rank.metrics.panel import from_arrays
    >>> forecasts, outcomes = [[[0.45, 0.55]], [[0.9, 0.1]]], ([[1, 0]], [[0, 1]])
    >>> yes, no = (average_return(from_arrays(forecasts, outcome, odds=[[0.5, 0.5]])) for outcome in outcomes)
    >>> (0.6 * yes + 0.4 * no).tolist()
    [0.8, 1.2]
    """
    return payoff(panel, staking_accounts(panel), gamma)


def cash_stakes(panel: Panel, gamma: float) -> Stakes:
    """Stakes that maximise the expected utility of wealth when cash may be held.

    With options in descending order of p/q, the set S grows by the next k while p_k / q_k > R = (1 - P_S) / (1 - Q_S),
    P and Q the sums of p and q over S. Wealth is W_k = (p_k / q_k)^(1/gamma) / A if an option k of S happens and c =
    R^(1/gamma) / A otherwise, with A = (1 - Q_S) R^(1/gamma) + sum_S q_k (p_k / q_k)^(1/gamma); c stays in cash and q_k
    (W_k - c) is staked. gamma = 0 is the limit: all on the largest p/q if it is above 1, else all in cash. p is divided
    by its sum where options are exclusive; a vector of zeros keeps the dollar.

    Parameters
    ----------
    panel : Panel
    gamma : float
        Risk aversion, in [0, 1].

    Returns
    -------
    Stakes

    Raises
    ------
    ValueError
        If `gamma` is outside [0, 1].

    References
    ----------
    Kelly, J. L. (1956). A new interpretation of information rate. Bell System Technical Journal 35, 917-926.
    Smoczynski, P. and Tomkins, D. (2010). An explicit solution to the problem of optimizing the allocations of a
    bettor's wealth when wagering on horse races. The Mathematical Scientist 35, 10-17 (the set S).

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.6, 0.4]]], [[1, 0]], odds=[[0.5, 0.55]])
    >>> yes, _, cash = cash_stakes(panel, gamma=1)  # Kelly: (0.6 - 0.5) / (1 - 0.5)
    >>> yes.round(6).tolist(), cash.round(6).tolist()
    ([0.2, 0.0], [0.8])
    """
    accounts = staking_accounts(panel)
    owned = optimal_log_wealth(accounts, gamma)
    cash_wealth = np.exp(owned.cash)
    staked = np.where(owned.chosen, accounts.price * (np.exp(owned.legs) - accounts.spread(cash_wealth)), 0.0)
    return _stakes(panel, accounts, staked * accounts.spread(accounts.share), cash_wealth * accounts.share)


@by_blocks
def log_wealth(panel: Panel, gamma: float = 1.0) -> Floats:
    """The logarithm of the wealth that a dollar becomes with `cash_stakes`.

    Where options are not exclusive: the mean over their accounts. At gamma = 1 its expectation is highest for an honest
    forecast. Ruin happens only to a forecast with probability 0 for the outcome, or at gamma = 0, where all may be
    staked.

    Parameters
    ----------
    panel : Panel
    gamma : float
        Risk aversion, in [0, 1].

    Returns
    -------
    array, shape (F,)
        0 is break-even, minus infinity is ruin, higher is better. NaN without prices and where `settled` is false.

    Raises
    ------
    ValueError
        If `gamma` is outside [0, 1].

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.6, 0.4], [1.0, 0.0]]], [[1, 0], [0, 1]], odds=[[0.5, 0.55], [0.5, 0.55]])
    >>> log_wealth(panel).round(6).tolist()  # 0.8 + 0.2 / 0.5 = 1.2; all staked, all lost
    [0.182322, -inf]
    """
    accounts = staking_accounts(panel)
    return realised_log_wealth(panel, accounts, optimal_log_wealth(accounts, gamma))


def ruins(panel: Panel, gamma: float) -> NDArray[np.int64]:
    """Number of forecasts that lose all of an account with `cash_stakes`.

    Parameters
    ----------
    panel : Panel
    gamma : float
        Risk aversion, in [0, 1].

    Returns
    -------
    array of int, shape (N,)
        Unweighted counts.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.6, 0.4], [0.9, 0.1]]], [[1, 0], [0, 1]], odds=[[0.5, 0.55], [0.5, 0.55]])
    >>> ruins(panel, gamma=0).tolist(), ruins(panel, gamma=1).tolist()
    ([1], [0])
    """
    ruined = log_wealth(panel, gamma) == -np.inf
    return np.bincount(panel.forecaster[ruined], minlength=len(panel.forecasters))


def certainty_equivalent(panel: Panel, gamma: float) -> Floats:
    """The certain gross return with the same utility as the wealth that `cash_stakes` yielded.

    (mean W^(1 - gamma))^(1 / (1 - gamma)) over the wealths W of the forecasts, and exp(mean ln W) at gamma = 1: the
    inverse utility of the mean utility. At every gamma its expectation is highest for honest forecasts.

    Parameters
    ----------
    panel : Panel
    gamma : float
        Risk aversion, in [0, 1].

    Returns
    -------
    array, shape (N,)
        1 is break-even, higher is better; 0 after one ruin at gamma = 1. NaN without prices.

    Raises
    ------
    ValueError
        If `gamma` is outside [0, 1].

    References
    ----------
    Pratt, J. W. (1964). Risk aversion in the small and in the large. Econometrica 32, 122-136.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.6, 0.4], [0.6, 0.4]]], [[1, 0], [0, 1]], odds=[[0.5, 0.55], [0.5, 0.55]])
    >>> certainty_equivalent(panel, gamma=1).round(6).tolist()  # the root of 1.2 x 0.8
    [0.979796]
    """
    accounts = staking_accounts(panel)
    utility = realised_utility(panel, accounts, optimal_log_wealth(accounts, gamma), gamma)
    return equivalent_return(panel.forecaster_means(utility), gamma)


def return_stream(panel: Panel, values: Floats, step: int = 1) -> ReturnStream:
    """Each forecaster's running weighted mean, one column per `step` questions in order of closing.

    Questions on which no forecast has a value are not counted. Questions that close together, or at an unknown time
    (last), stay in the order of the panel.

    Parameters
    ----------
    panel : Panel
    values : array, shape (F,)
        `average_return` or any other score; NaN leaves a forecast out.
    step : int
        Questions per column; the last column holds all questions.

    Returns
    -------
    ReturnStream

    Raises
    ------
    ValueError
        If `step` is below 1 or `values` is not one per forecast.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.5, 0.5]] * 3], [[1, 0]] * 3, closed_at=[30, 10, 20])
    >>> stream = return_stream(panel, np.array([3.0, 1.0, 2.0]), step=2)
    >>> stream.questions.tolist(), stream.closed_at.tolist(), stream.means.tolist()
    ([2, 3], [20.0, 30.0], [[1.5, 2.0]])
    """
    values = panel.one_per_forecast(values)
    if step < 1:
        raise ValueError(f"step: at least 1, not {step}")
    is_counted = ~np.isnan(values)
    closing = closing_columns(panel, is_counted, step)
    n_forecasters, columns = len(panel.forecasters), len(closing.questions)
    cell = panel.forecaster[is_counted] * columns + closing.place[panel.question[is_counted]] // step
    weight = panel.weight[is_counted]

    def running(summand: Floats) -> Floats:
        return np.bincount(cell, summand, n_forecasters * columns).reshape(n_forecasters, columns).cumsum(axis=1)

    total, mass = running(weight * values[is_counted]), running(weight)
    means = np.divide(total, mass, out=np.full(mass.shape, np.nan), where=mass > 0)
    return ReturnStream(closing.questions, closing.closed_at, means)


def _stakes(panel: Panel, accounts: StakingAccounts, staked: Floats, cash_amounts: Floats) -> Stakes:
    in_single, in_pairs = accounts.cells
    yes, no = np.full((2, len(panel.probability)), np.nan)
    yes[in_single], no[in_single] = staked[: len(in_single)], 0.0
    yes[in_pairs], no[in_pairs] = staked[len(in_single) :].reshape(-1, 2).T
    cash = np.full(len(panel), np.nan)
    cash[accounts.forecast] = 0.0
    cash += np.bincount(accounts.forecast, cash_amounts, len(panel))
    return Stakes(yes, no, cash)
