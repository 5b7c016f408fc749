"""Numeric forecasts and scores of any rule: from long form to a report."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scoringrules

import forecast_rank as fr

LEVELS = [0.1, 0.5, 0.9]


def forecasts(error: dict[str, float], questions: int = 30) -> pl.DataFrame:
    """Quantiles of forecasters whose centres miss by a normal error of their own size."""
    generator = np.random.default_rng(6)
    happened = generator.normal(100, 10, questions)
    return pl.DataFrame([
        {
            "forecaster": name, "question": f"q{j}", "event": f"e{j // 2}", "quantile": level, "value": centre + shift,
            "outcome": happened[j],
        }
        for name, size in error.items()
        for j, centre in enumerate(happened + generator.normal(0, size, questions))
        for level, shift in zip(LEVELS, (-8, 0, 8), strict=True)
    ])  # fmt: skip


def test_scores_equal_the_oracle_whatever_the_order_of_the_rows() -> None:
    frame = forecasts({"ann": 3.0, "bob": 9.0})
    scores = fr.numeric_scores(frame.sample(fraction=1, shuffle=True, seed=1)).sort("forecaster", "question")
    wide = frame.pivot("quantile", index=["forecaster", "question", "outcome"], values="value")
    wide = wide.sort("forecaster", "question")
    values, outcome = wide.select("0.1", "0.5", "0.9").to_numpy(), wide["outcome"].to_numpy()
    expected = scoringrules.crps_quantile(outcome, values, np.array(LEVELS))
    assert scores["crps"].to_numpy() == pytest.approx(expected)
    expected = scoringrules.interval_score(outcome, values[:, 0], values[:, 2], 0.2)
    assert scores["interval_score_0.8"].to_numpy() == pytest.approx(expected)
    held = (values[:, 0] <= outcome) & (outcome <= values[:, 2])
    assert scores["held_0.8"].to_list() == held.astype(float).tolist()


def test_rows_without_quantiles_are_samples() -> None:
    frame = pl.DataFrame({
        "forecaster": ["ann"] * 3 + ["bob"], "question": "q", "value": [1.0, 6.0, 2.0, 4.0], "outcome": 3,
    })  # fmt: skip
    scores = dict(fr.numeric_scores(frame).select("forecaster", "crps").rows())
    expected = scoringrules.crps_ensemble(3.0, np.array([1.0, 6.0, 2.0]), estimator="nrg")
    assert scores == pytest.approx({"ann": expected, "bob": 1.0})


def test_report_ranks_with_intervals_and_rank_ranges(tmp_path: Path) -> None:
    forecasts({"ann": 2.0, "bob": 12.0}).write_csv(tmp_path / "numbers.csv")
    report = fr.rank_numeric(tmp_path / "numbers.csv", bootstrap=200)
    content = report.to_dict()
    assert content["rankings"]["crps"] == ["ann", "bob"]
    assert content["data"]["events"] == 15
    entry = content["forecasters"]["ann"]
    assert entry["rank_ranges"]["crps"] == [1, 1]
    assert entry["crps_ci"][0] < entry["crps"] < entry["crps_ci"][1]
    assert entry["held_0.8"] == 1
    assert "crps, lower is better" in report.to_text()
    assert "16.0000" in report.to_markdown("interval_score_0.8"), "each is as wide, and holds"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"quantile": 1.0}, r"row 2, ann on q0: quantile is outside \(0, 1\)"),
        ({"quantile": 0.1}, "row 1, ann on q0: the quantile is stated twice"),
        ({"value": None}, "row 2, ann on q0: value is empty or no number"),
        ({"outcome": 1.0}, "row 1, ann on q0: the outcomes of the question differ"),
    ],
)
def test_forecasts_that_cannot_be_scored_are_named(change: dict[str, Any], why: str) -> None:
    frame = forecasts({"ann": 1.0}, questions=2)
    row = frame.with_row_index().with_columns(
        pl.when(pl.col("index") == 1).then(pl.lit(value)).otherwise(pl.col(name)).alias(name)
        for name, value in change.items()
    )
    with pytest.raises(fr.UnreadableFile, match=why):
        fr.numeric_scores(row)


def test_falling_quantiles_and_missing_columns_are_named() -> None:
    frame = forecasts({"ann": 1.0}, questions=1).with_columns(value=pl.col("value").reverse())
    with pytest.raises(fr.UnreadableFile, match=r"ann on q0: the value falls between the ends of the 0\.8"):
        fr.numeric_scores(frame)
    with pytest.raises(fr.UnreadableFile, match="the frame has no column 'value'"):
        fr.numeric_scores(frame.drop("value"))


class TestScoresOfAnyRule:
    def test_means_errors_and_ranks_are_those_of_the_library(self) -> None:
        panel = fr.simulate("clustered", forecasters=3, events=20, seed=5).panel
        frame = pl.DataFrame({
            "forecaster": [panel.forecasters[i] for i in panel.forecaster],
            "question": panel.question,
            "event": panel.questions.event[panel.question],
            "loss": fr.brier(panel),
            "log": fr.log_score(panel),
        })  # fmt: skip
        found = fr.rank_scores(frame, lower="loss", higher="log", bootstrap=100).to_dict()
        known = fr.rank_panel(panel, fr.Settings(metrics=("brier", "log"), bootstrap=100))
        assert found["rankings"]["loss"] == known["rankings"]["brier"]
        assert found["rankings"]["log"] == known["rankings"]["log"]
        for name, entry in found["forecasters"].items():
            assert entry["loss_se"] == pytest.approx(known["forecasters"][name]["brier_se"])
            assert entry["rank_ranges"]["loss"] == known["forecasters"][name]["rank_ranges"]["brier"]

    def test_missing_scores_are_left_out_and_a_score_must_be_named(self) -> None:
        frame = pl.DataFrame({"forecaster": ["a", "a", "b"], "question": [1, 2, 1], "x": [1.0, None, 3.0]})
        assert fr.rank_scores(frame, lower=["x"], bootstrap=0).ranked("x") == {"a": (1, 1.0), "b": (2, 3.0)}
        with pytest.raises(fr.UnreadableFile, match="name at least one score"):
            fr.rank_scores(frame)
