"""The ranked probability score equals that of scoringrules, and the Brier score where there are two options."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import scoringrules

import forecast_rank as fr
from forecast_rank.metrics.panel import from_arrays
from forecast_rank.metrics.proper_scores import brier
from forecast_rank.metrics.ranked_probability import ranked_probability
from tests.forecast_rank.panels import panel, rows_of
from tests.lazy_modules import pd, pl


def test_score_equals_the_oracle() -> None:
    generator = np.random.default_rng(2)
    for options in (3, 5, 8):
        vectors, happened = generator.dirichlet(np.ones(options), (2, 30)), generator.integers(options, size=30)
        forecasts = from_arrays(vectors, np.eye(options)[happened])
        expected = scoringrules.rps_score(
            happened[forecasts.question] + 1, vectors[forecasts.forecaster, forecasts.question]
        )
        assert ranked_probability(forecasts) == pytest.approx(expected / (options - 1))


def test_two_options_score_as_the_brier_score() -> None:
    forecasts = from_arrays([[[0.7, 0.3], [0.1, 0.9]]], [[1, 0], [1, 0]])
    assert ranked_probability(forecasts) == pytest.approx(brier(forecasts))


def test_questions_of_different_size_do_not_mix() -> None:
    rows = [*rows_of("ann", "q", [0.2, 0.8, 0.0], 0), *rows_of("ann", "r", [0.5, 0.5], 1)]
    assert ranked_probability(panel(rows)).tolist() == pytest.approx([(0.8**2 + 0) / 2, 0.25])


def test_nested_thresholds_state_cumulated_probabilities_themselves() -> None:
    rows = rows_of("ann", "q", [0.9, 0.6, 0.1], [1, 0, 0], exclusive=False)
    assert ranked_probability(panel(rows)).tolist() == pytest.approx([(0.1**2 + 0.6**2 + 0.1**2) / 3])


class TestOrderOfOptions:
    """Low .5, medium .3, high .2: in that order the scores are .145, .145 and .445, with high before medium others."""

    COLUMNS: ClassVar[dict[str, list]] = {
        "forecaster": ["a"] * 9,
        "question": [f"q{j}" for j in range(3) for _ in range(3)],
        "option": ["low", "high", "medium"] * 3,
        "probability": [0.5, 0.2, 0.3] * 3,
        "outcome": [1, 0, 0, 0, 0, 1, 0, 1, 0],
    }
    ORDER = ("low", "medium", "high")
    INSIDE = (0.145 + 0.145 + 0.445) / 3
    """((.5^2 + .2^2) + (.5^2 + .2^2) + (.5^2 + .8^2)) / 2 / 3."""

    @staticmethod
    def score(source: Any, **options: Any) -> tuple[float, str]:
        report = fr.rank(source, metrics="ranked_probability", bootstrap=0, **options)
        return report.to_dict()["forecasters"]["a"]["ranked_probability"], report.to_text()

    def test_ordered_categories_of_pandas_and_polars_give_the_order(self) -> None:
        frame = pd.DataFrame(self.COLUMNS)
        frame["option"] = pd.Categorical(frame["option"], self.ORDER, ordered=True)
        enum = pl.DataFrame(self.COLUMNS).with_columns(pl.col("option").cast(pl.Enum(self.ORDER)))
        for source in (frame, enum, enum.lazy()):
            report, text = self.score(source)
            assert report == pytest.approx(self.INSIDE)
            assert "options in the order of the categories of the column 'option'" in text

    def test_setting_gives_the_order_and_wins(self, tmp_path: Path) -> None:
        pl.DataFrame(self.COLUMNS).write_csv(tmp_path / "f.csv")
        enum = pl.DataFrame(self.COLUMNS).with_columns(pl.col("option").cast(pl.Enum(["medium", "low", "high"])))
        for source in (tmp_path / "f.csv", enum):
            report, text = self.score(source, order="low,medium,high")
            assert report == pytest.approx(self.INSIDE)
            assert "options in the order of the setting 'order'" in text
        with pytest.raises(fr.InvalidSetting, match="order: does not name 'high'"):
            self.score(enum, order="low,medium")
        with pytest.raises(fr.InvalidSetting, match="order: names 'low' twice"):
            self.score(enum, order="low,medium,high,low")

    def test_rows_give_the_order_otherwise(self) -> None:
        report, text = self.score(pl.DataFrame(self.COLUMNS))
        assert report == pytest.approx((0.25 + 0.09 + 0.25 + 0.49 + 0.25 + 0.09) / 6)
        assert "options in the order of the rows of the question's first forecast" in text
