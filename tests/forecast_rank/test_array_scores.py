"""Scores of plain arrays equal scikit-learn's where both have them, and refuse what they cannot score."""

from typing import Any

import numpy as np
import pytest

import forecast_rank as fr
from tests.lazy_modules import sklearn_metrics

RANDOM = np.random.default_rng(3)
P = RANDOM.uniform(0.05, 0.95, 40)
Y = (RANDOM.uniform(size=40) < P).astype(int)
W = RANDOM.uniform(0.5, 2, 40)
VECTORS = RANDOM.dirichlet(np.ones(4), 40)
WINNERS = RANDOM.integers(0, 4, 40)


def test_binary_scores_equal_scikit_learn() -> None:
    for weight in (None, W):
        assert fr.mean_brier(Y, P, sample_weight=weight) == pytest.approx(
            sklearn_metrics.brier_score_loss(Y, P, sample_weight=weight)
        )
        ours = fr.mean_log_score(Y, P, sample_weight=weight)
        assert ours == pytest.approx(-sklearn_metrics.log_loss(Y, P, sample_weight=weight))


def test_scores_of_vectors_equal_their_formulas() -> None:
    happened = np.eye(4)[WINNERS]
    expected = np.average(((VECTORS - happened) ** 2).mean(axis=1), weights=W)
    assert fr.mean_brier(WINNERS, VECTORS, sample_weight=W) == pytest.approx(expected)
    assert fr.mean_brier(happened, VECTORS, sample_weight=W) == pytest.approx(expected)
    chosen = VECTORS[np.arange(40), WINNERS]
    assert fr.mean_log_score(WINNERS, VECTORS) == pytest.approx(np.log(chosen).mean())
    assert fr.mean_log_score(WINNERS, VECTORS, clip=0.2) == pytest.approx(np.log(np.maximum(chosen, 0.2)).mean())
    assert fr.mean_spherical(WINNERS, VECTORS) == pytest.approx((chosen / np.linalg.norm(VECTORS, axis=1)).mean())


@pytest.mark.parametrize(
    ("y_true", "y_prob", "weight", "message"),
    [
        ([1], [0.5, 0.5], None, r"y_true: shape \(1,\) does not go with"),
        ([], [], None, "does not go with"),
        ([1], [1.2], None, r"y_prob: a number is outside \[0, 1\]"),
        ([1], [float("nan")], None, "outside"),
        ([2], [0.5], None, "y_true: a number is neither 0 nor 1"),
        ([2], [[0.5, 0.5]], None, "an index is not from 0 to 1"),
        ([0], [[0.5, 0.4]], None, "a row does not sum to 1"),
        ([[1, 1]], [[0.5, 0.5]], None, "exactly one 1"),
        ([1], [0.5], [1, 2], r"sample_weight: shape \(2,\), not \(1,\)"),
    ],
)
def test_arrays_that_can_not_be_scored_are_named(y_true: Any, y_prob: Any, weight: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fr.mean_brier(y_true, y_prob, sample_weight=weight)
