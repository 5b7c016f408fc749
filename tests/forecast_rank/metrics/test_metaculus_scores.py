"""Metaculus's scores against figures of its own documentation, and a second computation minute by minute."""

import numpy as np
import pytest

from forecast_rank.metrics.metaculus_scores import baseline_score, peer_score, time_weighted_scores


def test_baseline_scores_of_the_documentation() -> None:
    assert baseline_score([0.5, 0.99, 0.01]).round(1).tolist() == [0.0, 98.6, -564.4]
    assert baseline_score([1 / 8, 1.0], options=8).tolist() == pytest.approx([0, 100])


def test_peer_scores_are_a_zero_sum() -> None:
    scores = peer_score([[0.9, 0.6, 0.3], [0.5, np.nan, 0.25], [np.nan, 0.7, np.nan]])
    assert scores[0, 0] == pytest.approx(100 * (np.log(0.9) - (np.log(0.6) + np.log(0.3)) / 2))
    assert np.nansum(scores[:2], axis=1) == pytest.approx([0, 0])
    assert np.isnan(scores[2]).tolist() == [True, False, True]
    assert scores[2, 1] == 0, "alone"


def test_time_weighted_scores_equal_a_second_computation_step_by_step() -> None:
    generator = np.random.default_rng(9)
    name, at = generator.integers(0, 4, 30), np.sort(generator.integers(-5, 100, 30)).astype(float)
    chances = generator.uniform(0.05, 0.95, 30)
    scores = time_weighted_scores(name, at, chances, opened_at=0, closed_at=90, options=3, spot_at=50.5)
    current, baseline, peer, coverage = np.full(4, np.nan), np.zeros(4), np.zeros(4), np.zeros(4)
    for tick in range(90):
        for k in np.flatnonzero(at <= tick):
            current[name[k]] = chances[k]
        for i in np.flatnonzero(~np.isnan(current)):
            logs = [np.log(current[j]) for j in range(4) if j != i and not np.isnan(current[j])]
            baseline[i] += 100 * (1 + np.log(current[i]) / np.log(3)) / 90
            peer[i] += 100 * (np.log(current[i]) - np.mean(logs)) / 90 if logs else 0
            coverage[i] += 1 / 90
        if tick == 50:
            spot = peer_score(current)
    assert scores.baseline == pytest.approx(baseline)
    assert scores.peer == pytest.approx(peer)
    assert scores.coverage == pytest.approx(coverage)
    assert scores.spot_peer == pytest.approx(spot, nan_ok=True)


def test_a_withdrawn_forecast_stands_no_longer() -> None:
    scores = time_weighted_scores([0, 0], [0, 4], [1.0, np.nan], opened_at=0, closed_at=10)
    assert scores.coverage.tolist() == pytest.approx([0.4])
    assert scores.baseline.tolist() == pytest.approx([40])


def test_forecasts_before_opening_stand_and_after_closing_do_not_count() -> None:
    scores = time_weighted_scores([0, 1], [-3, 12], [0.0, 0.5], opened_at=0, closed_at=10)
    assert scores.coverage.tolist() == [1, 0]
    assert scores.baseline[0] == pytest.approx(100 * (1 + np.log2(0.001)))
    assert np.isnan(scores.spot_peer[1])
    with pytest.raises(ValueError, match="closed_at: after opened_at"):
        time_weighted_scores([0], [0], [0.5], opened_at=1, closed_at=1)
