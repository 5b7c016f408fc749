"""What a forecast would have earned: one dollar per question, staked by a utility of constant relative risk aversion.

gamma in [0, 1] is the risk aversion of U(w) = w^(1 - gamma) / (1 - gamma), ln w at gamma = 1. q is the ask: a contract
bought at q pays 1 if its option happens, so a dollar staked pays 1/q. Two ways to stake:

* *the whole dollar* (`stakes`, `average_return`): the arena's averaged return. The stakes maximise one utility and the
  plain mean of payoffs judges by another, so for gamma > 0 it does not reward honesty, and because asks sum to more
  than 1 even a perfect forecaster may lose.
* *what is worth it* (`cash_stakes`, `log_wealth`, `certainty_equivalent`): the rest stays in cash. Judged by the very
  utility that chose the stakes, it is best to say what one believes.

Options that exclude each other share one account. Options that do not are a YES/NO market each, with an account of 1/n
of the dollar and the market's own two asks. Figures are gross, per dollar; net is gross - 1. A forecast without a price
for every option (and side) earns nothing and loses nothing: NaN, as where `settled` is false.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scoring.metrics.accounts import Accounts, accounts_of, expected, of_forecasts, pull, wealth
from scoring.metrics.panel import Codes, Floats, Panel


class Stakes(NamedTuple):
    """The dollar of each forecast: on YES of each option (C,), on NO of each option (C,), kept in cash (F,).

    NO is 0 where options exclude each other. NaN for a forecast without prices.
    """

    yes: Floats
    no: Floats
    cash: Floats


class Stream(NamedTuple):
    """Running means in order of closing, one column per step.

    questions : (S,), how many questions had closed
    closed_at : (S,), when the last of them closed, seconds since 1970; NaN where not known
    means : (N, S), each forecaster's mean over those questions; NaN before the first forecast
    """

    questions: Codes
    closed_at: Floats
    means: Floats


def stakes(panel: Panel, gamma: float) -> Stakes:
    """The whole dollar of each forecast over its options: a_k = q_k (p_k / q_k)^(1/gamma) over their sum.

    gamma = 1 stakes a = p; gamma = 0 puts all on the largest p / q, ties (1e-12, relative) in proportion to q, which is
    the limit. Computed in logarithms, so no gamma overflows. A vector of zeros stakes nothing.

    Raises ValueError for a gamma outside [0, 1].

    References
    ----------
    Merton, R. C. (1969). Lifetime portfolio selection under uncertainty. Review of Economics and Statistics 51, 247-257
    (the utility). Kelly, J. L. (1956). A new interpretation of information rate. Bell System Technical Journal 35,
    917-926 (gamma = 1).

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.6, 0.4]]], [[1, 0]], odds=[[0.5, 0.5]])
    >>> [stakes(panel, gamma).yes.round(4).tolist() for gamma in (0, 0.5, 1)]
    [[1.0, 0.0], [0.6923, 0.3077], [0.6, 0.4]]
    """
    accounts = accounts_of(panel)
    drawn = pull(accounts, gamma)
    total = accounts.spread(accounts.sum(drawn * accounts.price) / accounts.share)
    staked = np.divide(drawn * accounts.price, total, out=np.zeros(len(drawn)), where=total > 0)
    return _stakes(panel, accounts, staked, np.zeros(len(accounts.share)))


def average_return(panel: Panel, gamma: float = 0.0) -> Floats:
    """What each forecast's dollar paid, gross: a_j / q_j for the option j that happened, stakes a of `stakes`, (F,).

    Summed over options with their outcomes, so a fractional outcome pays its share. 1 is break-even. NaN without
    prices, where `settled` is false, and for a vector of zeros, which has no stakes. The mean over forecasts is the
    averaged return; at gamma = 0 it is that of a risk-neutral bettor.

    Raises ValueError for a gamma outside [0, 1].

    Examples
    --------
    A says 0.45 and B says 0.9 where YES and NO cost 0.5 and YES comes 6 times in 10: A buys NO and B YES.

    >>> from scoring.metrics.panel import from_arrays
    >>> said, happened = [[[0.45, 0.55]], [[0.9, 0.1]]], ([[1, 0]], [[0, 1]])
    >>> yes, no = (average_return(from_arrays(said, outcome, odds=[[0.5, 0.5]])) for outcome in happened)
    >>> (0.6 * yes + 0.4 * no).tolist()
    [0.8, 1.2]
    """
    accounts = accounts_of(panel)
    drawn = pull(accounts, gamma)
    paid, cost = accounts.sum(accounts.outcome * drawn), accounts.sum(drawn * accounts.price)
    payoff = np.divide(paid, cost, out=np.full(len(cost), np.nan), where=cost > 0)
    return of_forecasts(panel, accounts, payoff)


def cash_stakes(panel: Panel, gamma: float) -> Stakes:
    """The stakes of a forecaster who may keep cash: those that maximise the expected utility of wealth.

    With options in descending order of p/q, the set S grows by the next k while p_k / q_k > R = (1 - P_S) / (1 - Q_S),
    P and Q the sums of p and q over S. Wealth is W_k = (p_k / q_k)^(1/gamma) / A if an option k of S happens and
    c = R^(1/gamma) / A elsewhere, with A = (1 - Q_S) R^(1/gamma) + sum_S q_k (p_k / q_k)^(1/gamma); c is kept in cash
    and q_k (W_k - c) staked. gamma = 0 is the limit: all on the largest p/q if it is above 1, else all in cash. p is
    divided by its sum where options exclude each other; a vector of zeros keeps the dollar.

    Raises ValueError for a gamma outside [0, 1].

    References
    ----------
    Kelly, J. L. (1956). A new interpretation of information rate. Bell System Technical Journal 35, 917-926.
    Smoczynski, P. and Tomkins, D. (2010). An explicit solution to the problem of optimizing the allocations of a
    bettor's wealth when wagering on horse races. The Mathematical Scientist 35, 10-17 (the set S).

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.6, 0.4]]], [[1, 0]], odds=[[0.5, 0.55]])
    >>> yes, _, cash = cash_stakes(panel, gamma=1)  # Kelly: (0.6 - 0.5) / (1 - 0.5)
    >>> yes.round(6).tolist(), cash.round(6).tolist()
    ([0.2, 0.0], [0.8])
    """
    accounts = accounts_of(panel)
    owned = wealth(accounts, gamma)
    kept = np.exp(owned.cash)
    staked = np.where(owned.chosen, accounts.price * (np.exp(owned.legs) - accounts.spread(kept)), 0.0)
    return _stakes(panel, accounts, staked * accounts.spread(accounts.share), kept * accounts.share)


def log_wealth(panel: Panel, gamma: float = 1.0) -> Floats:
    """The logarithm of what `cash_stakes` make of a dollar: (F,), 0 is break-even, minus infinity is ruin.

    Where options are not exclusive, the mean over their accounts. At gamma = 1 its expectation is largest for who says
    what he believes. Summed over options with their outcomes where these are fractions. NaN without prices and where
    `settled` is false. Ruin happens only to who gave 0 to what happened, or at gamma = 0, where all may be staked.

    Raises ValueError for a gamma outside [0, 1].

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.6, 0.4], [1.0, 0.0]]], [[1, 0], [0, 1]], odds=[[0.5, 0.55], [0.5, 0.55]])
    >>> log_wealth(panel).round(6).tolist()  # 0.8 + 0.2 / 0.5 = 1.2; all staked, all lost
    [0.182322, -inf]
    """
    accounts = accounts_of(panel)
    return of_forecasts(panel, accounts, expected(accounts, wealth(accounts, gamma).legs))


def ruins(panel: Panel, gamma: float) -> NDArray[np.int64]:
    """How many forecasts of each forecaster lose all of an account by their `cash_stakes`: (N,), unweighted.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.6, 0.4], [0.9, 0.1]]], [[1, 0], [0, 1]], odds=[[0.5, 0.55], [0.5, 0.55]])
    >>> ruins(panel, gamma=0).tolist(), ruins(panel, gamma=1).tolist()
    ([1], [0])
    """
    lost = log_wealth(panel, gamma) == -np.inf
    return np.bincount(panel.forecaster[lost], minlength=len(panel.forecasters))


def certainty_equivalent(panel: Panel, gamma: float) -> Floats:
    """The sure gross return that each forecaster's utility puts level with what `cash_stakes` brought: (N,).

    (mean W^(1 - gamma))^(1 / (1 - gamma)) over the forecasts' wealths W, and exp(mean ln W) at gamma = 1: the inverse
    utility of the mean utility. At every gamma its expectation is largest for who says what he believes. 1 is
    break-even; 0 where one ruin weighs infinitely (gamma = 1). NaN for a forecaster without prices.

    Raises ValueError for a gamma outside [0, 1].

    References
    ----------
    Pratt, J. W. (1964). Risk aversion in the small and in the large. Econometrica 32, 122-136.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.6, 0.4], [0.6, 0.4]]], [[1, 0], [0, 1]], odds=[[0.5, 0.55], [0.5, 0.55]])
    >>> certainty_equivalent(panel, gamma=1).round(6).tolist()  # the root of 1.2 x 0.8
    [0.979796]
    """
    accounts = accounts_of(panel)
    legs, power = wealth(accounts, gamma).legs, 1 - gamma
    # W^s - 1 rather than W^s: near gamma = 1 all of them are close to 1, and what differs would be rounded away.
    utility = np.expm1(power * legs) if power > 0 else legs
    mean = panel.forecaster_means(of_forecasts(panel, accounts, expected(accounts, utility)))
    if power == 0:
        return np.exp(mean)
    lost = mean <= -1
    return np.where(lost, 0.0, np.exp(np.log1p(np.where(lost, 0.0, mean)) / power))


def return_stream(panel: Panel, values: Floats, step: int = 1) -> Stream:
    """Each forecaster's running weighted mean of `values`, one column per `step` questions in order of closing.

    Parameters
    ----------
    values : (F,), `average_return` or any other score of each forecast; NaN leaves a forecast out
    step : questions per column; the last column holds all questions, whatever is left over

    Questions on which no forecast has a value are no part of the count. Those that close together, or at a time not
    known (last), stay in the order of the panel.

    Raises ValueError for a step below 1 or `values` that are not one per forecast.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.5, 0.5]] * 3], [[1, 0]] * 3, closed_at=[30, 10, 20])
    >>> stream = return_stream(panel, np.array([3.0, 1.0, 2.0]), step=2)
    >>> stream.questions.tolist(), stream.closed_at.tolist(), stream.means.tolist()
    ([2, 3], [20.0, 30.0], [[1.5, 2.0]])
    """
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (len(panel),):
        raise ValueError(f"values: one per forecast, {len(panel)}, not shape {values.shape}")
    if step < 1:
        raise ValueError(f"step: at least 1, not {step}")
    counted = ~np.isnan(values)
    asked = np.zeros(len(panel.questions), dtype=bool)
    asked[panel.question[counted]] = True
    order = np.argsort(panel.questions.closed_at, kind="stable")
    order = order[asked[order]]
    last = np.append(np.arange(step, len(order), step), len(order))[: len(order)] - 1
    place = np.zeros(len(panel.questions), dtype=np.int64)
    place[order] = np.arange(len(order)) // step
    people, columns = len(panel.forecasters), len(last)
    cell = panel.forecaster[counted] * columns + place[panel.question[counted]]
    weight = panel.weight[counted]

    def running(summand: Floats) -> Floats:
        return np.bincount(cell, summand, people * columns).reshape(people, columns).cumsum(axis=1)

    total, mass = running(weight * values[counted]), running(weight)
    means = np.divide(total, mass, out=np.full(mass.shape, np.nan), where=mass > 0)
    return Stream(last + 1, panel.questions.closed_at[order[last]], means)


def sharpe(panel: Panel, values: Floats) -> Floats:
    """Mean net return over its standard deviation, per question, of each forecaster: (N,).

    (m - 1) / s with the weighted mean m of gross `values`, (F,), and s^2 = n / (n - 1) sum w (v - m)^2 / sum w over n
    forecasts. Cash at no interest is the risk-free asset. Not annualised: for a year of n independent questions times
    the root of n. NaN for fewer than two forecasts with a value, or where they do not differ.

    Raises ValueError if `values` is not one per forecast.

    References
    ----------
    Sharpe, W. F. (1994). The Sharpe ratio. Journal of Portfolio Management 21, 49-58.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.5, 0.5]] * 2], [[1, 0]] * 2)
    >>> sharpe(panel, np.array([0.5, 2.5])).round(6).tolist()  # 0.5 / 1.414214
    [0.353553]
    """
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (len(panel),):
        raise ValueError(f"values: one per forecast, {len(panel)}, not shape {values.shape}")
    count = np.bincount(panel.forecaster, ~np.isnan(values), len(panel.forecasters))
    mean = panel.forecaster_means(values)
    variance = panel.forecaster_means(np.square(values - mean[panel.forecaster]))
    spread = np.sqrt(variance * np.divide(count, count - 1, out=np.full(len(count), np.nan), where=count > 1))
    # Equal values leave a rounding error behind, not a spread.
    spreads = spread > 1e-12 * np.maximum(np.abs(mean), 1)
    return np.divide(mean - 1, spread, out=np.full(len(mean), np.nan), where=spreads)


def _stakes(panel: Panel, accounts: Accounts, staked: Floats, kept: Floats) -> Stakes:
    in_whole, in_pairs = accounts.cells
    yes, no = np.full((2, len(panel.probability)), np.nan)
    yes[in_whole], no[in_whole] = staked[: len(in_whole)], 0.0
    yes[in_pairs], no[in_pairs] = staked[len(in_whole) :].reshape(-1, 2).T
    cash = np.full(len(panel), np.nan)
    cash[accounts.forecast] = 0.0
    cash += np.bincount(accounts.forecast, kept, len(panel))
    return Stakes(yes, no, cash)
