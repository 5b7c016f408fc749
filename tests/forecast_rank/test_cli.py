"""The command `forecast-rank`: tables, JSON, output files and exit codes."""

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from forecast_rank.cli import main
from tests.captured import CAPTURED

QUICK_METRICS = "brier,log,average_return,alpha,calibration"

FORECASTS = """forecaster,question,option,probability,outcome,odds,closed_at
ann,q1,a,0.7,1,0.6,2026-01-01
ann,q1,b,0.3,0,0.45,2026-01-01
bob,q1,a,0.4,1,0.6,2026-01-01
bob,q1,b,0.6,0,0.45,2026-01-01
ann,q2,YES,0.2,0,0.3,2026-01-02
bob,q2,YES,0.1,0,0.3,2026-01-02
ann,q3,YES,0.9,1,0.8,2026-01-03
bob,q3,YES,0.8,1,0.8,2026-01-03
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "forecasts.csv"
    path.write_text(FORECASTS)
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture) -> Any:
    """Runs the command on a file; returns its standard output. The exit code must be 0."""

    def run(file: Path, *options: str) -> str:
        assert main([str(file), *options]) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def run_json(run: Any) -> Any:
    """The report of a quick run with `--json`."""

    def run_json(file: Path, *options: str) -> dict[str, Any]:
        return dict(json.loads(run(file, "--metrics", QUICK_METRICS, "--bootstrap", "50", "--json", *options)))

    return run_json


class TestOutput:
    def test_json_is_the_report_on_one_line(self, file: Path, run_json: Any) -> None:
        report = run_json(file)
        for key in ("settings", "forecasters", "references", "rankings", "pairs", "agreement", "curves", "rejected"):
            assert key in report
        assert report["forecasters"]["ann"]["brier"] == pytest.approx((0.09 + 0.04 + 0.01) / 3)
        assert report["rankings"]["brier"] == ["ann", "bob"]
        assert report["settings"]["metrics"] == QUICK_METRICS.split(",")
        assert report["settings"]["file"] == str(file)

    def test_out_file_holds_the_same_report(self, file: Path, tmp_path: Path, run_json: Any) -> None:
        report = run_json(file, "--out", str(tmp_path / "report.json"))
        assert json.loads((tmp_path / "report.json").read_text()) == report

    def test_settings_of_the_report_are_the_options(self, file: Path, run_json: Any) -> None:
        options = ("--seed", "7", "--stream", "2", "--gamma", "0,0.25", "--log-clip", "0.01")
        settings = run_json(file, *options)["settings"]
        assert (settings["seed"], settings["stream"], settings["log_clip"]) == (7, 2, 0.01)
        assert settings["gammas"] == ["0", "0.25"]
        assert settings["bootstrap"] == 50

    def test_tables_mark_the_best_and_show_intervals_and_references(self, file: Path, run: Any) -> None:
        rows = FORECASTS.splitlines()[1:]
        file.write_text(FORECASTS + "\n".join(row.replace(",q", ",r") for row in rows) + "\n")
        text = run(file, "--metrics", "brier,log", "--bootstrap", "100")
        lines = text.splitlines()
        start = next(k for k, line in enumerate(lines) if line.startswith("Brier score"))
        best, second = (next(line for line in lines[start:] if f"  {name} " in line) for name in ("ann", "bob"))
        assert best.startswith("1 ")
        assert "0.0467 [" in best
        assert "]*" in best
        assert "]*" not in second
        for reference in ("(market)", "(uniform)", "(ensemble)"):
            assert reference in text
        assert "Log score, natural, clipped at 1e-06" in text

    def test_terminal_shows_the_first_forecasters_and_json_all(self, tmp_path: Path, run: Any, run_json: Any) -> None:
        lines = ["forecaster,question,option,probability,outcome,odds"]
        for person in range(60):
            lines += [f"p{person:02},q{k},YES,{0.5 + person / 200},1,0.5" for k in range(3)]
        many = tmp_path / "many.csv"
        many.write_text("\n".join(lines) + "\n")
        text = run(many, "--metrics", "brier", "--bootstrap", "0", "--pairs", "0")
        brier = text.split("Accuracy")[0]
        assert "; 10 more in the JSON report" in brier
        assert [("p59" in brier, "p10" in brier, "p09" in brier), ("(ensemble)" in brier, "(market)" in brier)] == [
            (True, True, False),
            (True, True),
        ]
        assert len(run_json(many)["forecasters"]) == 60

    def test_names_are_printed_without_markup_or_control_characters(self, tmp_path: Path, run: Any) -> None:
        path = tmp_path / "odd.csv"
        path.write_text(FORECASTS.replace("ann,", '"[red]a\x1b[31mnn[/red]",'))
        text = run(path, "--metrics", "brier", "--bootstrap", "0")
        assert "[red]a [31mnn[/red]" in text
        assert "\x1b" not in text

    def test_rejected_rows_are_listed_and_the_others_ranked(self, file: Path, run: Any, run_json: Any) -> None:
        file.write_text(FORECASTS + "cy,q2,YES,1.2,0,0.3,2026-01-02\n")
        report = run_json(file)
        assert report["rejected"] == [{"row": 10, "why": "probability 1.2 is outside [0, 1]"}]
        assert [(group["count"], group["first"], group["cell"]) for group in report["rejection_groups"]] == [
            (1, 10, "1.2")
        ]
        text = run(file, "--metrics", "brier", "--bootstrap", "0")
        assert "1 rows rejected" in text
        assert "line 10: 1.2" in text
        assert "probability 1.2 is outside [0, 1]" in text

    def test_rejected_rows_are_printed_in_groups(self, file: Path, run: Any) -> None:
        bad = [f"cy,q{k},YES,{cell}" for k, cell in enumerate(["1.2,0", "0.5,", "7,0", "0.5,won"])]
        file.write_text(FORECASTS + "".join(f"{line},0.3,2026-01-02\n" for line in bad))
        lines = run(file, "--metrics", "brier", "--bootstrap", "0").partition("Rejected rows: 4\n")[2].splitlines()
        cells = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines[1:] if line.strip()]
        assert [line[:3] for line in cells] == [
            ["2", "probability is outside [0, 1]", "line 10: 1.2"],
            ["1", "outcome is empty", "line 11"],
            ["1", "outcome 'won' is not a number", "line 13: 'won'"],
        ]
        assert all(len(line) == 4 for line in cells), "each with a way to mend it"

    def test_explanation_comes_before_the_ranking(self, file: Path, run: Any, capsys: pytest.CaptureFixture) -> None:
        file.write_text(FORECASTS.replace(",", ";").replace("probability", "Probability (%)").replace("0.", "0,"))
        options = ("--metrics", "brier", "--bootstrap", "0", "--explain")
        understood, _, ranking = run(file, *options).partition("\n\n")
        facts = dict(line.split("  ", 1) for line in understood.splitlines() if "  " in line)
        facts = {name: fact.strip() for name, fact in facts.items()}
        assert facts["format"] == "CSV"
        assert facts["columns are separated by"] == "';'"
        assert facts["hundredths by heading"] == "Probability (%)"
        assert facts["decimal commas"] == "probability (8 cells), odds (8 cells)"
        assert facts["rows"].startswith("8, of which 4 are rejected")
        assert "Brier score" in ranking
        assert main([str(file), *options, "--json"]) == 0
        output = capsys.readouterr()
        assert output.err.startswith(understood)
        assert json.loads(output.out)["rankings"]["brier"]

    def test_explanation_of_a_file_that_can_not_be_ranked(self, file: Path, capsys: pytest.CaptureFixture) -> None:
        file.write_text(FORECASTS.replace("0.", "3."))
        assert main([str(file), "--explain"]) == 1
        assert "8, of which 8 are rejected" in capsys.readouterr().out

    def test_unknown_columns_are_named(self, file: Path, run: Any) -> None:
        file.write_text(FORECASTS.replace("closed_at", "close_at"))
        assert "unknown columns, ignored: close_at" in run(file, "--metrics", "brier", "--bootstrap", "0")

    def test_plots_are_drawn_into_the_folder(self, file: Path, tmp_path: Path, run: Any) -> None:
        run(file, "--metrics", "brier,log", "--bootstrap", "20", "--plots", str(tmp_path / "plots"))
        assert (tmp_path / "plots" / "ranks.svg").read_text().startswith("<?xml")

    @pytest.mark.parametrize(("source", "packed"), [("-", True), ("<(cat)", False)])
    def test_standard_input_and_pipes_are_read(self, source: str, packed: bool) -> None:
        command = f"{sys.executable} -m forecast_rank {source} --format csv --metrics brier --bootstrap 0 --json"
        content = gzip.compress(FORECASTS.encode()) if packed else FORECASTS.encode()
        shell = subprocess.run(["bash", "-c", command], input=content, capture_output=True, check=True)
        assert json.loads(shell.stdout)["rankings"]["brier"] == ["ann", "bob"]

    def test_format_of_standard_input_is_that_of_its_content(
        self, monkeypatch: pytest.MonkeyPatch, run_json: Any
    ) -> None:
        rows = [
            {"forecaster": name, "question": "q", "probability": p, "outcome": 1}
            for name, p in (("a", 0.9), ("b", 0.6))
        ]
        content = "\n".join(map(json.dumps, rows)).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert run_json(Path("-"), "--metrics", "brier")["rankings"]["brier"] == ["a", "b"]

    def test_closed_output_pipe_ends_quietly(self, file: Path) -> None:
        command = f"{sys.executable} -m forecast_rank {file} --metrics brier --bootstrap 0 | true"
        shell = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
        assert (shell.returncode, shell.stderr) == (0, "")


class TestPublishedFormats:
    PROBLEMS = [
        {"problem_id": 1, "options": ["Ada", "Bo"], "correct_answer": "Ada", "metadata": {}},
        {"problem_id": 2, "options": ["May", "June"], "correct_answer": "June", "metadata": {}},
    ]

    @pytest.fixture
    def files(self, tmp_path: Path) -> list[str]:
        vectors = [
            {"problem_id": number, "username": name, "timestamp": "2026-01-01T10:00:00Z", "prediction": [p, 1 - p]}
            for name, p in (("ann", 0.75), ("bob", 0.5))
            for number in (1, 2)
        ]
        (tmp_path / "predictions.json.gz").write_bytes(
            gzip.compress(json.dumps([*vectors, {"problem_id": 3}]).encode())
        )
        (tmp_path / "metadata.json").write_text(json.dumps(self.PROBLEMS))
        return [str(tmp_path / "predictions.json.gz"), str(tmp_path / "metadata.json")]

    def test_files_of_good_judgment_open_are_ranked(self, files: list[str], capsys: pytest.CaptureFixture) -> None:
        options = ["--format", "gjo", "--metrics", "brier", "--bootstrap", "0"]
        assert main([*files, *options, "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["forecasters"]["ann"]["brier"] == pytest.approx((0.0625 + 0.5625) / 2)
        assert report["rankings"]["brier"] == ["bob", "ann"]
        assert report["rejected"] == [{"row": 5, "why": "username is missing"}]
        assert report["settings"]["file"] == " ".join(files)
        assert main([*files, *options]) == 0
        assert "Warning: closed_at is empty in all rows" in capsys.readouterr().out

    def test_several_files_need_a_format_and_the_format_its_files(
        self, files: list[str], capsys: pytest.CaptureFixture
    ) -> None:
        assert main(files) == 2
        assert "several files need --format gjo|" in capsys.readouterr().err
        assert main([files[0], "--format", "gjo"]) == 2
        message = capsys.readouterr().err
        assert f"{files[0]}: none of them holds the problems' metadata" in message

    def test_reasons_name_the_file_among_several(self, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
        names = [f"{name}.json" for name in ("ann", "bob")]
        for name in names:
            content = {"model": name, "forecasts": [{"source": "metaculus", "id": "7", "forecast": "high"}]}
            (tmp_path / name).write_text(json.dumps(content))
        assert main([*(str(tmp_path / name) for name in names), "--format", "forecastbench", "--explain"]) == 1
        vectors = capsys.readouterr().out
        assert all(f"{tmp_path / name}: forecast 'high' is not a number" in vectors for name in names)


class TestExitCodes:
    @pytest.fixture
    def refusal(self, capsys: pytest.CaptureFixture) -> Any:
        """Runs the command, which must exit with 2; returns its message."""

        def refusal(file: Path, *options: str) -> str:
            assert main([str(file), *options]) == 2
            output = capsys.readouterr()
            assert output.out == ""
            return output.err

        return refusal

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--metrics", "elo"], "--metrics: unknown elo"),
            (["--gamma", "1.5"], "--gamma: '1.5'"),
            (["--bootstrap=-5"], "--bootstrap: at least 0"),
        ],
    )
    def test_wrong_setting_is_named(self, file: Path, refusal: Any, options: list[str], message: str) -> None:
        assert message in refusal(file, *options)

    def test_unreadable_file_is_named(self, tmp_path: Path, refusal: Any) -> None:
        assert "none.csv: No such file" in refusal(tmp_path / "none.csv")
        (tmp_path / "text.txt").write_text("Who said what?")
        assert "use --format" in refusal(tmp_path / "text.txt")

    def test_strict_names_the_first_rejected_row(self, file: Path, refusal: Any) -> None:
        file.write_text(FORECASTS.replace("0.2,0,", "2,0,"))
        assert "row 6: probability 2 is outside [0, 1]" in refusal(file, "--strict")

    def test_output_paths_are_checked_before_the_file_is_read(self, tmp_path: Path, refusal: Any) -> None:
        missing, folder, file = tmp_path / "none.csv", tmp_path / "none" / "report.json", tmp_path / "file"
        file.touch()
        assert "its directory does not exist" in refusal(missing, "--out", str(folder))
        assert "is a directory" in refusal(missing, "--out", str(tmp_path))
        assert "--plots" in refusal(missing, "--plots", str(file))

    @pytest.mark.parametrize("content", [FORECASTS.splitlines()[0] + "\n", FORECASTS.replace("0.", "3.")])
    @pytest.mark.parametrize("options", [["--json"], ["--json", "--allow-rejected"]])
    def test_file_without_usable_forecasts_exits_1(
        self, file: Path, content: str, options: list[str], capsys: pytest.CaptureFixture
    ) -> None:
        file.write_text(content)
        assert main([str(file), *options]) == 1
        output = capsys.readouterr()
        assert "no forecast can be ranked" in output.err
        assert output.err.endswith("--explain shows how the file was understood\n")
        assert output.out == ""

    def test_most_rows_rejected_exits_1_without_a_report(
        self, file: Path, tmp_path: Path, run_json: Any, capsys: pytest.CaptureFixture
    ) -> None:
        report = tmp_path / "report.json"
        bad = "".join(f"cy,q{k},YES,1.2,0,0.3,2026-01-02\n" for k in range(2, 11))
        file.write_text(FORECASTS + bad)  # 9 of 17 rows
        assert main([str(file), "--out", str(report)]) == 1
        output = capsys.readouterr()
        assert (output.out, report.exists()) == ("", False)
        assert "9 of 17 rows are rejected; --allow-rejected ranks the others" in output.err
        assert "9 rows: probability is outside [0, 1], first at line 10 (1.2); write a number in [0, 1]" in output.err
        assert run_json(file, "--allow-rejected")["rankings"]["brier"] == ["ann", "bob"]
        file.write_text(FORECASTS + bad[: bad.rindex("cy")])  # 8 of 16: half, not more
        assert run_json(file)["data"]["rejected"] == 8


def test_library_and_command_import_no_django(file: Path) -> None:
    code = (
        "import sys, forecast_rank, forecast_rank.cli; status = forecast_rank.cli.main(sys.argv[1:]);"
        "sys.exit(status or 3 * any(name.split('.')[0] == 'django' for name in sys.modules))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    options = [str(file), "--metrics", "brier", "--bootstrap", "0", "--json"]
    process = subprocess.run([sys.executable, "-c", code, *options], env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout)["rankings"]["brier"] == ["ann", "bob"]


@pytest.mark.captured
class TestLikePmRank:
    """The package's own output on the same file."""

    def test_figures_equal_the_package(self, run: Any) -> None:
        expected = json.loads((CAPTURED / "pm_rank" / "S.pm_rank-0.3.1.json").read_text())["metrics"]
        report = json.loads(run(CAPTURED / "pm_rank" / "S.csv", "--like", "pm_rank", "--gamma", "0,0.5", "--json"))
        for ours, theirs in {
            "brier": "brier",
            "log": "log",
            "spherical": "spherical",
            "average_return:0": "aver_default_g0.0",
            "average_return:0.5": "aver_default_g0.5",
            "pool_weight": "gbt_default",
        }.items():
            figures = {name: entry[ours] for name, entry in report["forecasters"].items()}
            assert figures == pytest.approx(expected[theirs]["scores"], abs=1e-9), ours
        ranks = expected["brier"]["ranking"]
        assert report["rankings"]["brier"] == sorted(ranks, key=ranks.get)
