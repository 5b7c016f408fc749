"""The Brier score of revised forecasts, by hand."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import forecast_rank as fr
from forecast_rank.metrics.daily_brier import DAY, daily_brier


def test_last_forecast_before_the_end_of_a_day_is_the_day_s_and_stands_until_revised() -> None:
    # Days 0 to 3 of one forecaster: 0.6 (the last of the first day), 0.6, 0.9 (made at the very start), 0.9.
    scores = daily_brier(
        [0, 0, 0], [2 * DAY, 0.5 * DAY, 0.9 * DAY], [0.9, 0.1, 0.6], 1, opened_at=0, closed_at=3.5 * DAY
    )
    assert scores.days == 4
    assert scores.brier == pytest.approx([(0.16 + 0.16 + 0.01 + 0.01) / 4])
    assert scores.coverage.tolist() == [1.0]


def test_mean_is_over_the_days_with_a_forecast() -> None:
    scores = daily_brier(
        [0, 2, 2, 3, 4], [-5, 1, 3, 9, 3.5], [0.7, 0.2, np.nan, 0.5, 0.5], 0, opened_at=0, closed_at=4, day=1
    )  # fmt: skip
    assert scores.brier == pytest.approx([0.49, np.nan, 0.04, np.nan, 0.25], nan_ok=True)
    assert scores.coverage.tolist() == [1.0, 0.0, 0.5, 0.0, 0.25]


def test_options_are_scored_in_the_mean_form() -> None:
    vectors = [[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]]
    scores = daily_brier([0, 0], [0, 1], vectors, [1, 0, 0], opened_at=0, closed_at=2, day=1)
    assert scores.brier == pytest.approx([(0.25 + 0.09 + 0.04) / 3 / 2])


def test_nobody_has_no_score() -> None:
    assert daily_brier([], [], [], 1, opened_at=0, closed_at=4, day=1).brier.shape == (0,)
    late = daily_brier([0], [7], [0.5], 1, opened_at=0, closed_at=4, day=1)
    assert (late.brier.shape, late.coverage.tolist()) == ((1,), [0.0])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"probability": [0.5, 1.2]}, r"probability: 1\.2 at \[1\] is outside \[0, 1\]"),
        ({"outcome": 2}, "outcome: 2.0 at"),
        ({"outcome": [1, 0]}, r"probability: shape \(2,\) does not go with"),
        ({"made_at": [1]}, r"made_at of shape \(1,\)"),
        ({"day": 0}, "day: above 0, not 0"),
        ({"closed_at": 0}, "closed_at: after opened_at, 0, not 0"),
    ],
)
def test_bad_argument_is_named(change: dict[str, Any], why: str) -> None:
    arguments: dict[str, Any] = {
        "forecaster": [0, 1], "made_at": [0, 1], "probability": [0.5, 0.5], "outcome": 1,
        "opened_at": 0, "closed_at": 4,
    }  # fmt: skip
    with pytest.raises(ValueError, match=why):
        daily_brier(**arguments | change)


class TestPanels:
    def revised(self) -> pl.DataFrame:
        """Ann revises on the third of four days; bob is late, and cy is one day in time."""
        return pl.DataFrame({
            "forecaster": ["ann", "ann", "bob", "cy", "ann", "bob"],
            "question": ["q", "q", "q", "q", "r", "r"],
            "probability": [0.5, 1.0, 0.8, 0.9, 0.7, 0.6],
            "outcome": [1, 1, 1, 1, 0, 0],
            "made_at": ["2026-01-01", "2026-01-03", "2026-01-05", "2026-01-04", None, None],
            "closed_at": "2026-01-05",
        })  # fmt: skip

    def test_all_versions_in_time_count_on_their_days(self) -> None:
        report = fr.rank(self.revised(), metrics="brier,daily_brier", bootstrap=0).to_dict()
        daily = {name: entry["daily_brier"] for name, entry in report["forecasters"].items()}
        assert daily == {"ann": pytest.approx((0.25 + 0.25 + 0 + 0) / 4), "cy": pytest.approx(0.01), "bob": None}
        assert report["references"]["uniform"]["daily_brier"] is None
        assert report["rankings"]["daily_brier"] == ["cy", "ann", "bob"]
        assert "daily_brier: 2 of 4 forecasts have none, for want of made_at or closed_at" in report["notes"]

    def test_days_begin_at_the_hour_of_the_first_forecast(self) -> None:
        frame = pl.DataFrame({
            "forecaster": ["ann", "ann"], "question": "q", "probability": [0.5, 1.0], "outcome": 1,
            "made_at": ["2026-01-01 12:00", "2026-01-03 06:00"], "closed_at": "2026-01-04 12:00",
        })  # fmt: skip
        report = fr.rank(frame, metrics="daily_brier", bootstrap=0).to_dict()
        assert report["forecasters"]["ann"]["daily_brier"] == pytest.approx((0.25 + 0 + 0) / 3)

    @pytest.mark.parametrize("earlier", [("a", "b", "c"), ("a", "c")])
    def test_versions_with_other_options_do_not_count(self, earlier: tuple[str, ...]) -> None:
        first = [("ann", "q", name, 1 / len(earlier), int(name == "a"), "2026-01-01") for name in earlier]
        last = [("ann", "q", "a", 0.9, 1, "2026-01-03"), ("ann", "q", "b", 0.1, 0, "2026-01-03")]
        columns = ["forecaster", "question", "option", "probability", "outcome", "made_at"]
        frame = pl.DataFrame([*first, *last], schema=columns, orient="row").with_columns(closed_at=pl.lit("2026-01-05"))
        report = fr.rank(frame, metrics="brier,daily_brier", bootstrap=0).to_dict()
        assert report["forecasters"]["ann"]["daily_brier"] == pytest.approx(0.01)

    def test_without_times_there_is_a_note_and_no_ranking(self) -> None:
        report = fr.rank(self.revised()[4:], metrics="brier,daily_brier", bootstrap=0).to_dict()
        assert "daily_brier" not in report["rankings"]
        assert "daily_brier: 2 of 2 forecasts have none, for want of made_at or closed_at" in report["notes"]
