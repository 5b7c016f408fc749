"""Brier scores of single probabilities, by hand."""

import numpy as np
import pytest

from forecast_rank.metrics.brier import brier_score, skill_score


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
