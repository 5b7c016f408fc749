"""Relative skill: pairwise ratios by hand, errors against a jackknife, and intervals in simulated worlds."""

from itertools import product

import numpy as np
import pytest

from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel, from_arrays
from forecast_rank.metrics.relative_skill import relative_skill
from forecast_rank.metrics.studentised import studentised_interval
from forecast_rank.metrics.uncertainty import cluster_se, resample_counts


def scored(table: list[list[float]] | Floats, **labels: object) -> tuple[Panel, Floats]:
    """A panel with these scores, NaN where a forecaster made no forecast, and the scores in its order."""
    scores = np.asarray(table, dtype=np.float64)
    probability = np.where(np.isnan(scores), np.nan, 0.5)[:, :, None]
    panel = from_arrays(probability, np.ones((scores.shape[1], 1)), **labels)  # type: ignore[arg-type]
    return panel, scores[panel.forecaster, panel.question]


def pairwise(table: Floats) -> Floats:
    """The geometric means of ratios of sums on the overlap, pair by pair, as scoringutils' tests compute them."""
    ratios = np.full((len(table), len(table)), np.nan)
    for i, j in product(range(len(table)), repeat=2):
        overlap = ~np.isnan(table[i]) & ~np.isnan(table[j])
        if overlap.any():
            ratios[i, j] = table[i, overlap].sum() / table[j, overlap].sum()
    return np.exp(np.nanmean(np.log(ratios), axis=1))


def test_three_forecasters_by_hand() -> None:
    nan = np.nan
    skill = relative_skill(*scored([[1, 2, 3], [2, 2, nan], [nan, 4, 3]]))
    # a and b share two questions, 3 / 4; a and c 5 / 7; b and c one, 2 / 4.
    assert skill.ratio[0] == pytest.approx([1, 3 / 4, 5 / 7])
    assert skill.ratio[1] == pytest.approx([4 / 3, 1, 1 / 2])
    assert skill.common.tolist() == [[3, 2, 2], [2, 2, 1], [2, 1, 2]]
    expected = [(3 / 4 * 5 / 7) ** (1 / 3), (4 / 3 / 2) ** (1 / 3), (7 / 5 * 2) ** (1 / 3)]
    assert skill.value == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(5))
def test_pairs_and_means_are_those_of_scoringutils(seed: int) -> None:
    generator = np.random.default_rng(seed)
    table = generator.gamma(2, size=(5, 30))
    table[generator.random(table.shape) < 0.4] = np.nan
    assert relative_skill(*scored(table)).value == pytest.approx(pairwise(table))


def test_weight_of_a_question_is_the_mean_of_the_two() -> None:
    skill = relative_skill(*scored([[1, 4], [2, 2]], weight=[[1, 3], [1, 1]]))
    assert skill.ratio[0, 1] == pytest.approx((1 + 2 * 4) / (2 + 2 * 2))


def test_who_shares_no_question_has_none_and_a_perfect_score_is_0() -> None:
    nan = np.nan
    skill = relative_skill(*scored([[1, 2, nan], [2, 2, nan], [nan, nan, 5]]))
    assert skill.value == pytest.approx([np.sqrt(3 / 4), np.sqrt(4 / 3), nan], nan_ok=True)
    perfect = relative_skill(*scored([[0, 0], [1, 2]]))
    assert perfect.value.tolist() == [0, np.inf]
    assert perfect.log_sums.weights.sum() == 0, "without an error"
    skills = relative_skill(*scored([[0, 0], [0, 0]]))
    assert np.isnan(skills.value).all()


@pytest.mark.parametrize("bad", [-1.0, np.inf])
def test_scores_that_have_no_ratio_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="a score is negative or infinite"):
        relative_skill(*scored([[1, bad], [2, 2]]))


def test_error_is_that_of_leaving_one_event_out() -> None:
    generator = np.random.default_rng(4)
    table = generator.gamma(2, size=(3, 12))
    table[0, 5] = np.nan
    event = np.repeat(np.arange(6), 2)
    without = np.log([pairwise(table[:, event != left_out]) for left_out in range(6)])
    expected = np.sqrt(5 / 6 * np.square(without - without.mean(axis=0)).sum(axis=0))
    skill = relative_skill(*scored(table, event=event))
    assert cluster_se(skill.log_sums) == pytest.approx(expected)
    assert skill.log_sums.means == pytest.approx(np.log(skill.value))


def test_intervals_hold_in_simulated_worlds() -> None:
    generator = np.random.default_rng(1)
    scale = np.array([1, 1.1, 1.3, 1.6])
    true = np.log(scale) - np.log(scale).mean()
    counts = resample_counts(40, 300, 0)
    hits = []
    for _ in range(100):
        hard = np.exp(generator.normal(size=40))
        table = scale[:, None] * hard * np.exp(generator.normal(0, 0.5, (4, 40)))
        ends = studentised_interval(relative_skill(*scored(table)).log_sums, counts, 0.95)
        hits.append((ends[:, 0] <= true) & (true <= ends[:, 1]))
    assert 0.9 < np.mean(hits) < 0.98
