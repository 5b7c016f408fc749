"""Returns: against a solver that knows no formula, at both ends of risk aversion, at the edges of price and belief."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel, from_arrays
from forecast_rank.metrics.proper_scores import brier
from forecast_rank.metrics.returns import (
    average_return,
    cash_stakes,
    certainty_equivalent,
    log_wealth,
    return_stream,
    ruins,
    stakes,
)
from tests.forecast_rank.panels import panel, rows_of, synthetic
from tests.lazy_modules import optimize

GAMMAS = (0.001, 0.05, 0.3, 0.5, 0.75, 0.999, 1.0)


def single(probabilities: list[float], odds: list[float], outcome: int = 0) -> Panel:
    return panel(rows_of("ann", "q", probabilities, outcome, odds=odds))


def utility(wealth: Floats, gamma: float) -> Floats:
    return np.log(wealth) if gamma == 1 else wealth ** (1 - gamma) / (1 - gamma)


def best_by_solver(chances: Floats, price: Floats, gamma: float, cash: bool) -> tuple[float, Floats]:
    """The largest expected utility of a dollar over stakes (and cash), found by SLSQP from several starts."""
    count = len(chances)

    def loss(dollar: Floats) -> float:
        cash_share = dollar[count] if cash else 0.0
        return -float(chances @ utility(np.maximum(cash_share + dollar[:count] / price, 1e-300), gamma))

    size = count + cash
    starts = [np.full(size, 1 / size), *np.random.default_rng(1).dirichlet(np.ones(size), 4)]
    optima = [
        optimize.minimize(
            loss,
            start,
            method="SLSQP",
            bounds=[(1e-12, 1)] * size,
            constraints={"type": "eq", "fun": lambda dollar: dollar.sum() - 1},
            options={"ftol": 1e-15, "maxiter": 2000},
        )
        for start in starts
    ]
    best = min(optima, key=lambda result: result.fun)
    return -best.fun, best.x


BETS = [
    ([0.6, 0.4], [0.5, 0.55]),
    ([0.3, 0.7], [0.5, 0.45]),
    ([0.5, 0.3, 0.2], [0.4, 0.35, 0.3]),
    ([0.1, 0.2, 0.7], [0.3, 0.3, 0.45]),
    ([0.25, 0.25, 0.4, 0.1], [0.2, 0.15, 0.5, 0.2]),
    ([0.5, 0.5], [0.45, 0.5]),  # asks sum to less than a dollar
]


@pytest.mark.parametrize("gamma", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("cash", [False, True])
def test_stakes_are_the_best_a_solver_finds(gamma: float, cash: bool) -> None:
    for probabilities, price in BETS:
        chances, ask = np.array(probabilities), np.array(price)
        best, optimum = best_by_solver(chances, ask, gamma, cash)
        yes, _, cash_share = (cash_stakes if cash else stakes)(single(probabilities, price), gamma)
        mine = float(chances @ utility(cash_share[0] + yes / ask, gamma))
        assert mine >= best - 1e-9, probabilities
        assert mine == pytest.approx(best, abs=1e-6), probabilities
        assert yes == pytest.approx(optimum[: len(ask)], abs=5e-3), probabilities


def greedy(probabilities: list[float], price: list[float], gamma: float) -> tuple[Floats, float]:
    """The definition word by word: options in order of p/q, added while p/q > R."""
    p, q = np.array(probabilities), np.array(price)
    order, picks = np.argsort(-p / q), []
    rate = 1.0
    for k in order:
        if p[k] / q[k] <= rate * (1 + 1e-12):
            break
        picks.append(k)
        remaining_options = [j for j in range(len(p)) if j not in picks]
        rate = p[remaining_options].sum() / (1 - q[picks].sum()) if remaining_options else 0.0
    pull = (p[picks] / q[picks]) ** (1 / gamma)
    base = rate ** (1 / gamma)
    scale = (1 - q[picks].sum()) * base + (q[picks] * pull).sum()
    staked = np.zeros(len(p))
    staked[picks] = q[picks] * (pull - base) / scale
    return staked, base / scale


@given(st.data(), st.sampled_from([0.2, 0.5, 1.0]), st.integers(2, 12))
def test_what_is_worth_a_bet_is_found_in_any_order_of_options(data: st.DataObject, gamma: float, count: int) -> None:
    counts = data.draw(st.lists(st.integers(0, 30), min_size=count, max_size=count).filter(any))
    prices = data.draw(st.lists(st.integers(1, 60), min_size=count, max_size=count))
    overround = data.draw(st.sampled_from([0.9, 1.02, 1.3]))
    p, q = np.array(counts) / sum(counts), overround * np.array(prices) / sum(prices)
    assume(q.max() < 1)
    expected, cash_share = greedy(p.tolist(), q.tolist(), gamma)
    yes, no, cash = cash_stakes(single(p.tolist(), q.tolist()), gamma)
    assert yes == pytest.approx(expected, abs=1e-9)
    assert cash == pytest.approx([cash_share], abs=1e-9)
    assert not no.any()


def test_options_that_are_not_exclusive_are_markets_of_their_own() -> None:
    """Half a dollar each: YES at 0.4 believed 0.6, NO at 0.5 believed 0.7; 1/gamma = 2 by hand."""
    forecasts = panel(
        rows_of("ann", "q", [0.6, 0.3], [1.0, 0.0], odds=[0.4, 0.55], no_odds=[0.65, 0.5], exclusive=False)
    )
    yes, no, cash = stakes(forecasts, 0.5)
    first = np.array([0.6**2 / 0.4, 0.4**2 / 0.65])
    second = np.array([0.3**2 / 0.55, 0.7**2 / 0.5])
    assert yes == pytest.approx([first[0] / first.sum() / 2, second[0] / second.sum() / 2])
    assert no == pytest.approx([first[1] / first.sum() / 2, second[1] / second.sum() / 2])
    assert cash.tolist() == [0.0]
    assert average_return(forecasts, 0.5) == pytest.approx([yes[0] / 0.4 + no[1] / 0.5])
    assert average_return(forecasts, 0) == pytest.approx([0.5 / 0.4 + 0.5 / 0.5])
    staked, cash_share, _ = cash_stakes(forecasts, 1)
    kelly = (0.6 - 0.4) / 0.6, (0.7 - 0.5) / 0.5
    assert staked == pytest.approx([kelly[0] / 2, 0])
    assert cash_share == pytest.approx([0, kelly[1] / 2])
    wealth = 1 - kelly[0] + kelly[0] / 0.4, 1 - kelly[1] + kelly[1] / 0.5
    assert log_wealth(forecasts, 1) == pytest.approx([(np.log(wealth[0]) + np.log(wealth[1])) / 2])


def test_worked_example_of_the_source() -> None:
    """YES comes 6 times in 10 and costs 0.5: who says 0.45 is better by Brier, who says 0.9 by return."""
    outcomes = [[1, 0]] * 6 + [[0, 1]] * 4
    forecasts = from_arrays([[[0.45, 0.55]] * 10, [[0.9, 0.1]] * 10], outcomes, odds=[[0.5, 0.5]] * 10)
    assert forecasts.forecaster_means(average_return(forecasts)) == pytest.approx([0.8, 1.2])
    assert 1 - forecasts.forecaster_means(brier(forecasts)) == pytest.approx([0.7375, 0.67])


def test_all_goes_on_the_largest_edge_without_risk_aversion_and_by_belief_with_logarithmic() -> None:
    forecasts = single([0.5, 0.3, 0.2], [0.6, 0.2, 0.3])
    assert stakes(forecasts, 0).yes.tolist() == [0, 1, 0]
    assert stakes(forecasts, 1).yes == pytest.approx([0.5, 0.3, 0.2])


def test_ties_are_split_in_proportion_to_price() -> None:
    """Edges of 1.5 at prices 0.2 and 0.4; (0.1 + 0.2) / 0.2 is 1.5 but for rounding."""
    forecasts = single([0.1 + 0.2, 0.6, 0.1], [0.2, 0.4, 0.45], outcome=1)
    assert stakes(forecasts, 0).yes == pytest.approx([1 / 3, 2 / 3, 0])
    assert average_return(forecasts, 0) == pytest.approx([1 / 0.6])
    assert stakes(forecasts, 1e-6).yes == pytest.approx([1 / 3, 2 / 3, 0])
    assert log_wealth(forecasts, 0) == pytest.approx([np.log(1 / 0.6)])


decimals = st.integers(1, 99).map(lambda k: k / 100)


@st.composite
def bets(draw: st.DrawFn) -> Panel:
    count = draw(st.integers(2, 5))
    weights = draw(st.lists(st.integers(0, 20), min_size=count, max_size=count).filter(any))
    price = draw(st.lists(decimals, min_size=count, max_size=count))
    exclusive = draw(st.booleans())
    if exclusive:
        assume(0.8 < sum(price) < 1.6)
    outcome = draw(st.integers(0, count - 1))
    chances = [weight / sum(weights) for weight in weights]
    no_price = [min(0.99, 1.03 - ask) for ask in price]
    return panel(rows_of("ann", "q", chances, outcome, odds=price, no_odds=no_price, exclusive=exclusive))


@given(bets(), st.sampled_from([0.0, *GAMMAS]))
def test_a_dollar_is_a_dollar_and_pays_what_it_bought(forecasts: Panel, gamma: float) -> None:
    outcome = forecasts.outcome
    for staking in (stakes, cash_stakes):
        yes, no, cash = staking(forecasts, gamma)
        assert yes.sum() + no.sum() + cash[0] == pytest.approx(1)
        assert min(yes.min(), no.min(), cash[0]) >= 0
        gross = cash[0] + (yes * outcome / forecasts.odds + no * (1 - outcome) / forecasts.no_odds).sum()
        if staking is stakes:
            assert average_return(forecasts, gamma) == pytest.approx([gross])
        elif forecasts.exclusive[0]:
            assert np.exp(log_wealth(forecasts, gamma)) == pytest.approx([gross])


@given(bets())
def test_stakes_are_continuous_at_both_ends(forecasts: Panel) -> None:
    """At 0 as soon as risk aversion is small beside the gaps between edges; hundredths leave gaps above 1e-4."""
    for function in (average_return, log_wealth, certainty_equivalent):
        assert function(forecasts, 1e-9) == pytest.approx(function(forecasts, 0), abs=1e-6) or (
            function is log_wealth and (function(forecasts, 0) == -np.inf).all() and function(forecasts, 1e-9)[0] < -1e4
        )
        assert function(forecasts, 1 - 1e-9) == pytest.approx(function(forecasts, 1), abs=1e-6)
        middle = function(forecasts, 0.4)
        assert function(forecasts, 0.4 + 1e-9) == pytest.approx(middle, rel=1e-6, abs=1e-6)


def test_edges_of_price_and_belief_give_numbers() -> None:
    beliefs = ([1.0, 0.0], [0.5, 0.5], [1e-300, 1.0], [0.3, 0.7])
    prices = ([1e-6, 1 - 1e-6], [0.999, 0.999], [1e-300, 0.5], [0.5, 0.5])
    for case in product(beliefs, prices, (0, 1), (0.0, 1e-308, 1e-15, *GAMMAS)):
        probabilities, price, outcome, gamma = case
        forecasts = single(probabilities, price, outcome)
        for staking in (stakes, cash_stakes):
            yes, _, cash = staking(forecasts, gamma)
            assert yes.sum() + cash[0] == pytest.approx(1), case
        assert np.isfinite(average_return(forecasts, gamma)).all(), case
        assert not np.isnan(log_wealth(forecasts, gamma)).any(), case
        assert (certainty_equivalent(forecasts, gamma) >= 0).all(), case


def test_at_a_risk_aversion_of_a_thousandth_logarithms_hold_what_powers_can_not() -> None:
    """(0.9 / 0.1)^1000 is infinite in floating point; the loser is left with (R q / p)^1000 of the winner's wealth."""
    forecasts = single([0.9, 0.1], [0.1, 0.95], outcome=1)
    assert average_return(forecasts, 0.001).tolist() == [0.0]
    assert average_return(single([0.9, 0.1], [0.1, 0.95]), 0.001) == pytest.approx([10])
    rate = 0.1 / 0.9
    assert log_wealth(forecasts, 0.001) == pytest.approx([1000 * np.log(rate * 0.1 / 0.9) - np.log(0.1)])


