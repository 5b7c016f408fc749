"""Profits of risk-free portfolios against stated probabilities, one contract of each, and a sentence on them.

A contract on an option costs its stated probability and pays 1 if the option happens. The best risk-free portfolio that
buys or sells at most one of each gains max over s in [−1, 1]ⁿ of the least Σ s_i (x_i − p_i) over all possible
outcomes x. By the duality of linear programmes that is the least Σ |p_i − q_i| over coherent probabilities q: 0 exactly
if the stated ones are coherent (de Finetti 1937; arXiv 2412.18544 measures inconsistency by arbitrage). For exclusive
options and for nested thresholds the programme has the closed forms below.
"""

from bisect import insort
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import Any

Statements = Sequence[float]
"""Probabilities that one forecaster stated for the same option, in different questions."""


def exclusive_profit(options: Sequence[Statements], *, complete: bool) -> float:
    """The profit, in dollars, where at most one option happens; exactly one if the list is `complete`.

    Each option starts at a median of its statements. Where these do not sum to 1, the sum is brought there over the
    cheapest statements first: a step beyond k of m statements costs 2k − m per unit.
    """
    profit, low, high = 0.0, 0.0, 0.0
    for statements in options:
        ordered = sorted(statements)
        lower, upper = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
        low, high = low + lower, high + upper
        profit += sum(abs(value - upper) for value in ordered)
    if low > 1:
        return profit + _cheapest_way(low - 1, list(map(_steps_down, options)))
    if complete and high < 1:
        return profit + _cheapest_way(1 - high, list(map(_steps_up, options)))
    return profit


def nested_profit(chain: Sequence[Statements]) -> float:
    """The profit, in dollars, where each option implies the one before it: least-absolute-error isotonic regression.

    Of two single statements it is max(0, narrower − wider).
    """
    candidates = sorted(set().union(*chain))
    best = [0.0] * len(candidates)
    for statements in chain:
        costs = []
        for candidate in candidates:
            costs.append(sum(abs(value - candidate) for value in statements))
        # The wider options before stand at this candidate or above it.
        least = inf
        for place in range(len(candidates) - 1, -1, -1):
            least = min(least, best[place])
            best[place] = least + costs[place]
    return min(best, default=0.0)


def repeated_profit(statements: Statements) -> float:
    """The profit, in dollars, from one option for which different probabilities were stated."""
    ordered = sorted(statements)
    return sum(abs(value - ordered[len(ordered) // 2]) for value in ordered)


Steps = Sequence[tuple[float, float]]
"""Cost per unit, and length, of each part of the way."""


def _steps_up(statements: Statements) -> Steps:
    ordered, count = sorted(statements), len(statements)
    steps = []
    for place in range(count // 2, count):
        end = ordered[place + 1] if place + 1 < count else inf
        steps.append((float(2 * (place + 1) - count), end - ordered[place]))
    return steps


def _steps_down(statements: Statements) -> Steps:
    steps = []
    for cost, length in _steps_up([-value for value in statements]):
        steps.append((cost, min(statements) if length == inf else length))
    return steps


def _cheapest_way(distance: float, ways: Sequence[Steps]) -> float:
    steps: list[tuple[float, float]] = []
    for way in ways:
        for step in way:
            insort(steps, step)
    profit = 0.0
    for cost, length in steps:
        part = min(distance, length)
        profit, distance = profit + cost * part, distance - part
    return profit


def sum_profit(probabilities: Statements) -> float:
    """The profit, in dollars, from exclusive and complete options alone: the distance of their sum from 1."""
    return abs(sum(probabilities) - 1)


def pair_profits(chain: Sequence[Statements]) -> list[float]:
    """For each two neighbours in a chain the profit from that pair alone, by the first statement of each."""
    return [max(0.0, narrower[0] - wider[0]) for wider, narrower in pairwise(chain)]


KINDS = {"sums": "Sums", "exclusions": "At most one", "repeats": "Twice", "thresholds": "Thresholds"}
"""The relations by name, as headings."""


def consistency_sentence(figures: Mapping[str, Any], condition: str) -> str:
    """The profits and their relation to the Brier score in words; empty without forecasts."""
    profits = [row["profit"] for row in figures["rows"]]
    if not profits:
        return ""
    span = f"{_dollars(min(profits))} to {_dollars(max(profits))}"
    lead = f"A risk-free portfolio gains {span} a question from a model’s forecasts {condition}"
    spearman = figures["spearman"]
    if spearman["interval"] is None:
        return f"{lead}; no relation to the Brier score can be told yet."
    low, high = spearman["interval"]
    basis = f"Spearman {_signed(spearman['value'])} over {spearman['models']} models, 95 % interval"
    basis = f"{basis} {_signed(low)} to {_signed(high)}"
    if low <= 0 <= high:
        return f"{lead}; no relation to the Brier score is shown ({basis})."
    relation = "lower" if spearman["value"] > 0 else "higher"
    return f"{lead}; more consistent models have {relation} Brier scores ({basis})."


def _dollars(value: float) -> str:
    return f"${value:.4f}" if value == 0 or value >= 0.0001 else "less than $0.0001"


def _signed(value: float) -> str:
    return f"{'−' if value < 0 else '+'}{abs(value):.2f}"
