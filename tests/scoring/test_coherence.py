"""Profits of risk-free portfolios: values worked out by hand, and those of the linear programme that they solve."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from scoring.selectors.coherence import exclusive_profit, nested_profit, pair_profits, repeated_profit, sum_profit

probabilities = st.integers(0, 100).map(lambda percent: percent / 100)
options = st.lists(st.lists(probabilities, min_size=1, max_size=3), min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("probabilities", "complete", "profit"),
    [
        ([[0.5], [0.3], [0.2]], True, 0.0),
        ([[0.6], [0.6]], True, 0.2),  # sell both: 1.20 in, at most 1 out
        ([[0.3], [0.3]], True, 0.4),  # buy both: 0.60 paid, 1 back
        ([[0.3], [0.3]], False, 0.0),  # nothing else is known
        ([[0.6], [0.6]], False, 0.2),
        ([[0.7, 0.5], [0.4]], True, 0.2),  # one option twice: 0.2, and with 0.6 for it the sum is 1
        ([[0.9, 0.9], [0.4]], True, 0.3),  # the single statement gives way, not the two
    ],
)
def test_profit_of_exclusive_options(probabilities: list[list[float]], complete: bool, profit: float) -> None:
    assert exclusive_profit(probabilities, complete=complete) == pytest.approx(profit)


@pytest.mark.parametrize(
    ("chain", "profit"),
    [
        ([[0.6], [0.4]], 0.0),
        ([[0.4], [0.6]], 0.2),  # above 110 at 0.6, above 100 at 0.4
        ([[0.5], [0.7], [0.6]], 0.2),  # all at 0.6, or the first at 0.6 and the second too
        ([[0.4, 0.5], [0.6]], 0.2),
    ],
)
def test_profit_of_nested_thresholds(chain: list[list[float]], profit: float) -> None:
    assert nested_profit(chain) == pytest.approx(profit)


def test_profits_of_single_relations() -> None:
    assert sum_profit([0.6, 0.3]) == pytest.approx(0.1)
    assert repeated_profit([0.6, 0.4]) == pytest.approx(0.2)
    assert pair_profits([[0.6], [0.7], [0.2]]) == pytest.approx([0.1, 0.0])


def best_portfolio(worlds: list[list[float]], probabilities: list[float]) -> float:
    """The best least profit over these outcomes with at most one contract of each, by linear programming."""
    count = len(probabilities)
    rows = [[*(price - paid for price, paid in zip(probabilities, world, strict=True)), 1.0] for world in worlds]
    bounds = [(-1, 1)] * count + [(None, None)]
    return -float(linprog([0.0] * count + [-1.0], A_ub=rows, b_ub=[0.0] * len(rows), bounds=bounds).fun)


@given(options, st.booleans())
def test_exclusive_profit_is_that_of_the_linear_programme(probabilities: list[list[float]], complete: bool) -> None:
    flat = [value for statements in probabilities for value in statements]
    owners = [place for place, statements in enumerate(probabilities) for _ in statements]
    winners = range(len(probabilities) + (not complete))
    worlds = [[float(owner == winner) for owner in owners] for winner in winners]
    assert exclusive_profit(probabilities, complete=complete) == pytest.approx(best_portfolio(worlds, flat), abs=1e-7)


@given(options)
def test_nested_profit_is_that_of_the_linear_programme(probabilities: list[list[float]]) -> None:
    flat = [value for statements in probabilities for value in statements]
    owners = [place for place, statements in enumerate(probabilities) for _ in statements]
    worlds = [[float(owner < threshold) for owner in owners] for threshold in range(len(probabilities) + 1)]
    assert nested_profit(probabilities) == pytest.approx(best_portfolio(worlds, flat), abs=1e-7)
