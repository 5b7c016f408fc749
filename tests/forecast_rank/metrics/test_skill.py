"""Skill beside uniform and market, and alpha with its standard error."""

import numpy as np
import pytest

from forecast_rank.metrics.panel import from_arrays, references
from forecast_rank.metrics.skill import (
    alpha,
    alpha_mean,
    brier_skill,
    brier_skill_against,
    market_brier,
    market_probability,
    overround,
    uniform_brier,
)
from tests.forecast_rank.panels import panel, rows_of, synthetic
from tests.lazy_modules import sm


@pytest.mark.parametrize(("score", "reference", "skill"), [(0.125, 0.25, 0.5), (0.25, 0.25, 0.0), (0.5, 0.25, -1.0)])
def test_skill_is_one_less_the_ratio(score: float, reference: float, skill: float) -> None:
    assert brier_skill([score], [reference]).tolist() == [skill]


def test_skill_against_a_perfect_or_absent_reference_is_not_defined() -> None:
    assert np.isnan(brier_skill([0.1, 0.1, np.nan], [0.0, np.nan, 0.25])).all()


def test_uniform_is_one_in_n_and_a_half_where_options_are_not_exclusive() -> None:
    forecasts = panel(
        rows_of("ann", "q", [0.9, 0.1], 0)
        + rows_of("ann", "r", [0.7, 0.2, 0.1], 0)
        + rows_of("ann", "s", [0.7, 0.2, 0.1], [1, 1, 0], exclusive=False)
    )
    assert uniform_brier(forecasts) == pytest.approx([0.25, (4 + 1 + 1) / 27, 0.25])


def test_market_is_the_mid_price_over_the_sum_of_mids_where_options_are_exclusive() -> None:
    """Mids 0.7 and 0.35 of exclusive options; the same prices raw where they are not."""
    prices = {"odds": [0.71, 0.37], "no_odds": [0.31, 0.67]}
    forecasts = panel(
        rows_of("ann", "q", [0.5, 0.5], 0, **prices)
        + rows_of("ann", "r", [0.5, 0.5], [1, 1], exclusive=False, **prices)
    )
    assert market_probability(forecasts) == pytest.approx([0.7 / 1.05, 0.35 / 1.05, 0.7, 0.35])
    assert market_brier(forecasts) == pytest.approx([(0.35 / 1.05) ** 2, (0.3**2 + 0.65**2) / 2])
    assert alpha(forecasts) == pytest.approx([(0.35 / 1.05) ** 2 - 0.25, (0.3**2 + 0.65**2) / 2 - 0.25])
    assert overround(forecasts) == pytest.approx([0.08, (0.02 + 0.04) / 2])


def test_each_forecast_is_judged_at_the_prices_it_saw() -> None:
    forecasts = panel(
        rows_of("ann", "q", [0.9, 0.1], 0, odds=[0.5, 0.5]) + rows_of("bob", "q", [0.9, 0.1], 0, odds=[0.8, 0.2])
    )
    assert alpha(forecasts) == pytest.approx([0.24, 0.03])


def test_who_repeats_the_market_has_no_alpha_and_no_skill_against_it() -> None:
    panel = synthetic(4, 80, seed=8, exclusive=0.5, priced=0.7).panel
    market = references(panel)
    prices = market.take(market.forecaster == 0)
    assert alpha(prices) == pytest.approx(np.zeros(len(prices)), abs=1e-12)
    assert brier_skill_against(prices, market_brier(prices))[0] == pytest.approx(0)
    assert brier_skill_against(market, uniform_brier(market))[1] == pytest.approx(0)


def test_skill_counts_only_questions_that_have_a_reference() -> None:
    forecasts = panel(
        rows_of("ann", "q", [0.9, 0.1], 0, odds=[0.5, 0.5], weight=3.0)
        + rows_of("ann", "r", [0.8, 0.2], 0, odds=[0.7, 0.3])
        + rows_of("ann", "s", [0.0, 1.0], 0)
        + rows_of("bob", "s", [0.5, 0.5], 0)
    )
    skill = brier_skill_against(forecasts, market_brier(forecasts))
    assert skill[0] == pytest.approx(1 - (3 * 0.01 + 0.04) / (3 * 0.25 + 0.09))
    assert np.isnan(skill[1])


def test_error_of_alpha_is_that_of_a_regression_clustered_by_event() -> None:
    panel = synthetic(4, 120, seed=9, event_size=4, weighted=True, exclusive=0.6, priced=0.8).panel
    mean, error = alpha_mean(panel)
    values = alpha(panel)
    for person in range(4):
        mine = (panel.forecaster == person) & ~np.isnan(values)
        event, weight = panel.questions.event[panel.question[mine]], panel.weight[mine]
        fit = sm.WLS(values[mine], np.ones(mine.sum()), weights=weight).fit(
            cov_type="cluster", cov_kwds={"groups": event}
        )
        assert mean[person] == pytest.approx(fit.params[0])
        assert error[person] == pytest.approx(fit.bse[0])


def test_without_prices_alpha_is_not_defined_and_one_event_has_no_error() -> None:
    forecasts = panel(
        rows_of("ann", "q", [0.9, 0.1], 0, odds=[0.5, 0.5], event="e")
        + rows_of("ann", "r", [0.9, 0.1], 0, odds=[0.5, 0.5], event="e")
        + rows_of("bob", "s", [0.9, 0.1], 0)
    )
    mean, error = alpha_mean(forecasts)
    assert mean[0] == pytest.approx(0.24)
    assert np.isnan(mean[1])
    assert np.isnan(error).all()
    assert np.isnan(alpha(forecasts)).tolist() == [False, False, True]
    assert np.isnan(overround(forecasts)).tolist() == [False, False, True]


def test_one_missing_price_leaves_the_forecast_unpriced() -> None:
    forecasts = from_arrays([[[0.9, 0.1]]], [[1, 0]], odds=[[0.5, np.nan]])
    for values in (alpha(forecasts), overround(forecasts), market_brier(forecasts)):
        assert np.isnan(values).all()