@given(bets(), st.data(), st.sampled_from([0.0, 0.001, 0.3, 0.5, 1.0]))
def test_by_certainty_equivalent_nobody_expects_more_than_who_says_the_truth(
    forecasts: Panel, data: st.DataObject, gamma: float
) -> None:
    """Outcomes as likely as ann's truth: fractional outcomes give expected utilities."""
    truth = forecasts.probability
    forecast = np.array(data.draw(st.permutations(truth.tolist())))
    questions = replace(forecasts.questions, outcome=truth)
    honest = certainty_equivalent(replace(forecasts, questions=questions), gamma)
    hedged = certainty_equivalent(replace(forecasts, questions=questions, probability=forecast), gamma)
    assert honest[0] >= hedged[0] * (1 - 1e-9)
    assert honest[0] >= 1 - 1e-9  # cash can be kept


def test_by_the_plain_mean_of_a_whole_dollar_it_can_pay_to_exaggerate() -> None:
    """Truth 0.6 at a price of 0.5: at gamma = 1 who says 0.9 earns more on average."""
    forecasts = from_arrays([[[0.6, 0.4]], [[0.9, 0.1]]], [[0.6, 0.4]], odds=[[0.5, 0.5]])
    honest, bold = average_return(forecasts, 1)
    assert bold > honest
    honest, bold = log_wealth(forecasts, 1)
    assert honest > bold


