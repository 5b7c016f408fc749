"""Kelly growth: expectations by enumeration of the outcomes, and calibrated forecasters who get what they expect."""

import numpy as np
import pytest

from forecast_rank.metrics.kelly_growth import expected_growth, realised_growth
from forecast_rank.metrics.panel import from_arrays
from forecast_rank.metrics.returns import cash_stakes
from tests.forecast_rank.panels import synthetic


def test_expectation_is_that_over_the_outcomes_of_the_stakes() -> None:
    stated, odds = [0.5, 0.3, 0.2], [[0.35, 0.35, 0.35]]
    panels = [from_arrays([[stated]], np.eye(3)[[k]], odds=odds) for k in range(3)]
    stakes = cash_stakes(panels[0], 1)
    wealth = [stakes.cash[0] + stakes.yes[k] / 0.35 for k in range(3)]
    assert [realised_growth(one)[0] for one in panels] == pytest.approx(np.log(wealth))
    assert expected_growth(panels[0])[0] == pytest.approx(np.dot(stated, np.log(wealth)))


def test_certain_forecasts_expect_no_ruin() -> None:
    panel = from_arrays([[[1.0, 0.0]]], [[0, 1]], odds=[[0.5, 0.5]])
    assert expected_growth(panel).tolist() == pytest.approx([np.log(2)])
    assert realised_growth(panel).tolist() == [-np.inf]


def test_nothing_is_expected_of_the_market_s_own_prices() -> None:
    assert expected_growth(from_arrays([[[0.6]]], [[1]], odds=[[0.6]], exclusive=False)).tolist() == [0]


def test_calibrated_forecasters_get_what_they_expect() -> None:
    generator = np.random.default_rng(1)
    truth = generator.uniform(0.2, 0.8, 20_000)
    price = np.clip(truth + generator.normal(0, 0.1, 20_000), 0.05, 0.95)
    happened = (generator.random(20_000) < truth).astype(float)
    panel = from_arrays(truth[None, :, None], happened[:, None], odds=price[:, None], exclusive=False)
    error = realised_growth(panel).std() / np.sqrt(20_000)
    assert realised_growth(panel).mean() == pytest.approx(expected_growth(panel).mean(), abs=3 * error)


def test_growth_without_prices_is_unknown() -> None:
    panel = synthetic(2, 5, seed=1).panel
    bare = from_arrays([[[0.5]]], [[1]], exclusive=False)
    assert np.isnan(expected_growth(bare)).all()
    assert len(expected_growth(panel)) == len(panel)
