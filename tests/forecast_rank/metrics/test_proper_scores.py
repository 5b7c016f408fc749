"""Proper scores: values by hand, other people's implementations, and what makes them proper."""

from collections.abc import Callable

import numpy as np
import pytest
import scoringrules
from hypothesis import assume, given
from hypothesis import strategies as st

from forecast_rank.metrics.brier import brier_score, skill_score
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel, from_arrays
from forecast_rank.metrics.proper_scores import (
    accuracy,
    brier,
    brier_sum,
    by_category,
    infinite_losses,
    log_score,
    settled,
    spherical,
)
from tests.forecast_rank.panels import panel, rows_of, synthetic
from tests.lazy_modules import sklearn_metrics

Score = Callable[[Panel], Floats]
LN = np.log
SCORES: list[Score] = [brier, brier_sum, log_score, spherical, accuracy]
HIGHER: list[Score] = [log_score, spherical]


def one(score: Score, probabilities: list[float], outcome: int | list[float], exclusive: bool = True) -> float:
    return float(score(panel(rows_of("ann", "q", probabilities, outcome, exclusive=exclusive)))[0])


@pytest.mark.parametrize(
    ("probabilities", "outcome", "mean", "total", "log", "sphere", "right"),
    [
        ([1.0, 0.0], 0, 0, 0, 0, 1, 1),
        ([0.5, 0.5], 1, 0.25, 0.5, LN(0.5), 0.5**0.5, 0.5),
        ([0.8, 0.2], 1, 0.64, 1.28, LN(0.2), 0.2 / 0.68**0.5, 0),
        ([0.5, 0.25, 0.25], 1, (0.25 + 0.5625 + 0.0625) / 3, 0.875, LN(0.25), 0.25 / 0.375**0.5, 0),
        ([0.25] * 4, 2, (3 * 0.0625 + 0.5625) / 4, 0.75, LN(0.25), 0.5, 0.25),
        ([0.4, 0.4, 0.2], 0, (0.36 + 0.16 + 0.04) / 3, 0.56, LN(0.4), 0.4 / 0.6, 0.5),
    ],
)
def test_scores_by_hand(
    probabilities: list[float], outcome: int, mean: float, total: float, log: float, sphere: float, right: float
) -> None:
    values = [one(score, probabilities, outcome) for score in SCORES]
    assert values == pytest.approx([mean, total, log, sphere, right])


def test_options_that_are_not_exclusive_are_two_way_questions_averaged() -> None:
    """0.8 came, 0.3 did not, 0.5 came."""
    values = [one(score, [0.8, 0.3, 0.5], [1, 0, 1], exclusive=False) for score in SCORES]
    squares = [0.04, 0.09, 0.25]
    sphere = [0.8 / 0.68**0.5, 0.7 / 0.58**0.5, 0.5**0.5]
    expected = [sum(squares) / 3, 2 * sum(squares) / 3, (LN(0.8) + LN(0.7) + LN(0.5)) / 3, sum(sphere) / 3, 2.5 / 3]
    assert values == pytest.approx(expected)


vectors = (
    st.lists(st.integers(0, 50), min_size=2, max_size=6)
    .filter(any)
    .map(lambda vector: [x / sum(vector) for x in vector])
)


def expected_scores(score: Score, truth: Floats, forecast: Floats) -> tuple[float, float]:
    """What an honest forecaster and another expect of `score` if options happen by the truth, one of them each time."""
    count = len(truth)
    every = from_arrays([[list(truth)] * count, [list(forecast)] * count], np.eye(count))
    sums = np.bincount(every.forecaster, score(every) * truth[every.question])
    return float(sums[0]), float(sums[1])


@given(vectors, st.data())
def test_nobody_expects_more_than_who_says_the_truth(truth: list[float], data: st.DataObject) -> None:
    forecast = data.draw(st.permutations(truth) | vectors.filter(lambda vector: len(vector) == len(truth)))
    for score in [brier, brier_sum, *HIGHER]:
        sign = 1 if score in HIGHER else -1
        honest, hedged = expected_scores(score, np.array(truth), np.array(forecast))
        assert sign * honest >= sign * hedged - 1e-12
        if max(abs(a - b) for a, b in zip(truth, forecast, strict=True)) > 1e-3:
            assert sign * honest > sign * hedged


@given(st.integers(0, 100), st.integers(0, 100))
def test_nobody_expects_more_than_who_says_the_truth_of_options_that_are_not_exclusive(
    truth: int, forecast: int
) -> None:
    assume(truth != forecast)
    probabilities = [[[truth / 100]] * 2, [[forecast / 100]] * 2]
    both_directions = from_arrays(probabilities, [[1], [0]], exclusive=False)
    chances = np.array([truth / 100, 1 - truth / 100])[both_directions.question]
    for score, sign in ((brier, -1), (brier_sum, -1), (log_score, 1), (spherical, 1)):
        honest, hedged = np.bincount(both_directions.forecaster, sign * score(both_directions) * chances)
        assert honest > hedged


