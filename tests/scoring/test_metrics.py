"""Scores and intervals against values worked out by hand and against SciPy."""

import numpy as np
import pytest
from scipy import stats

from scoring.metrics.brier import brier_score, skill_score
from scoring.metrics.intervals import cluster_interval, rank_ranges, t_interval


@pytest.mark.parametrize(
    ("confidence", "won", "score"),
    [(1.0, 1, 0.0), (1.0, 0, 1.0), (0.5, 1, 0.25), (0.5, 0, 0.25), (0.0, 0, 0.0), (0.25, 1, 0.5625), (0.75, 0, 0.5625)],
)
def test_brier_score_of_one_forecast(confidence: float, won: int, score: float) -> None:
    assert brier_score([confidence], [won]).tolist() == [score]


def test_side_form_and_yes_form_of_the_bet_implied_brier_are_the_same_number() -> None:
    confidence, bought_yes, yes_happened = np.meshgrid([0.08, 0.5, 1.0], [0, 1], [0, 1])
    yes_form = brier_score(np.where(bought_yes, confidence, 1 - confidence), yes_happened)
    assert brier_score(confidence, bought_yes == yes_happened) == pytest.approx(yes_form)


@pytest.mark.parametrize(("score", "reference", "skill"), [(0.125, 0.25, 0.5), (0.25, 0.25, 0.0), (0.5, 0.25, -1.0)])
def test_skill_is_one_less_the_ratio(score: float, reference: float, skill: float) -> None:
    assert skill_score(score, reference) == skill


def test_skill_against_a_perfect_reference_is_undefined() -> None:
    assert skill_score(0.1, 0.0) is None


def test_t_interval_by_hand() -> None:
    """Mean 2 and s = 2 of (0, 2, 4); SE = 2/sqrt(3); t(0.975, 2) = 4.302653."""
    mean, error, interval = t_interval([0.0, 2.0, 4.0])
    assert (mean, error) == (2.0, pytest.approx(2 / 3**0.5))
    assert interval == pytest.approx((2 - 4.302653 * 2 / 3**0.5, 2 + 4.302653 * 2 / 3**0.5), abs=1e-5)


def test_t_interval_is_scipys() -> None:
    sample = np.random.default_rng(1).normal(3, 2, 12)
    expected = stats.t.interval(0.95, 11, loc=sample.mean(), scale=stats.sem(sample))
    assert t_interval(sample).interval == pytest.approx(expected)


def test_one_value_has_a_mean_and_no_interval_and_none_has_nothing() -> None:
    assert t_interval([7.0]) == (7.0, None, None)
    with pytest.raises(ValueError, match="mean of nothing"):
        t_interval([])


def test_cluster_interval_is_the_same_every_time_and_another_for_another_seed() -> None:
    values, clusters = np.random.default_rng(2).random(60), np.arange(60) // 3
    assert cluster_interval(values, clusters) == cluster_interval(values, clusters)
    assert cluster_interval(values, clusters) != cluster_interval(values, clusters, seed=1)


def test_cluster_interval_does_not_depend_on_what_clusters_are_called() -> None:
    values = [0.0, 0.2, 1.0, 0.4]
    assert cluster_interval(values, ["b", "b", "a", "c"]) == pytest.approx(
        cluster_interval(values, ["y", "y", "x", "z"])
    )


def test_values_of_one_event_are_drawn_together_so_that_copies_add_no_certainty() -> None:
    values, events = np.random.default_rng(3).random(20), np.arange(20)
    once = cluster_interval(values, events)
    assert cluster_interval(np.repeat(values, 10), np.repeat(events, 10)) == pytest.approx(once)
    low, high = cluster_interval(np.repeat(values, 10), np.arange(200)) or (0, 0)
    assert high - low < 0.6 * (once[1] - once[0])  # type: ignore[index]


def test_cluster_interval_comes_near_the_normal_one_for_many_events() -> None:
    values = np.random.default_rng(4).normal(0, 1, 400)
    low, high = cluster_interval(values, np.arange(400), resamples=4000) or (0, 0)
    assert (low, high) == pytest.approx((values.mean() - 1.96 / 20, values.mean() + 1.96 / 20), abs=0.015)


def test_one_event_says_nothing_about_spread() -> None:
    assert cluster_interval([0.1, 0.9], ["same", "same"]) is None


def test_whoever_wins_every_round_holds_the_first_rank_surely() -> None:
    returns = np.array([[10.0, 12, 11, 13], [1, 2, 0, 1], [-5, -6, -4, -5]])
    assert rank_ranges(returns) == [(1, 1), (2, 2), (3, 3)]


def test_those_who_swap_places_share_a_range_of_ranks() -> None:
    returns = np.array([[5.0, -5, 5, -5], [-5, 5, -5, 5], [-50, -50, -50, -50]])
    assert rank_ranges(returns) == [(1, 2), (1, 2), (3, 3)]


def test_one_round_leaves_every_rank_open() -> None:
    assert rank_ranges(np.array([[1.0], [2.0]])) == [(1, 2), (1, 2)]


def test_round_sat_out_is_not_a_return_of_zero() -> None:
    sat_out = [-10.0] * 4 + [np.nan] * 4
    assert rank_ranges(np.array([sat_out, [-6.0] * 8])) == [(2, 2), (1, 1)]