def test_without_an_edge_all_is_kept() -> None:
    forecasts = single([0.5, 0.5], [0.52, 0.52])
    for gamma in (0.0, *GAMMAS):
        yes, _, cash = cash_stakes(forecasts, gamma)
        assert (yes.tolist(), cash.tolist()) == ([0, 0], [1])
        assert log_wealth(forecasts, gamma).tolist() == [0]
        assert certainty_equivalent(forecasts, gamma).tolist() == [1]
    assert average_return(forecasts, 1) == pytest.approx([0.5 / 0.52])  # the whole dollar pays the overround


def test_asks_below_a_dollar_are_bought_whole() -> None:
    forecasts = single([0.5, 0.5], [0.4, 0.4])
    for gamma in (0.0, *GAMMAS):
        assert cash_stakes(forecasts, gamma).cash == pytest.approx([0])
        assert np.exp(log_wealth(forecasts, gamma)) == pytest.approx([1.25])


def test_where_asks_sum_to_a_dollar_cash_is_worth_as_much_as_the_last_option() -> None:
    price, chances = [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]
    for gamma in GAMMAS:
        for outcome in range(3):
            forecasts = single(chances, price, outcome)
            with_cash = np.exp(log_wealth(forecasts, gamma))
            assert with_cash == pytest.approx(average_return(forecasts, gamma), rel=1e-6)