def test_a_fractional_outcome_is_the_expected_score_but_for_brier_whose_target_it_is() -> None:
    probabilities, shares = [0.5, 0.3, 0.2], [0.6, 0.3, 0.1]
    for score in (log_score, spherical, accuracy):
        expected = sum(share * one(score, probabilities, k) for k, share in enumerate(shares))
        assert one(score, probabilities, shares) == pytest.approx(expected)
    assert one(brier, probabilities, shares) == pytest.approx((0.01 + 0 + 0.01) / 3)
    assert one(brier, [0.7], [0.4], exclusive=False) == pytest.approx(0.09)
    assert one(log_score, [0.7], [0.4], exclusive=False) == pytest.approx(0.4 * LN(0.7) + 0.6 * LN(0.3))


def test_scores_are_those_of_scikit_learn_and_scoringrules() -> None:
    panel = synthetic(1, 400, seed=3, missing=0, options=(0, 0, 1)).panel
    probabilities, outcome = panel.probability.reshape(-1, 4), panel.outcome.reshape(-1, 4)
    won = outcome.argmax(axis=1)
    assert log_score(panel).mean() == pytest.approx(-sklearn_metrics.log_loss(won, probabilities, labels=range(4)))
    assert accuracy(panel).mean() == pytest.approx(
        sklearn_metrics.top_k_accuracy_score(won, probabilities, k=1, labels=range(4))
    )
    assert brier_sum(panel).mean() == pytest.approx(
        sklearn_metrics.brier_score_loss(won, probabilities, labels=range(4), scale_by_half=False)
    )
    assert brier(panel) == pytest.approx(scoringrules.brier_score(outcome, probabilities).mean(axis=1))
    binary = synthetic(1, 400, seed=4, missing=0, options=(1,)).panel
    assert brier(binary).mean() == pytest.approx(
        sklearn_metrics.brier_score_loss(binary.outcome[::2], binary.probability[::2])
    )
    assert -log_score(binary) == pytest.approx(scoringrules.log_score(binary.outcome[::2], binary.probability[::2]))


def test_certain_and_wrong_is_clipped_counted_and_infinite_without_clip() -> None:
    forecasts = panel(
        rows_of("ann", "q", [1.0, 0.0], 1)
        + rows_of("ann", "r", [0.0, 1.0], 1)
        + rows_of("bob", "q", [0.5, 0.5], 1)
        + rows_of("bob", "s", [0.0, 1.0, 0.2], [1, 0, 0], exclusive=False)
    )
    assert log_score(forecasts)[:2] == pytest.approx([LN(1e-6), LN(0.5)])
    assert log_score(forecasts, clip=0.01)[0] == pytest.approx(LN(0.01))
    assert log_score(forecasts, clip=0).tolist() == [-np.inf, pytest.approx(LN(0.5)), 0.0, -np.inf]
    assert infinite_losses(forecasts).tolist() == [1, 1]  # both faults of bob's are in one forecast


def test_a_vector_of_zeros_scores_the_least_there_is() -> None:
    assert one(spherical, [0.0, 0.0], 0) == 0
    assert one(log_score, [0.0, 0.0], 0) == pytest.approx(LN(1e-6))
    assert one(brier_sum, [0.0, 0.0], 0) == 1
    assert one(accuracy, [0.0, 0.0], 0) == 0.5


@pytest.mark.parametrize("outcome", [[0.0, 0.0], [1.0, 1.0]])
def test_where_none_or_several_exclusive_options_happened_only_brier_is_defined(outcome: list[float]) -> None:
    assert not settled(panel(rows_of("ann", "q", [0.7, 0.3], outcome)))[0]
    assert np.isnan([one(score, [0.7, 0.3], outcome) for score in (log_score, spherical, accuracy)]).all()
    assert one(brier, [0.7, 0.3], outcome) == pytest.approx(0.29)
    assert one(accuracy, [0.7, 0.3], outcome, exclusive=False) == 0.5


def test_probabilities_that_differ_by_rounding_share_the_top() -> None:
    assert 0.1 + 0.2 > 0.3
    assert one(accuracy, [0.1 + 0.2, 0.3, 0.2, 0.2], 1) == 0.5
    assert one(accuracy, [0.1 + 0.2 + 0.2], [1], exclusive=False) == 0.5


def test_categories() -> None:
    forecasts = panel(
        rows_of("ann", "q", [0.9, 0.1], 0, category="Sports", weight=3.0)
        + rows_of("ann", "r", [0.6, 0.4], 0, category="Sports")
        + rows_of("ann", "s", [0.5, 0.5], 0, category="Politics")
        + rows_of("bob", "s", [0.8, 0.2], 0, category="Politics")
    )
    table = by_category(forecasts, brier(forecasts))
    assert forecasts.questions.category_names == ["Sports", "Politics"]
    assert table[0] == pytest.approx([(3 * 0.01 + 0.16) / 4, 0.25])
    assert np.isnan(table[1, 0])
    assert table[1, 1] == pytest.approx(0.04)
    silent = by_category(forecasts, np.full(4, np.nan))
    assert silent.shape == (2, 2)
    assert np.isnan(silent).all()


# --- Brier scores of single probabilities, by hand


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


# --- Scores of plain arrays equal scikit-learn's where both have them, and refuse what they cannot score

RANDOM = np.random.default_rng(3)
PROB = RANDOM.uniform(0.05, 0.95, 40)
WON = (RANDOM.uniform(size=40) < PROB).astype(int)
WEIGHT = RANDOM.uniform(0.5, 2, 40)
VECTORS = RANDOM.dirichlet(np.ones(4), 40)
WINNERS = RANDOM.integers(0, 4, 40)
