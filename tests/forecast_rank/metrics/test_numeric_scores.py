"""Scores of numeric forecasts equal those of scoringrules."""

from typing import Any

import numpy as np
import pytest
import scoringrules

from forecast_rank.metrics.numeric_scores import crps_cdf, crps_quantiles, crps_samples, interval_score, quantile_score
from tests.lazy_modules import stats

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


def test_crps_of_two_thresholds_is_that_of_the_uniform_distribution() -> None:
    happened = np.array([-1.0, 0.3, 2.0, 3.0])
    expected = scoringrules.crps_uniform(happened, -1.0, 3.0)
    assert crps_cdf(happened, [-1.0, 3.0], [[0.0, 1.0]] * 4) == pytest.approx(expected)


def test_crps_of_fine_thresholds_is_that_of_the_distribution() -> None:
    grid = np.linspace(-30, 30, 6001)
    centre, scale = GENERATOR.normal(0, 2, (40, 1)), GENERATOR.uniform(0.5, 3, (40, 1))
    expected = scoringrules.crps_normal(HAPPENED, centre[:, 0], scale[:, 0])
    assert crps_cdf(HAPPENED, grid, stats.norm.cdf(grid, centre, scale)) == pytest.approx(expected, abs=1e-4)


def test_crps_of_cumulative_probabilities_is_the_integral_between_the_thresholds() -> None:
    thresholds, levels = np.array([-2.0, -1.5, 0.5, 4.0]), np.array([0.1, 0.4, 0.4, 0.7])
    middles = -2 + 6 * (np.arange(60_000) + 0.5) / 60_000
    for happened in (-9.0, -2.0, -1.7, 0.5, 1.0, 9.0):
        gap = np.interp(middles, thresholds, levels) - (happened <= middles)
        assert crps_cdf([happened], thresholds, [levels]) == pytest.approx([6 * np.square(gap).mean()], abs=1e-3)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (([1.0], [0.0, 2.0], [[0.5, 0.4]]), "probabilities: forecast 0 falls"),
        (([1.0, 1.0], [0.0, 2.0], [[0.5, 0.6], [0.5, 1.1]]), r"probabilities: forecast 1 has one outside \[0, 1\]"),
        (([1.0], [2.0, 2.0], [[0.5, 0.6]]), "thresholds: forecast 0 does not rise"),
        (([np.nan], [0.0, 2.0], [[0.5, 0.6]]), "y_true: forecast 0 is not finite"),
        (([1.0], [0.0, np.inf], [[0.5, 0.6]]), "thresholds: forecast 0 has one that is not finite"),
        (([1.0], [0.0, 2.0, 3.0], [[0.5, 0.6]]), r"probabilities: shape \(1, 2\) does not go with"),
        (([1.0], [0.0], [[0.5]]), "of which there are two at least"),
    ],
)
def test_fault_in_cumulative_probabilities_is_named_with_the_forecast(arguments: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        crps_cdf(*arguments)


def test_arguments_out_of_range_are_named() -> None:
    with pytest.raises(ValueError, match=r"quantile: a level is outside \(0, 1\)"):
        quantile_score(1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="level: between 0 and 1, not 1"):
        interval_score(1.0, 0.0, 2.0, level=1)
    with pytest.raises(ValueError, match="high: below low"):
        interval_score(1.0, 3.0, 2.0, level=0.5)
