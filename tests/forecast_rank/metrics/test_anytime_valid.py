"""E-processes: fair bets by enumeration of all paths, errors under daily looks, and a slow second computation."""

from itertools import product

import numpy as np
import pytest

from forecast_rank.metrics.anytime_valid import BETS, anytime_p, confidence_sequence, e_process
from forecast_rank.metrics.panel import from_arrays
from forecast_rank.metrics.proper_scores import brier
from forecast_rank.metrics.returns import average_return, return_stream
from forecast_rank.metrics.running_intervals import running_intervals
from forecast_rank.metrics.sequential_leaderboard import sequential_leaderboard
from forecast_rank.metrics.uncertainty import cluster_se, event_sums
from forecast_rank.simulated_worlds import World, simulate
from tests.forecast_rank.panels import EMPTY, synthetic
from tests.lazy_modules import stats


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


# --- Running intervals are those of the panel of the questions that had closed by then


def test_each_column_is_the_interval_of_the_questions_so_far() -> None:
    panel = synthetic(4, 60, seed=5, event_size=3).panel
    values = average_return(panel, 1)
    ends, stream = running_intervals(panel, values, step=7, level=0.9), return_stream(panel, values, step=7)
    assert ends.shape == (*stream.means.shape, 2)
    order = np.argsort(panel.questions.closed_at, kind="stable")
    for column, count in enumerate(stream.questions):
        rows_so_far = np.isin(panel.question, order[:count])
        sums = event_sums(panel.take(rows_so_far), values[rows_so_far])
        away = stats.t.ppf(0.95, np.maximum(sums.events - 1, 1)) * cluster_se(sums)
        assert ends[:, column, 0] == pytest.approx(stream.means[:, column] - away, nan_ok=True)
        assert ends[:, column, 1] == pytest.approx(stream.means[:, column] + away, nan_ok=True)


def test_nothing_has_no_intervals_and_bad_arguments_are_named() -> None:
    assert running_intervals(EMPTY, np.zeros(0)).shape == (0, 0, 2)
    with pytest.raises(ValueError, match="step: at least 1"):
        running_intervals(EMPTY, np.zeros(0), step=0)
    with pytest.raises(ValueError, match="least_events: at least 2"):
        running_intervals(EMPTY, np.zeros(0), least_events=1)
    with pytest.raises(ValueError, match="level: between 0 and 1"):
        running_intervals(EMPTY, np.zeros(0), level=1)


# --- The leaderboard through time: who leads, since when it is sure, and seldom a wrong claim among equals


def test_leader_and_evidence_follow_the_events_in_order_of_closing() -> None:
    # The events close in the order b, a, c; ann is perfect but for event b.
    ann, bob = [0.9, 0.2, 0.9], [0.5, 0.6, 0.5]
    panel = from_arrays(
        [[[p] for p in ann], [[p] for p in bob]], [[1]] * 3, exclusive=False, event=["a", "b", "c"],
        closed_at=[20, 10, 30],
    )  # fmt: skip
    board = sequential_leaderboard(panel, brier(panel))
    assert board.closed_at.tolist() == [10, 20, 30]
    assert board.leader.tolist() == [-1, 1, 1], "means: ann .64, .325, .22; bob .16, .205, .22"
    differences = np.array([0.16 - 0.64, 0.25 - 0.01, 0.25 - 0.01])
    assert board.e_value[1:] == pytest.approx(e_process(-differences)[1:])
    assert board.threshold == pytest.approx(2 / 0.05)
    assert board.since.tolist() == [-1, -1]


def test_a_clear_leader_is_sure_once_and_from_then_on() -> None:
    panel = simulate(World(errors=(0.1, 2.5), event_size=3, surprise=0.0), forecasters=3, events=1500, seed=3).panel
    board = sequential_leaderboard(panel, brier(panel))
    assert board.leader[-1] == 0
    assert 0 < board.since[0] < 1499
    assert (board.e_value[1 : board.since[0]] < board.threshold).all()


def test_equals_seldom_have_a_sure_leader() -> None:
    claims = 0
    for seed in range(40):
        panel = simulate("equal", forecasters=4, events=60, seed=seed).panel
        claims += (sequential_leaderboard(panel, brier(panel)).since >= 0).any()
    assert claims <= 2


def test_forecasters_without_common_questions_are_never_told_apart() -> None:
    vectors = np.full((2, 40, 1), np.nan)
    vectors[0, :20], vectors[1, 20:] = 0.9, 0.1
    panel = from_arrays(vectors, [[1]] * 40, exclusive=False, closed_at=range(40))
    board = sequential_leaderboard(panel, brier(panel))
    assert board.e_value[1:] == pytest.approx(np.ones(39))
    assert board.since.tolist() == [-1, -1]


def test_an_empty_panel_has_no_leader() -> None:
    assert len(sequential_leaderboard(EMPTY, brier(EMPTY)).leader) == 0