def test_ruin_is_infinite_counted_and_survived_by_certainty_equivalents_below_1() -> None:
    forecasts = panel(
        rows_of("ann", "q", [1.0, 0.0], 1, odds=[0.5, 0.55])
        + rows_of("ann", "r", [0.6, 0.4], 0, odds=[0.5, 0.55])
        + rows_of("bob", "q", [0.6, 0.4], 1, odds=[0.5, 0.55])
    )
    assert log_wealth(forecasts, 1).tolist() == [-np.inf, pytest.approx(np.log(0.8)), pytest.approx(np.log(1.2))]
    assert ruins(forecasts, 1).tolist() == [1, 0]
    assert ruins(forecasts, 0).tolist() == [1, 1]
    assert certainty_equivalent(forecasts, 1).tolist() == [0.0, pytest.approx(0.8)]
    assert certainty_equivalent(forecasts, 0)[0] == pytest.approx((0 + 2) / 2)
    half = cash_stakes(forecasts, 0.5)
    wealth = half.cash[2] + half.yes[4] / 0.5
    assert certainty_equivalent(forecasts, 0.5)[0] == pytest.approx(wealth / 4)  # ((0 + sqrt W) / 2)^2


def test_beliefs_are_shares_of_their_sum() -> None:
    for gamma in (0.3, 1.0):
        for staking in (stakes, cash_stakes):
            half, full_stakes = (
                staking(single([0.3, 0.2], [0.5, 0.55]), gamma),
                staking(single([0.6, 0.4], [0.5, 0.55]), gamma),
            )
            assert half.yes == pytest.approx(full_stakes.yes)
            assert half.cash == pytest.approx(full_stakes.cash)


