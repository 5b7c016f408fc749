"""Probability integral transforms of quantiles and cumulative probabilities, and their histogram."""

from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import pytest

from forecast_rank.metrics.pit import pit_cdf, pit_histogram, pit_quantiles
from tests.lazy_modules import stats

GENERATOR = np.random.default_rng(3)
LEVELS = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
normal_cdf = NormalDist().cdf


def test_outcome_lies_between_the_levels_beside_it() -> None:
    happened = [0.0, 1.0, 1.5, 2.0, 4.0, 9.0]
    low, high = pit_quantiles(happened, [[1.0, 2.0, 2.0, 3.0, 4.0]] * 6, LEVELS)
    assert low.tolist() == [0.0, 0.1, 0.1, 0.25, 0.9, 0.9]
    assert high.tolist() == [0.1, 0.1, 0.25, 0.5, 0.9, 1.0]


def test_cumulative_probability_is_linear_between_thresholds_and_an_interval_outside() -> None:
    low, high = pit_cdf([-1.0, 0.0, 2.5, 4.0, 5.0], [0.0, 1.0, 4.0], [[0.2, 0.4, 0.8]] * 5)
    assert low == pytest.approx([0.0, 0.2, 0.6, 0.8, 0.8])
    assert high == pytest.approx([0.2, 0.2, 0.6, 0.8, 1.0])


def test_known_transforms_are_counted() -> None:
    transforms = GENERATOR.random(500)
    counts, edges = np.histogram(transforms, 7, (0, 1))
    histogram = pit_histogram(transforms, bins=7)
    assert histogram.share == pytest.approx(counts / 500)
    assert histogram.edges == pytest.approx(edges)
    assert histogram.n == 500


def test_transform_on_an_edge_counts_half_on_each_side_and_ends_belong_to_their_bins() -> None:
    assert pit_histogram([0.5], bins=2).share.tolist() == [0.5, 0.5]
    assert pit_histogram([0.0, 1.0], bins=4).share.tolist() == [0.5, 0, 0, 0.5]


def test_interval_is_spread_evenly() -> None:
    assert pit_histogram([0.1], [0.6], bins=4).share == pytest.approx([0.3, 0.5, 0.2, 0.0])


@pytest.mark.parametrize(
    ("scale", "outer"),
    [(1.0, 0.2), (0.5, 2 * NormalDist().cdf(-0.5 * 1.2815516)), (2.0, 2 * NormalDist().cdf(-2.5631))],
)
def test_outer_bins_show_distributions_that_are_too_narrow_or_too_wide(scale: float, outer: float) -> None:
    happened = GENERATOR.normal(size=20_000)
    values = np.tile(scale * stats.norm.ppf(LEVELS), (20_000, 1))
    share = pit_histogram(*pit_quantiles(happened, values, LEVELS)).share
    assert share.sum() == pytest.approx(1)
    assert share[0] + share[-1] == pytest.approx(outer, abs=0.01)
    if scale == 1:
        assert share == pytest.approx(np.full(10, 0.1), abs=0.01)


def test_counts_of_a_calibrated_distribution_of_whole_numbers_are_even() -> None:
    happened = GENERATOR.poisson(2.0, 20_000)
    share = pit_histogram(stats.poisson.cdf(happened - 1, 2.0), stats.poisson.cdf(happened, 2.0)).share
    assert share == pytest.approx(np.full(10, 0.1), abs=0.01)


def test_no_forecasts_have_no_shares() -> None:
    assert np.isnan(pit_histogram([]).share).all()


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: pit_histogram([0.5], bins=0), "bins: at least 1, not 0"),
        (lambda: pit_histogram([0.5], [0.4]), r"low: 0\.5 to 0\.4 at 0 is no interval"),
        (lambda: pit_histogram([0.1, np.nan]), "low: nan to nan at 1"),
        (lambda: pit_histogram([0.1], [0.2, 0.3]), r"high: shape \(2,\)"),
        (lambda: pit_quantiles([1.0], [[1.0, 2.0]], [0.5, 0.5]), "quantiles: the levels do not rise"),
        (lambda: pit_quantiles([1.0], [[1.0, 2.0]], [0.5, 1.0]), "quantiles: the levels do not rise"),
        (lambda: pit_quantiles([1.0], [[2.0, 1.0]], [0.1, 0.5]), "values: forecast 0 falls"),
        (lambda: pit_quantiles([1.0], [[2.0]], [0.1, 0.5]), r"values: shape \(1, 1\)"),
        (lambda: pit_cdf([1.0], [0.0, 1.0], [[0.5, 0.4]]), "probabilities: forecast 0 falls"),
    ],
)
def test_bad_argument_is_named(call: Callable[[], object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        call()
