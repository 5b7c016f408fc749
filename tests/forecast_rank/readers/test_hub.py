"""Files of forecast hubs: figures published by hubEvals and scoringutils, and what hubs get wrong."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import forecast_rank as fr
from forecast_rank.cli import main
from tests.forecast_rank.hub_example import HEADINGS, MODELS, write_hub


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return write_hub(tmp_path / "hub")


class TestPublishedFigures:
    """What the article "Getting started with hubEvals" prints of the same forecasts."""

    def test_scores_and_coverage_are_those_of_hubevals(self, hub: Path) -> None:
        forecasters = fr.rank(hub, format="hub", bootstrap=0).to_dict()["forecasters"]
        printed = {
            "crps": (329, 315, 228),
            "absolute_error": (401.875, 416.375, 277),
            "dispersion": (17.0, 37.7, 32.0),
            "overprediction": (79.2, 13.6, 19.3),
            "underprediction": (233, 264, 177),
            "held_0.5": (0, 0.25, 0.375),
            "held_0.8": (0, 0.5, 0.5),
            "held_0.9": (0.125, 0.5625, 0.5),
        }
        for figure, values in printed.items():
            assert [forecasters[model][figure] for model in MODELS] == pytest.approx(values, rel=0.004), figure

    def test_relative_skill_is_that_of_scoringutils(self, hub: Path) -> None:
        options = {"format": "hub", "bootstrap": 0, "baseline": "Flusight-baseline"}
        forecasters = fr.rank(hub, **options).to_dict()["forecasters"]
        skill = [forecasters[model]["relative_skill"] for model in MODELS]
        scaled = [forecasters[model]["scaled_relative_skill"] for model in MODELS]
        assert skill == pytest.approx([1.15, 1.10, 0.794], abs=0.005)
        assert scaled == pytest.approx([1, 0.957, 0.692], abs=0.0005)

    @pytest.mark.parametrize(
        ("location", "wis", "skill", "scaled"),
        [
            (
                "25",
                (179.944642857143, 162.6875, 139.369642857143),
                (1.12612125846186, 1.01812340354839, 0.872196666228429),
                (1, 0.904097490299596, 0.774513987436612),
            ),
            (
                "48",
                (478.964285714286, 467.791071428571, 316.535714285714),
                (1.15711681669639, 1.13012375159286, 0.764710039995535),
                (1, 0.976672134814704, 0.660875400790396),
            ),
        ],
    )
    def test_each_location_has_the_figures_of_hubevals_tests(
        self, tmp_path: Path, location: str, wis: tuple[float, ...], skill: tuple[float, ...], scaled: tuple[float, ...]
    ) -> None:
        hub = write_hub(tmp_path / "hub", (location,))
        forecasters = fr.rank(hub, format="hub", bootstrap=0, baseline=MODELS[0]).to_dict()["forecasters"]
        assert [forecasters[model]["crps"] for model in MODELS] == pytest.approx(wis)
        assert [forecasters[model]["relative_skill"] for model in MODELS] == pytest.approx(skill)
        assert [forecasters[model]["scaled_relative_skill"] for model in MODELS] == pytest.approx(scaled)

    def test_medians_are_scored_by_the_absolute_error(self, hub: Path) -> None:
        report = fr.rank(hub, format="hub", bootstrap=0, output_type="median")
        assert [report.ranked("absolute_error")[model][1] for model in MODELS] == [401.875, 416.375, 277]


def lines(*rows: str) -> str:
    return "\n".join(rows) + "\n"


class TestOutputTypes:
    """Each type of output by hand, on two tasks."""

    OUTPUT = "model_id,location,target_end_date,output_type,output_type_id,value"
    ORACLE = "location,target_end_date,output_type,output_type_id,oracle_value"

    def ranked(self, tmp_path: Path, output: list[str], oracle: list[str], **options: Any) -> dict[str, Any]:
        (tmp_path / "out.csv").write_text(lines(self.OUTPUT, *output))
        (tmp_path / "oracle.csv").write_text(lines(self.ORACLE, *oracle))
        files = [tmp_path / "out.csv", tmp_path / "oracle.csv"]
        return fr.rank(files, format="hub", bootstrap=0, **options).to_dict()

    def test_means_are_scored_by_the_squared_error(self, tmp_path: Path) -> None:
        output = ["a,x,2026-01-03,mean,NA,4", "b,x,2026-01-03,mean,NA,1"]
        report = self.ranked(tmp_path, output, ["x,2026-01-03,mean,NA,2"])
        assert [report["forecasters"][name]["squared_error"] for name in "ab"] == [4, 1]
        assert report["settings"]["form"] == "mean"
        assert "pit" not in report["curves"]

    def test_samples_of_a_task_are_one_forecast(self, tmp_path: Path) -> None:
        output = [f"a,x,2026-01-03,sample,{k},{value}" for k, value in enumerate((1, 6, 2, 2))]
        report = self.ranked(tmp_path, output, ["x,2026-01-03,sample,NA,3"])
        expected = fr.crps_samples([3.0], [[1.0, 6.0, 2.0, 2.0]])[0]
        assert report["forecasters"]["a"]["crps"] == pytest.approx(expected)

    def test_cdf_of_a_number_is_scored_by_the_crps(self, tmp_path: Path) -> None:
        output = [f"a,x,2026-01-03,cdf,{threshold},{p}" for threshold, p in ((0, 0), (10, 0.5), (20, 1))]
        report = self.ranked(tmp_path, output, ["x,2026-01-03,quantile,NA,5"])
        expected = fr.crps_cdf([5.0], [0.0, 10.0, 20.0], [[0.0, 0.5, 1.0]])[0]
        assert report["forecasters"]["a"]["crps"] == pytest.approx(expected)

    def test_cdf_with_outcomes_at_thresholds_is_the_ranked_probability_score(self, tmp_path: Path) -> None:
        output = [f"a,x,2026-01-03,cdf,{threshold},{p}" for threshold, p in ((1, 0.2), (2, 0.6), (3, 1))]
        oracle = [
            f"x,2026-01-03,cdf,{threshold},{happened}" for threshold, happened in (("1.0", 0), ("2.0", 1), (3, 1))
        ]
        report = self.ranked(tmp_path, output, oracle, metrics="brier,ranked_probability")
        expected = (0.2**2 + 0.4**2) / 3
        assert report["forecasters"]["a"]["ranked_probability"] == pytest.approx(expected)
        assert report["forecasters"]["a"]["brier"] == pytest.approx(expected)

    def test_pmf_options_exclude_each_other_and_have_the_order_that_is_named(self, tmp_path: Path) -> None:
        output = [f"a,x,2026-01-03,pmf,{name},{p}" for name, p in (("high", 0.5), ("low", 0.2), ("medium", 0.3))]
        oracle = [f"x,2026-01-03,pmf,{name},{int(name == 'low')}" for name in ("low", "medium", "high")]
        options = {"metrics": "brier,log,ranked_probability", "order": "low,medium,high"}
        report = self.ranked(tmp_path, output, oracle, **options)
        assert report["forecasters"]["a"]["brier"] == pytest.approx((0.64 + 0.09 + 0.25) / 3)
        assert report["forecasters"]["a"]["ranked_probability"] == pytest.approx((0.64 + 0.25) / 2)
        assert report["settings"]["file"].endswith("oracle.csv")

    def test_latest_version_of_a_time_series_is_the_target(self, tmp_path: Path) -> None:
        (tmp_path / "2026-01-03-a.csv").write_text(lines(HEADINGS, "x,2026-01-03,0,2026-01-03,t,median,,4"))
        (tmp_path / "series.csv").write_text(
            lines(
                "location,target_end_date,as_of,observation",
                "x,2026-01-03,2026-01-10,9",
                "x,2026-01-03,2026-01-17,3",
            )
        )
        report = fr.rank([*sorted(tmp_path.iterdir())], format="hub", bootstrap=0)
        assert report.ranked("absolute_error") == {"a": (1, 1.0)}


class TestFaults:
    def run(self, *arguments: object) -> int:
        return main([*map(str, arguments), "--format", "hub", "--bootstrap", "0", "--json"])

    def test_rows_at_fault_are_rejected_with_file_line_and_reason(
        self, hub: Path, capsys: pytest.CaptureFixture
    ) -> None:
        file = hub / "model-output" / "PSI-DICE" / "2022-11-19-PSI-DICE.csv"
        rows = file.read_text().splitlines()
        rows[3] = rows[3].rpartition(",")[0] + ",many"
        file.write_text(lines(*rows))
        assert self.run(hub) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["rejected"][2] == {"row": 4, "why": f"{file}: value is empty or no number"}
        assert [len(report["rejected"]), report["rejection_groups"][1]["cell"]] == [7, "many"]
        assert report["forecasters"]["PSI-DICE"]["n"] == 15
        assert self.run(hub, "--strict") == 2
        assert "row 4, PSI-DICE on 25 | 2022-11-19" in capsys.readouterr().err

    def test_pmf_rows_at_fault_name_their_file(self, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
        for model, p in (("a", 0.75), ("b", 0.7)):
            rows = [f"x,2026-01-03,0,2026-01-03,t,pmf,{name},{q}" for name, q in (("no", p), ("yes", 0.25))]
            (tmp_path / f"2026-01-03-{model}.csv").write_text(lines(HEADINGS, *rows))
        target = ["location,output_type,output_type_id,oracle_value", "x,pmf,no,1", "x,pmf,yes,0"]
        (tmp_path / "target.csv").write_text(lines(*target))
        assert self.run(tmp_path, "--allow-rejected") == 0
        rejected = json.loads(capsys.readouterr().out)["rejected"]
        assert [row["row"] for row in rejected] == [2, 3]
        assert rejected[0]["why"].startswith(f"{tmp_path / '2026-01-03-b.csv'}: probability 0.7 belongs to exclusive")

    def test_tasks_without_a_target_are_left_out_and_counted(self, hub: Path) -> None:
        file = hub / "target-data" / "oracle-output.csv"
        rows = [row for row in file.read_text().splitlines() if not row.startswith("25,2022-11-19")]
        rows.append("25,2022-11-26,wk inc flu hosp,quantile,NA,222")
        file.write_text(lines(*rows))
        report = fr.rank(hub, format="hub", bootstrap=0).to_dict()
        assert report["data"]["questions"] == 14
        assert "Warning: the target data states different values for 1 tasks, such as 25 | 2022-11-26 |" in str(
            report["notes"]
        )
        assert "42 rows of 2 tasks without target data are left out" in report["notes"]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--output-type", "pmf"], "no output_type pmf; there are median, quantile"),
            (["--columns", "event=season"], "has no column 'season' for event"),
            (["--columns", "forecaster=team"], "--columns: forecaster: of a hub name event"),
            (
                ["--baseline", "nobody"],
                "--baseline: 'nobody' is no forecaster of the file; there are 'Flusight-baseline'",
            ),
            (["--normalise"], "--normalise: not for forecasts of numbers"),
            (["--like", "pm_rank"], "--like: not for forecasts of numbers"),
            (["--metrics", "brier"], "--metrics: brier is none of forecasts of numbers; known are crps"),
        ],
    )
    def test_what_cannot_be_is_refused_by_name(
        self, hub: Path, options: list[str], message: str, capsys: pytest.CaptureFixture
    ) -> None:
        assert self.run(hub, *options) == 2
        assert message in capsys.readouterr().err

    def test_files_that_are_no_hub_are_named(self, hub: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
        assert self.run(hub / "model-output") == 2
        assert "no file holds target data" in capsys.readouterr().err
        assert self.run(hub / "target-data") == 2
        assert "no file holds model output" in capsys.readouterr().err
        other_file = tmp_path / "other.csv"
        other_file.write_text("a,b\n1,2\n")
        assert self.run(hub, other_file) == 2
        assert f"{other_file} is neither a model output" in capsys.readouterr().err
        other_file.write_text(lines(HEADINGS, "x,2026-01-03,0,2026-01-03,t,median,,4"))
        assert self.run(hub, other_file) == 2
        assert f"{other_file} has no column model_id" in capsys.readouterr().err

    @pytest.mark.parametrize("output_type", ["quantile", "sample", "cdf", "mean", "pmf"])
    def test_target_data_of_other_tasks_leave_nothing_to_rank(
        self, tmp_path: Path, output_type: str, capsys: pytest.CaptureFixture
    ) -> None:
        (tmp_path / "2026-01-03-a.csv").write_text(
            lines(HEADINGS, *(f"x,2026-01-03,0,2026-01-03,t,{output_type},{level},{level}" for level in (0.25, 0.75)))
        )
        target = ["location,output_type,output_type_id,oracle_value", f"y,{output_type},0.25,1"]
        (tmp_path / "target.csv").write_text(lines(*target))
        assert self.run(tmp_path) == 1
        assert "no forecast can be ranked" in capsys.readouterr().err

    def test_frames_are_no_hub(self) -> None:
        with pytest.raises(fr.InvalidSetting, match="format: hub reads files and folders"):
            fr.rank(pl.DataFrame({"model_id": ["a"]}), format="hub")

    def test_output_type_is_for_hubs(self, hub: Path, capsys: pytest.CaptureFixture) -> None:
        assert main([str(hub), "--output-type", "cdf"]) == 2
        assert "--output-type: only together with format hub" in capsys.readouterr().err


class TestTables:
    def test_parquet_files_give_the_same_report(self, hub: Path, tmp_path: Path) -> None:
        expected = fr.rank(hub, format="hub", bootstrap=50).to_dict()
        for file in hub.rglob("*.csv"):
            frame = pl.read_csv(
                file, null_values="NA", schema_overrides={"location": pl.String, "output_type_id": pl.String}
            )
            frame.write_parquet(file.with_suffix(".parquet"))
            file.unlink()
        report = fr.rank(hub, format="hub", bootstrap=50).to_dict()
        assert report["forecasters"] == expected["forecasters"]

    def test_missing_cells_of_r_and_of_parquet_are_the_same(self, tmp_path: Path) -> None:
        output = {"model_id": "a", "location": None, "week": "1", "output_type": "median", "output_type_id": None}
        pl.DataFrame([output | {"value": 4.0}]).write_parquet(tmp_path / "output.parquet")
        (tmp_path / "target.csv").write_text(lines("location,week,oracle_value", "NA,1,3"))
        report = fr.rank(tmp_path, format="hub", bootstrap=0)
        assert report.ranked("absolute_error") == {"a": (1, 1.0)}

    def test_events_are_the_reference_dates_unless_named(self, hub: Path) -> None:
        usual = fr.rank(hub, format="hub", bootstrap=0).to_dict()
        assert usual["data"]["events"] == 2
        assert (
            "tasks of one reference_date are one event; --columns event=COLUMN names another column" in usual["notes"]
        )
        report = fr.rank(hub, format="hub", bootstrap=0, columns="event=target_end_date", horizon=1).to_dict()
        assert report["data"]["events"] == 8
        assert [pair["dm_times"] for pair in report["pairs"]] == [8, 8, 8], "target_end_date is when a task closed"

    def test_explanation_is_printed_before_the_ranking(self, hub: Path, capsys: pytest.CaptureFixture) -> None:
        assert main([str(hub), "--format", "hub", "--explain", "--bootstrap", "0"]) == 0
        text = capsys.readouterr().out
        assert text.startswith("forecasts of numbers, as quantiles\n")
        assert "forecasts: 48 by 3 forecasters on 16 questions" in text.partition("crps, lower")[0]
