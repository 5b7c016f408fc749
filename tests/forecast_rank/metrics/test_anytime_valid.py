"""E-processes: fair bets by enumeration of all paths, errors under daily looks, and a slow second computation."""

from itertools import product

import numpy as np
import pytest

from forecast_rank.metrics.anytime_valid import BETS, anytime_p, confidence_sequence, e_process


def slow(differences: list[float], bound: float) -> float:
    """The capital after all differences, step by step and bet by bet."""
    capitals = []
    for bet in BETS:
        size, spread, total = bet / (2 * bound), 0.0, 0.0
        for k, value in enumerate(differences):
            foreseen = sum(differences[:k]) / k if k else 0.0
            spread += (value - foreseen) ** 2
            total += value
        charge = (-np.log(1 - 2 * bound * size) - 2 * bound * size) / (2 * bound) ** 2
        capitals.append(np.exp(size * total - charge * spread))
    return float(np.mean(capitals))


@pytest.mark.parametrize("bound", [0.5, 1.0])
def test_capital_equals_a_second_computation(bound: float) -> None:
    differences = (np.random.default_rng(3).uniform(-0.4, 0.5, 25)).tolist()
    expected = [slow(differences[:t], bound) for t in range(1, 26)]
    assert e_process(differences, bound) == pytest.approx(expected)


@pytest.mark.parametrize(("high", "low", "chance"), [(1.0, -1.0, 0.5), (1.0, -0.25, 0.2), (0.1, -0.9, 0.9)])
def test_no_bet_gains_in_expectation_where_nobody_is_better(high: float, low: float, chance: float) -> None:
    """Over all paths of eight differences with the expectation 0, weighted by their probability."""
    paths = np.array(list(product([1, 0], repeat=8)))
    weights = np.prod(np.where(paths, chance, 1 - chance), axis=1)
    capital = np.array([e_process(np.where(path, high, low)) for path in paths])
    assert weights.sum() == pytest.approx(1)
    assert (weights @ capital <= 1 + 1e-12).all()


def test_daily_looks_seldom_err() -> None:
    """A t test at 5 % that is repeated at every step would err in most of these worlds."""
    generator = np.random.default_rng(11)
    worlds = generator.normal(0, 0.25, (400, 300)).clip(-1, 1)
    assert np.mean([anytime_p(world)[-1] <= 0.05 for world in worlds]) <= 0.05
    ends = [confidence_sequence(world[:100]) for world in worlds[:40]]
    assert sum(((low > 0) | (high < 0)).any() for _, low, high in ends) <= 2


def test_a_true_difference_is_found() -> None:
    generator = np.random.default_rng(12)
    worlds = generator.normal(0.06, 0.2, (100, 500)).clip(-1, 1)
    assert np.mean([anytime_p(world)[-1] <= 0.05 for world in worlds]) > 0.9


def test_interval_ends_where_the_e_process_of_the_shifted_differences_reaches_the_level() -> None:
    differences = np.random.default_rng(7).uniform(-0.3, 0.5, 60)
    mean, low, high = confidence_sequence(differences, level=0.9)
    assert mean[-1] == pytest.approx(differences.mean())
    spread = np.sum((differences - np.concatenate([[0], np.cumsum(differences)[:-1] / np.arange(1, 60)])) ** 2)
    charge = (-np.log1p(-BETS) - BETS) / 4
    for distance in (mean[-1] - low[-1], high[-1] - mean[-1]):
        assert np.exp(BETS / 2 * 60 * distance - charge * spread).mean() == pytest.approx(20)


def test_differences_beyond_the_bound_are_refused() -> None:
    with pytest.raises(ValueError, match=r"none beyond 0\.5"):
        e_process([0.6], bound=0.5)
    with pytest.raises(ValueError, match="bound: above 0, not 0"):
        e_process([0.0], bound=0)
    assert len(e_process([])) == 0