def test_a_vector_of_zeros_has_no_stakes_and_keeps_its_cash() -> None:
    forecasts = single([0.0, 0.0], [0.5, 0.5])
    for gamma in (0.0, *GAMMAS):
        assert stakes(forecasts, gamma).yes.tolist() == [0, 0]
        assert np.isnan(average_return(forecasts, gamma)).all()
        assert cash_stakes(forecasts, gamma).cash.tolist() == [1]
        assert log_wealth(forecasts, gamma).tolist() == [0]


@pytest.mark.parametrize("outcome", [[0.0, 0.0], [1.0, 1.0]])
def test_where_none_or_several_exclusive_options_happened_nothing_is_paid(outcome: list[float]) -> None:
    forecasts = panel(rows_of("ann", "q", [0.6, 0.4], outcome, odds=[0.5, 0.55]))
    for function in (average_return, log_wealth, certainty_equivalent):
        assert np.isnan(function(forecasts, 0.5)).all()


def test_forecasts_without_prices_are_left_out() -> None:
    nan = float("nan")
    forecasts = panel(
        rows_of("ann", "none", [0.6, 0.4], 0)
        + rows_of("ann", "whole", [0.6, 0.4], 0, odds=[0.5, 0.5])
        + rows_of("ann", "half", [0.6, 0.4], 0, odds=[0.5, nan])
        + rows_of("ann", "yes only", [0.6], [1], odds=[0.5], exclusive=False)
        + rows_of("bob", "half", [0.5, 0.5], 0)
    )
    forecasts = replace(forecasts, no_odds=np.where(np.arange(9) == 8, nan, forecasts.no_odds))
    assert forecasts.questions.names[forecasts.question[-1]] == "yes only"
    for values in (average_return(forecasts, 1), log_wealth(forecasts, 1), cash_stakes(forecasts, 1).cash):
        assert (~np.isnan(values)).nonzero()[0].tolist() == [1]
    assert forecasts.forecaster_means(average_return(forecasts, 1)) == pytest.approx([1.2, nan], nan_ok=True)
    assert np.isnan(certainty_equivalent(forecasts, 1)).tolist() == [False, True]
    assert ruins(forecasts, 0).tolist() == [0, 0]
    yes, no, _ = stakes(forecasts, 1)
    for staked in (yes, no):
        assert (~np.isnan(staked)).nonzero()[0].tolist() == [2, 3]


def test_running_means_are_in_order_of_closing() -> None:
    forecasts = panel(
        rows_of("ann", "q", [0.5, 0.5], 0, closed_at=30.0, weight=3.0)
        + rows_of("ann", "r", [0.5, 0.5], 0, closed_at=10.0)
        + rows_of("bob", "s", [0.5, 0.5], 0, closed_at=20.0)
        + rows_of("bob", "t", [0.5, 0.5], 0)
        + rows_of("ann", "u", [0.5, 0.5], 0, closed_at=15.0)
    )
    values = np.array([4.0, 2.0, 5.0, 7.0, np.nan])  # q, r, s, t, u: nobody has a value on u
    stream = return_stream(forecasts, values, 1)
    assert stream.questions.tolist() == [1, 2, 3, 4]
    assert stream.closed_at[:3].tolist() == [10, 20, 30]
    assert np.isnan(stream.closed_at[3])
    assert stream.means[0].tolist() == [2, 2, (3 * 4 + 2) / 4, (3 * 4 + 2) / 4]
    assert np.isnan(stream.means[1, 0])
    assert stream.means[1, 1:].tolist() == [5, 5, 6]
    assert return_stream(forecasts, values, 3).questions.tolist() == [3, 4]
    assert return_stream(forecasts, values, 100).means.tolist() == [[3.5], [6.0]]


def test_the_end_of_the_stream_is_the_mean() -> None:
    panel = synthetic(4, 55, seed=12, weighted=True, priced=0.8).panel
    values = average_return(panel, 0.5)
    assert return_stream(panel, values, 10).means[:, -1] == pytest.approx(panel.forecaster_means(values))
