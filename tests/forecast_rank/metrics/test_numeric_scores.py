"""Scores of numeric forecasts equal those of scoringrules."""

import numpy as np
import pytest
import scoringrules
from forecast_rank.metrics.numeric_scores import crps_quantiles, crps_samples, interval_score, quantile_score

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
GENERATOR = np.random.default_rng(5)
HAPPENED = GENERATOR.normal(0, 2, 40)
QUANTILES = np.sort(GENERATOR.normal(0, 2, (40, 5)), axis=1)


def test_quantile_score_equals_the_oracle() -> None:
    for k, level in enumerate(LEVELS):
        expected = scoringrules.quantile_score(HAPPENED, QUANTILES[:, k], level)
        assert quantile_score(HAPPENED, QUANTILES[:, k], level) == pytest.approx(expected)


def test_interval_score_equals_the_oracle() -> None:
    expected = scoringrules.interval_score(HAPPENED, QUANTILES[:, 0], QUANTILES[:, 4], 0.1)
    assert interval_score(HAPPENED, QUANTILES[:, 0], QUANTILES[:, 4], level=0.9) == pytest.approx(expected)


def test_crps_of_quantiles_equals_the_oracle() -> None:
    assert crps_quantiles(HAPPENED, QUANTILES, LEVELS) == pytest.approx(
        scoringrules.crps_quantile(HAPPENED, QUANTILES, LEVELS)
    )


def test_weighted_interval_score_is_the_crps_of_quantiles() -> None:
    narrow, wide = (
        scoringrules.interval_score(HAPPENED, QUANTILES[:, low], QUANTILES[:, high], alpha)
        for low, high, alpha in ((1, 3, 0.5), (0, 4, 0.1))
    )
    expected = (np.abs(HAPPENED - QUANTILES[:, 2]) / 2 + 0.25 * narrow + 0.05 * wide) / 2.5
    assert crps_quantiles(HAPPENED, QUANTILES, LEVELS) == pytest.approx(expected)


def test_crps_of_samples_equals_the_oracle() -> None:
    samples = GENERATOR.normal(0, 2, (40, 7))
    assert crps_samples(HAPPENED, samples) == pytest.approx(
        scoringrules.crps_ensemble(HAPPENED, samples, estimator="nrg")
    )
    assert crps_samples(HAPPENED, samples[:, :1]) == pytest.approx(np.abs(HAPPENED - samples[:, 0]))


def test_arguments_out_of_range_are_named() -> None:
    with pytest.raises(ValueError, match=r"quantile: a level is outside \(0, 1\)"):
        quantile_score(1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="level: between 0 and 1, not 1"):
        interval_score(1.0, 0.0, 2.0, level=1)
    with pytest.raises(ValueError, match="high: below low"):
        interval_score(1.0, 3.0, 2.0, level=0.5)
