"""The trend of scores over dates: its line and its crossing by hand, and its errors against simulated events."""

import numpy as np
import pytest

from forecast_rank.metrics.score_trend import ScoreTrend, score_trend
from forecast_rank.metrics.uncertainty import EventSums, table_sums

ONE_EVENT_APART = [[0.3, 0.5, 0.4, 0.4], [0.2, 0.4, 0.3, 0.3], [0.0, 0.2, 0.1, 0.1]]
"""Means 0.4, 0.3 and 0.1; the errors of all three are the same."""


def test_line_is_least_squares_of_the_means() -> None:
    trend = score_trend(table_sums(ONE_EVENT_APART), [1, 2, 3])
    assert trend is not None
    assert (trend.center, trend.level, trend.slope) == pytest.approx((2, 0.8 / 3, -0.15))
    line, low, high = trend.values([0, 2])
    assert line.tolist() == pytest.approx([0.8 / 3 + 0.3, 0.8 / 3])
    assert (low < line).all()
    assert (line < high).all()


def test_errors_that_all_forecasters_share_move_the_level_and_not_the_slope() -> None:
    trend = score_trend(table_sums(ONE_EVENT_APART), [1, 2, 3])
    assert trend is not None
    assert trend.covariance[1, 1] == pytest.approx(0, abs=1e-20)
    # Each mean is of four events with the standard deviation √0.005 about it.
    assert trend.covariance[0, 0] == pytest.approx(0.005 / 4, rel=0.1)


def test_crossing_is_where_the_line_and_its_band_hold_the_reference() -> None:
    trend = ScoreTrend(10.0, 0.2, -0.1, np.array([[0.0004, 0.0], [0.0, 0.0004]]), 2.0)
    crossing = trend.crossing(0.1)
    assert crossing is not None
    assert crossing.x == pytest.approx(11)
    # (0.1 - 0.1 u)² = 4 × 0.0004 (1 + u²): 0.0084 u² - 0.02 u + 0.0084 = 0
    roots = [(0.02 - sign * np.sqrt(0.0004 - 4 * 0.0084**2)) / 0.0168 for sign in (1, -1)]
    assert crossing[1:] == pytest.approx((10 + roots[0], 10 + roots[1]))
    _, low, high = trend.values(crossing[1:])
    assert (high[0] - 0.1, low[0] - 0.1, low[1] - 0.1)[0] >= 0 >= low[1] - 0.1
    assert min(abs(low[0] - 0.1), abs(high[0] - 0.1)) == pytest.approx(0, abs=1e-12)


def test_crossing_without_a_bounded_interval_is_none() -> None:
    flat = ScoreTrend(10.0, 0.2, -0.1, np.array([[0.0004, 0.0], [0.0, 0.0026]]), 2.0)
    assert flat.slope_interval[0] < 0 < flat.slope_interval[1]
    assert flat.crossing() is None


@pytest.mark.parametrize("dates", [[1, 2, np.nan], [1, 1, 2]], ids=["one date unknown", "two dates alike"])
def test_fewer_than_three_dates_have_no_trend(dates: list[float]) -> None:
    assert score_trend(table_sums(ONE_EVENT_APART), dates) is None


def test_forecaster_of_fewer_than_four_events_is_left_out() -> None:
    sums = table_sums([*ONE_EVENT_APART, [9.0, 9.0, 9.0, np.nan]])
    with_it, without = score_trend(sums, [1, 2, 3, 4]), score_trend(table_sums(ONE_EVENT_APART), [1, 2, 3])
    assert with_it is not None
    assert without is not None
    assert (with_it.level, with_it.slope) == (without.level, without.slope)


def test_interval_of_the_slope_holds_the_true_one_in_nineteen_of_twenty_worlds() -> None:
    rng, hits = np.random.default_rng(7), 0
    dates = np.arange(6.0)
    for _ in range(200):
        surprise = rng.normal(0, 0.2, 40)
        scores = 0.5 - 0.03 * dates[:, None] + surprise + rng.normal(0, 0.1, (6, 40))
        trend = score_trend(EventSums(scores, np.ones((6, 40))), dates, resamples=300)
        assert trend is not None
        low, high = trend.slope_interval
        hits += low <= -0.03 <= high
    assert 183 <= hits <= 199
