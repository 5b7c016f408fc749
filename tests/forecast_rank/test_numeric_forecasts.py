"""Numeric forecasts and scores of any rule: from long form to a report."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scoringrules

import forecast_rank as fr
from tests.lazy_modules import pd, stats

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
    inside = (values[:, 0] <= outcome) & (outcome <= values[:, 2])
    assert scores["held_0.8"].to_list() == inside.astype(float).tolist()


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


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_frames_of_pandas_and_polars_keep_their_columns_whatever_the_case(library: Any) -> None:
    numbers = {
        "Forecaster": ["ann", "bob"] * 2, "question ": ["q1", "q1", "q2", "q2"], "VALUE": [4, 1, 7, 8],
        "Outcome": [5, 5, 9, 9], "comment": ["x"] * 4,
    }  # fmt: skip
    report = fr.rank_numeric(library.DataFrame(numbers), bootstrap=0)
    assert report.ranked("crps") == {"ann": (1, 1.5), "bob": (2, 2.5)}
    assert report.to_dict()["data"]["ignored_columns"] == ["comment"]
    scores = {
        "forecaster": ["ann", "bob"] * 2, "question": ["q1", "q1", "q2", "q2"], "probability": [0.2, 0.3, 0.4, 0.5],
        "outcome": [1, 1, 0, 0], "Loss": [4.0, 1.0, 7.0, 8.0],
    }  # fmt: skip
    ranked = fr.rank_scores(library.DataFrame(scores), lower="loss", bootstrap=0).ranked("loss")
    assert ranked == {"bob": (1, 4.5), "ann": (2, 5.5)}


def test_different_questions_are_compared_by_the_adjusted_score_and_in_pairs() -> None:
    rows = [("all", f"big{j}", 105 + j % 3, 100) for j in range(20)]
    for j in range(20):
        rows += [("all", f"small{j}", 1.1 + j % 5 / 50, 1), ("niche", f"small{j}", 1.2 + j % 5 / 50, 1)]
    frame = pl.DataFrame(rows, schema=["forecaster", "question", "value", "outcome"], orient="row", strict=False)
    content = fr.rank_numeric(frame).to_dict()
    assert content["rankings"]["crps"] == ["niche", "all"], "who skipped the hard ones has the lower mean"
    assert content["headline"] == "adjusted_crps"
    assert content["rankings"]["adjusted_crps"] == ["all", "niche"]
    [pair] = content["pairs"]
    assert (pair["n"], pair["difference"]) == (20, pytest.approx(-0.1))
    assert "crps adjusted for difficulty" in fr.rank_numeric(frame).to_text().split("crps, lower")[0]


class TestRowsAtFault:
    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ({"value": None}, "value is empty or no number"),
            ({"value": 1e6}, "the value falls from the quantile 0.5 to 0.9"),
            ({"quantile": 1.5}, "quantile is outside (0, 1)"),
            ({"forecaster": None}, "forecaster is empty"),
        ],
    )
    def test_forecast_is_rejected_with_its_line_and_the_rest_is_ranked(
        self, change: dict[str, Any], why: str, tmp_path: Path
    ) -> None:
        frame = forecasts({"ann": 1.0, "bob": 3.0}).with_row_index().with_columns(
            pl.when(pl.col("index") == 4).then(pl.lit(value)).otherwise(pl.col(name)).alias(name)
            for name, value in change.items()
        )  # fmt: skip
        frame.write_csv(tmp_path / "numbers.csv")
        content = fr.rank_numeric(tmp_path / "numbers.csv", bootstrap=0).to_dict()
        reasons = {row["row"]: row["why"] for row in content["rejected"]}
        line = 7 if "falls" in why else 6
        assert reasons[line] == why
        assert content["rankings"]["crps"] == ["ann", "bob"]
        assert content["forecasters"]["bob"]["n"] == 30
        with pytest.raises(fr.InvalidRow, match=re.escape(why)):
            fr.rank_numeric(tmp_path / "numbers.csv", strict=True)

    def test_line_is_that_of_the_file_where_cells_hold_line_breaks(self, tmp_path: Path) -> None:
        file = tmp_path / "n.csv"
        file.write_text('forecaster;question;value;outcome\n"a\nb";q;1;2\n\nc;q;x;2\nc;r;3;2\na;r;4;2\n')
        assert fr.rank_numeric(file, bootstrap=0).to_dict()["rejected"] == [
            {"row": 5, "why": "value is empty or no number"}
        ]

    @pytest.mark.parametrize("outcomes", [[1, 2, 5, 5], [2, 1, 5, 5]])
    def test_outcomes_in_conflict_reject_the_minority_and_on_a_tie_the_question(self, outcomes: list[int]) -> None:
        frame = pl.DataFrame({
            "forecaster": ["a", "b", "a", "b"], "question": ["q", "q", "r", "r"], "value": [1, 2, 3, 4],
            "outcome": outcomes,
        })  # fmt: skip
        content = fr.rank_numeric(frame, bootstrap=0).to_dict()
        assert [row["row"] for row in content["rejected"]] == [1, 2]
        more = pl.concat([frame, frame[:1].with_columns(forecaster=pl.lit("c"))])
        content = fr.rank_numeric(more, bootstrap=0).to_dict()
        assert [row["row"] for row in content["rejected"]] == [2]

    def test_score_stated_twice_counts_once_or_not_at_all(self) -> None:
        frame = pl.DataFrame({
            "forecaster": ["a", "a", "a", "b", "b", "b"], "question": ["q", "q", "r", "q", "q", "r"],
            "x": [1.0, 1.0, 2.0, 1.0, 9.0, "bad"],
        }, strict=False)  # fmt: skip
        content = fr.rank_scores(frame, lower="x", bootstrap=0, allow_rejected=True).to_dict()
        assert content["data"]["repeated"] == 1
        assert [row["row"] for row in content["rejected"]] == [4, 5, 6]
        assert content["rejected"][2]["why"] == "x is not a number"
        assert content["forecasters"] == {"a": content["forecasters"]["a"]}

    def test_most_rows_at_fault_make_no_report(self) -> None:
        frame = forecasts({"ann": 1.0}, questions=2).with_columns(value=pl.lit(None))
        with pytest.raises(fr.TooFewForecasts, match="value is empty or no number"):
            fr.rank_numeric(frame)


class TestVersions:
    TIMES = ("2026-01-01", "2026-01-02", "2026-03-01")

    def versions(self, values: list[float | None]) -> pl.DataFrame:
        """An earlier, the last and a late version by ann, and one by bob, of a question that closes in February."""
        return pl.DataFrame({
            "forecaster": ["ann", "ann", "ann", "bob"], "question": "q", "value": [*values, 5.0], "outcome": 2.0,
            "made_at": [*self.TIMES, "2026-01-05"], "closed_at": "2026-02-01",
        })  # fmt: skip

    @pytest.mark.parametrize("first", [9.0, None])
    @pytest.mark.parametrize("late", [9.0, None])
    def test_latest_before_the_close_counts_whatever_is_wrong_with_others(
        self, first: float | None, late: float | None
    ) -> None:
        frame = self.versions([first, 3.0, late])
        for report in (
            fr.rank_numeric(frame, bootstrap=0),
            fr.rank_scores(frame.with_columns(crps=pl.col("value") - 2), lower="crps", bootstrap=0),
        ):
            assert report.ranked("crps") == {"ann": (1, 1.0), "bob": (2, 3.0)}
            assert report.to_dict()["rejected"] == []
            assert report.to_dict()["data"]["superseded"] == 2

    def test_forecast_that_is_too_late_or_of_no_known_time_is_rejected(self) -> None:
        late = self.versions([9.0, 3.0, 1.0])[2:]
        content = fr.rank_numeric(late, bootstrap=0).to_dict()
        assert content["rejected"] == [{"row": 1, "why": "made_at is not before closed_at"}]
        unknown = self.versions([9.0, 3.0, 1.0]).with_columns(
            made_at=pl.col("made_at").replace("2026-01-01", "long ago")
        )
        content = fr.rank_numeric(unknown, bootstrap=0, allow_rejected=True).to_dict()
        assert content["rejected"][0] == {"row": 1, "why": "made_at is not a time"}
        assert [*content["forecasters"]] == ["bob"]

    def test_all_quantiles_of_a_version_go_with_it(self) -> None:
        frame = forecasts({"ann": 1.0, "bob": 3.0}).with_columns(made_at=pl.lit(2.0))
        crossed = frame.filter(forecaster="ann").with_columns(made_at=pl.lit(1.0), value=-pl.col("value"))
        content = fr.rank_numeric(pl.concat([crossed, frame]), bootstrap=0).to_dict()
        assert (content["rejected"], content["data"]["superseded"]) == ([], 90)


@pytest.mark.parametrize("empty", [None, float("nan"), ""])
def test_empty_column_of_quantiles_is_none(empty: float | str | None) -> None:
    frame = pl.DataFrame({"forecaster": ["a", "b"], "question": "q", "value": [1, 3], "outcome": 2, "quantile": empty})
    assert fr.rank_numeric(frame, bootstrap=0).ranked("crps") == {"a": (1, 1.0), "b": (1, 1.0)}


def test_percentages_are_hundredths() -> None:
    frame = forecasts({"ann": 1.0, "bob": 3.0})
    written = frame.with_columns((100 * pl.col("quantile")).cast(pl.Int64).cast(pl.String) + "%")
    assert fr.numeric_scores(written).equals(fr.numeric_scores(frame))


@pytest.mark.parametrize("name", ["n", "coverage", "question", "weight", "rank_range"])
def test_score_with_the_name_of_another_figure_is_refused(name: str) -> None:
    frame = pl.DataFrame({"forecaster": ["a", "b"], "question": "q", name: [1, 2]}, strict=False)
    with pytest.raises(fr.UnreadableFile, match=f"no score can be called '{name}'"):
        fr.rank_scores(frame, lower=name)


class TestSetsOfQuantiles:
    def test_scores_compare_the_levels_that_all_state(self) -> None:
        frame = forecasts({"ann": 3.0, "bob": 3.0})
        median = frame.filter((pl.col("forecaster") == "bob") | (pl.col("quantile") == 0.5))
        report = fr.rank_numeric(median, bootstrap=0).to_dict()
        full_report = fr.rank_numeric(frame.filter(quantile=0.5), bootstrap=0).to_dict()
        assert report["forecasters"]["bob"]["crps"] == pytest.approx(full_report["forecasters"]["bob"]["crps"])
        [note] = report["notes"]
        assert note.startswith("forecasts state 2 different sets of quantiles")
        assert note.endswith("crps compares them on the levels that all forecasters state, 0.5")

    def test_sets_without_a_common_level_are_not_compared(self) -> None:
        frame = forecasts({"ann": 3.0, "bob": 3.0, "cy": 2.0})
        frame = frame.filter((pl.col("forecaster") == "ann") == (pl.col("quantile") == 0.5))
        report = fr.rank_numeric(frame, bootstrap=0).to_dict()
        assert report["forecasters"]["ann"]["crps"] is None
        assert report["notes"][0].endswith("on 0.1, 0.9; 30 forecasts without all of these have no crps, by ann")


def test_report_of_many_intervals_is_short() -> None:
    generator = np.random.default_rng(1)
    levels = [0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975]
    rows = []
    for name in "abcdefgh":
        for j in range(10):
            centre = generator.normal()
            rows += [(name, f"q{j}", level, centre + 10 * level, 5.0) for level in levels]
    frame = pl.DataFrame(rows, schema=["forecaster", "question", "quantile", "value", "outcome"], orient="row")
    report = fr.rank_numeric(frame, bootstrap=50)
    assert len(report.to_text().splitlines()) < 45
    assert report.to_markdown("interval_score_0.95").count("\n") == 10


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
        report = fr.rank_scores(frame, lower="loss", higher="log", bootstrap=100).to_dict()
        expected = fr.rank_panel(panel, fr.Settings(metrics=("brier", "log"), bootstrap=100))
        assert report["rankings"]["loss"] == expected["rankings"]["brier"]
        assert report["rankings"]["log"] == expected["rankings"]["log"]
        for name, entry in report["forecasters"].items():
            assert entry["loss_se"] == pytest.approx(expected["forecasters"][name]["brier_se"])
            assert entry["rank_ranges"]["loss"] == expected["forecasters"][name]["rank_ranges"]["brier"]

    def test_missing_scores_are_left_out_and_a_score_must_be_named(self) -> None:
        frame = pl.DataFrame({"forecaster": ["a", "a", "b"], "question": [1, 2, 1], "x": [1.0, None, 3.0]})
        assert fr.rank_scores(frame, lower=["x"], bootstrap=0).ranked("x") == {"a": (1, 1.0), "b": (2, 3.0)}
        with pytest.raises(fr.UnreadableFile, match="name at least one score"):
            fr.rank_scores(frame)


class TestThresholds:
    """Forecasts as cumulative probabilities."""

    def stated(self, rows: list[tuple[str, str, float, float]], outcome: float = 4.0) -> pl.DataFrame:
        columns = ["forecaster", "question", "threshold", "probability"]
        return pl.DataFrame(rows, schema=columns, orient="row").with_columns(outcome=pl.lit(outcome))

    def test_score_is_that_of_crps_cdf(self) -> None:
        levels = [(0.0, 0.0), (5.0, 0.25), (10.0, 1.0)]
        frame = self.stated([(name, "q", x, p) for name in ("ann", "bob") for x, p in levels])
        scores = fr.numeric_scores(frame.sample(fraction=1, shuffle=True, seed=2))
        expected = fr.crps_cdf([4.0], [0.0, 5.0, 10.0], [[0.0, 0.25, 1.0]])[0]
        assert scores["crps"].to_list() == pytest.approx([expected] * 2)
        assert set(scores.columns) == {"forecaster", "question", "crps"}

    def test_fine_grid_is_the_crps_of_the_distribution(self) -> None:
        grid = np.linspace(-8, 8, 4001)
        frame = self.stated([("ann", "q", x, p) for x, p in zip(grid, stats.norm.cdf(grid), strict=True)], 0.7)
        assert fr.numeric_scores(frame)["crps"][0] == pytest.approx(scoringrules.crps_normal(0.7, 0, 1), abs=1e-5)

    def test_thresholds_that_most_state_are_compared_question_by_question(self) -> None:
        few, many = [(0.0, 0.0), (10.0, 1.0)], [(0.0, 0.0), (5.0, 0.1), (10.0, 1.0)]
        other_curve = [(0.0, 0.0), (12.0, 1.0)]
        rows = [("ann", "q", *row) for row in many] + [("bob", "q", *row) for row in few]
        rows += [("cy", "q", *row) for row in few] + [("dan", "q", *row) for row in other_curve]
        rows += [("ann", "r", *row) for row in many]
        report = fr.rank_numeric(self.stated(rows), bootstrap=0).to_dict()
        straight = fr.crps_cdf([4.0], [0.0, 10.0], [[0.0, 1.0]])[0]
        bent = fr.crps_cdf([4.0], [0.0, 5.0, 10.0], [[0.0, 0.1, 1.0]])[0]
        assert report["forecasters"]["ann"]["crps"] == pytest.approx((straight + bent) / 2)
        assert report["forecasters"]["bob"]["crps"] == pytest.approx(straight)
        assert report["forecasters"]["dan"]["crps"] is None
        assert report["notes"][0].endswith("1 forecasts without all of these have no crps, by dan")

    @pytest.mark.parametrize(
        ("rows", "why"),
        [
            ([(0.0, 0.2), (5.0, 0.1)], "the probability falls from the threshold 0 to 5"),
            ([(0.0, 0.2), (5.0, 1.1)], "probability is outside [0, 1]"),
            ([(0.0, 0.2), (0.0, 0.3)], "the threshold is stated twice"),
            ([(0.0, 0.2)], "the forecast has a single threshold"),
        ],
    )
    def test_faults_are_named(self, rows: list[tuple[float, float]], why: str) -> None:
        good = [("bob", "q", 0.0, 0.0), ("bob", "q", 9.0, 1.0)]
        frame = self.stated([*good, *(("ann", "q", *row) for row in rows)])
        content = fr.rank_numeric(frame, bootstrap=0, allow_rejected=True).to_dict()
        assert why in [row["why"] for row in content["rejected"]]
        assert [*content["forecasters"]] == ["bob"]


class TestRelativeSkill:
    def test_it_is_that_of_the_means_and_has_an_interval(self) -> None:
        frame = forecasts({"ann": 2.0, "bob": 12.0})
        content = fr.rank_numeric(frame, bootstrap=200, baseline="bob").to_dict()
        ann, bob = content["forecasters"]["ann"], content["forecasters"]["bob"]
        assert ann["relative_skill"] == pytest.approx(np.sqrt(ann["crps"] / bob["crps"]))
        assert ann["scaled_relative_skill"] == pytest.approx(ann["crps"] / bob["crps"])
        low, high = ann["relative_skill_ci"]
        assert 0 < low < ann["relative_skill"] < high < 1 < bob["relative_skill_ci"][0]
        assert content["rankings"]["relative_skill"] == ["ann", "bob"]
        assert ann["rank_ranges"]["relative_skill"] == [1, 1]

    def test_units_cancel(self) -> None:
        frame = pl.DataFrame({
            "forecaster": ["a", "b"] * 2, "question": ["q", "q", "r", "r"], "value": [3.0, 4.0, 300.0, 400.0],
            "outcome": [2.0, 2.0, 200.0, 200.0],
        })  # fmt: skip
        assert fr.rank_numeric(frame, bootstrap=0).ranked("relative_skill")["a"][1] == pytest.approx(np.sqrt(1 / 2))

    def test_one_forecaster_has_none_and_a_note(self) -> None:
        report = fr.rank_numeric(forecasts({"ann": 2.0}), bootstrap=0).to_dict()
        assert "relative_skill" not in report["rankings"]
        assert "relative skill: none of a single forecaster" in report["notes"]

    def test_baseline_is_a_forecaster(self) -> None:
        with pytest.raises(fr.InvalidSetting, match="baseline: 'cy' is no forecaster of the file; there are 'ann'"):
            fr.rank_numeric(forecasts({"ann": 2.0, "bob": 3.0}), baseline="cy")


class TestPit:
    def shares(self, frame: pl.DataFrame, bins: int) -> Any:
        return fr.rank_numeric(frame, bootstrap=0, bins=bins).to_dict()["curves"]["pit"]["forecasters"]

    def test_quantiles_spread_the_outcome_between_their_levels(self) -> None:
        frame = pl.DataFrame({
            "forecaster": "ann", "question": ["q"] * 3 + ["r"] * 3 + ["s"] * 3, "quantile": [0.1, 0.5, 0.9] * 3,
            "value": [8, 10, 15] * 3, "outcome": [9] * 3 + [10] * 3 + [20] * 3,
        })  # fmt: skip
        low, high = fr.pit_quantiles([9.0, 10.0, 20.0], [[8.0, 10.0, 15.0]] * 3, [0.1, 0.5, 0.9])
        assert self.shares(frame, 5)["ann"] == pytest.approx(fr.pit_histogram(low, high, bins=5).share.tolist())

    def test_samples_give_the_rank_of_the_outcome(self) -> None:
        frame = pl.DataFrame({
            "forecaster": "ann", "question": ["q"] * 3 + ["r"] * 3, "value": [1, 2, 3] * 2,
            "outcome": [0] * 3 + [2] * 3,
        })  # fmt: skip
        # The lowest of four ranks, and the second or third by a tie.
        assert self.shares(frame, 4)["ann"] == pytest.approx([0.5, 0.25, 0.25, 0])

    def test_thresholds_give_the_cumulative_probability(self) -> None:
        frame = pl.DataFrame({
            "forecaster": "ann", "question": "q", "threshold": [0, 10], "probability": [0.0, 1.0], "outcome": 7,
        })  # fmt: skip
        assert self.shares(frame, 4)["ann"] == [0, 0, 1, 0]


class TestMetrics:
    def test_those_that_are_named_are_made(self) -> None:
        content = fr.rank_numeric(
            forecasts({"ann": 2.0, "bob": 3.0}), metrics=["absolute_error"], bootstrap=0
        ).to_dict()
        assert [*content["rankings"]] == ["absolute_error", "adjusted_absolute_error"]
        assert "held_0.8" not in content["forecasters"]["ann"]
        assert content["curves"] == {}

    @pytest.mark.parametrize(
        ("metrics", "why"),
        [
            (["brier"], "metrics: brier is none of forecasts of numbers"),
            (["pit"], "metrics: name a score .*: crps, int"),
        ],
    )
    def test_others_are_refused(self, metrics: list[str], why: str) -> None:
        with pytest.raises(fr.InvalidSetting, match=why):
            fr.rank_numeric(forecasts({"ann": 2.0}), metrics=metrics)


def test_sample_that_is_stated_twice_counts_once_or_not_at_all() -> None:
    frame = pl.DataFrame({
        "forecaster": ["a"] * 3 + ["b"] * 2, "question": "q", "sample": [1, 2, 2, 1, 1], "value": [1, 5, 5, 4, 5],
        "outcome": 3,
    })  # fmt: skip
    content = fr.rank_numeric(frame, bootstrap=0).to_dict()
    assert content["data"]["repeated"] == 1
    assert content["forecasters"]["a"]["crps"] == pytest.approx(fr.crps_samples([3.0], [[1.0, 5.0]])[0])
    assert [row["why"] for row in content["rejected"]] == ["the sample is stated twice"] * 2


def test_pairs_are_tested_over_closing_times() -> None:
    frame = forecasts({"ann": 2.0, "bob": 6.0}).with_columns(
        closed_at=pl.lit("2026-01-") + (pl.col("question").str.slice(1).cast(pl.Int64) + 1).cast(pl.String).str.zfill(2)
    )
    [pair] = fr.rank_numeric(frame, bootstrap=0, horizon=2).to_dict()["pairs"]
    scores = fr.numeric_scores(frame).pivot("forecaster", index="question", values="crps")
    scores = scores.sort(pl.col("question").str.slice(1).cast(pl.Int64))
    expected = fr.diebold_mariano(scores["ann"], scores["bob"], horizon=2)
    figures = [pair[name] for name in ("dm_times", "difference", "dm_se", "dm_statistic", "dm_p")]
    assert figures == pytest.approx([*expected])


class TestPartsOfTheScore:
    def test_they_add_up_to_it(self) -> None:
        frame = forecasts({"ann": 3.0, "bob": 9.0})
        scores = fr.numeric_scores(frame)
        parts = scores.select("dispersion", "overprediction", "underprediction")
        assert parts.sum_horizontal().to_numpy() == pytest.approx(scores["crps"].to_numpy())
        without_median = fr.numeric_scores(frame.filter(pl.col("quantile") != 0.5))
        parts = without_median.select("dispersion", "overprediction", "underprediction")
        assert parts.sum_horizontal().to_numpy() == pytest.approx(without_median["crps"].to_numpy())
        entry = fr.rank_numeric(frame, bootstrap=0).to_dict()["forecasters"]["ann"]
        assert entry["dispersion"] == pytest.approx(2 / 3 * 0.1 * 16)
        assert entry["dispersion"] + entry["overprediction"] + entry["underprediction"] == pytest.approx(entry["crps"])

    def test_levels_that_are_not_symmetric_have_none(self) -> None:
        frame = forecasts({"ann": 3.0}).filter(pl.col("quantile") < 0.9)
        assert "dispersion" not in fr.numeric_scores(frame).columns
        assert "dispersion" not in fr.rank_numeric(frame, bootstrap=0).to_dict()["forecasters"]["ann"]

    def test_table_shows_them_beside_the_score(self) -> None:
        header = fr.rank_numeric(forecasts({"ann": 3.0, "bob": 9.0}), bootstrap=0).to_markdown("crps").splitlines()[0]
        assert header.endswith("| ranks | dispersion | overprediction | underprediction |")


class TestRelativeSkillOfAnyScore:
    FRAME = pl.DataFrame({
        "forecaster": ["a", "b"] * 2, "question": [1, 1, 2, 2], "loss": [1.0, 2.0, 1.0, 6.0],
        "gain": [1.0, 2.0, -1.0, 6.0],
    })  # fmt: skip

    def test_it_is_by_the_first_score(self) -> None:
        report = fr.rank_scores(self.FRAME, lower=["loss", "gain"], relative=True, baseline="b", bootstrap=0)
        assert report.ranked("relative_skill") == {"a": (1, pytest.approx(0.5)), "b": (2, pytest.approx(2.0))}
        assert report.to_dict()["forecasters"]["a"]["scaled_relative_skill"] == pytest.approx(0.25)
        assert "Relative skill by loss" in report.to_text()

    @pytest.mark.parametrize("score", [{"lower": "gain"}, {"higher": "loss"}])
    def test_scores_without_ratios_are_refused(self, score: dict[str, str]) -> None:
        with pytest.raises(fr.InvalidSetting, match=r"relative: .* is not a score of which lower is better"):
            fr.rank_scores(self.FRAME, **score, relative=True)

    def test_column_with_its_name_is_refused(self) -> None:
        frame = self.FRAME.rename({"loss": "relative_skill"})
        report = fr.rank_scores(frame, lower="relative_skill", bootstrap=0)
        assert report.ranked("relative_skill")["a"] == (1, 1.0)
        assert "relative_skill, lower is better" in report.to_text()
        with pytest.raises(fr.UnreadableFile, match="no score can be called 'relative_skill'"):
            fr.rank_scores(frame, lower="relative_skill", relative=True)
