"""`manage.py rank`: a file in, tables, JSON and pictures out, and no database anywhere."""

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

ROOT = Path(__file__).resolve().parents[3]
ORACLE = ROOT.parent / "shared" / "data" / "pm_rank"
CHEAP = "brier,log,average_return,alpha,calibration"

ROWS = """forecaster,question,option,probability,outcome,odds,closed_at
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
    path.write_text(ROWS)
    return path


def printed(file: Path, *words: str, **options: Any) -> str:
    out = StringIO()
    call_command("rank", str(file), *words, stdout=out, stderr=StringIO(), **options)
    return out.getvalue()


def ranked(file: Path, *words: str) -> dict[str, Any]:
    """The report that `--json` prints last, on one line."""
    text = printed(file, "--metrics", CHEAP, "--bootstrap", "50", "--json", *words)
    return dict(json.loads(text.splitlines()[-1]))


class TestOutput:
    def test_json_is_the_report_on_one_line(self, file: Path) -> None:
        report = ranked(file)
        for key in ("settings", "forecasters", "references", "rankings", "pairs", "agreement", "curves", "rejected"):
            assert key in report
        assert report["forecasters"]["ann"]["brier"] == pytest.approx((0.09 + 0.04 + 0.01) / 3)
        assert report["rankings"]["brier"] == ["ann", "bob"]
        assert report["settings"]["metrics"] == CHEAP.split(",")

    def test_out_holds_the_same(self, file: Path, tmp_path: Path) -> None:
        report = ranked(file, "--out", str(tmp_path / "report.json"))
        assert json.loads((tmp_path / "report.json").read_text()) == report

    def test_settings_say_how_it_was_made(self, file: Path) -> None:
        settings = ranked(file, "--seed", "7", "--stream", "2", "--gamma", "0,0.25", "--log-clip", "0.01")["settings"]
        assert (settings["seed"], settings["stream"], settings["log_clip"]) == (7, 2, 0.01)
        assert settings["gammas"] == ["0", "0.25"]
        assert settings["bootstrap"] == 50

    def test_tables_mark_the_best_and_show_intervals_and_references(self, file: Path) -> None:
        text = printed(file, "--metrics", "brier,log", "--bootstrap", "100")
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

    def test_names_from_a_file_are_shown_as_text(self, tmp_path: Path) -> None:
        path = tmp_path / "odd.csv"
        path.write_text(ROWS.replace("ann,", '"[red]a\x1b[31mnn[/red]",'))
        text = printed(path, "--metrics", "brier", "--bootstrap", "0")
        assert "[red]a [31mnn[/red]" in text
        assert "\x1b" not in text

    def test_rejected_rows_are_named_and_the_rest_is_ranked(self, file: Path) -> None:
        file.write_text(ROWS + "cy,q2,YES,1.2,0,0.3,2026-01-02\n")
        assert ranked(file)["rejected"] == [{"row": 10, "why": "probability 1.2 is outside [0, 1]"}]
        text = printed(file, "--metrics", "brier", "--bootstrap", "0")
        assert "1 rows rejected" in text
        assert "probability 1.2 is outside [0, 1]" in text

    def test_columns_of_no_meaning_are_mentioned(self, file: Path) -> None:
        file.write_text(ROWS.replace("closed_at", "close_at"))
        assert "columns of no meaning here: close_at" in printed(file, "--metrics", "brier", "--bootstrap", "0")

    def test_fractional_outcomes_count_where_allowed(self, file: Path) -> None:
        file.write_text(ROWS.replace("q2,YES,0.2,0,", "q2,YES,0.2,0.3,").replace("q2,YES,0.1,0,", "q2,YES,0.1,0.3,"))
        assert len(ranked(file)["rejected"]) == 2
        assert ranked(file, "--fractional-outcomes")["forecasters"]["ann"]["n"] == 3


class TestUsage:
    def refused(self, file: Path, *words: str) -> str:
        with pytest.raises(CommandError) as caught:
            printed(file, *words)
        assert caught.value.returncode == 2
        return str(caught.value)

    def test_a_wrong_setting_is_named(self, file: Path) -> None:
        assert "metrics: no elo" in self.refused(file, "--metrics", "elo")
        assert "gamma: '1.5'" in self.refused(file, "--gamma", "1.5")
        assert "bootstrap: at least 0" in self.refused(file, "--bootstrap=-5")
        assert "goes with --like" in self.refused(file, "--defects")

    def test_a_useless_file_is_named(self, tmp_path: Path) -> None:
        assert "No such file" in self.refused(tmp_path / "none.csv")
        (tmp_path / "text.txt").write_text(ROWS)
        assert "say --format" in self.refused(tmp_path / "text.txt")

    def test_strict_ends_with_the_first_bad_row(self, file: Path) -> None:
        file.write_text(ROWS.replace("0.2,0,", "2,0,"))
        assert "row 6: probability 2.0 is outside [0, 1]" in self.refused(file, "--strict")

    def test_places_for_the_results_are_looked_at_before_the_work(self, file: Path, tmp_path: Path) -> None:
        assert "its directory is not there" in self.refused(file, "--out", str(tmp_path / "none" / "report.json"))
        assert "a directory" in self.refused(file, "--out", str(tmp_path))
        assert "--plots" in self.refused(file, "--plots", str(file))

    def test_nothing_to_rank_is_a_failed_run(self, file: Path) -> None:
        for content in (ROWS.splitlines()[0] + "\n", ROWS.replace("0.", "3.")):
            file.write_text(content)
            with pytest.raises(SystemExit) as caught:
                printed(file, "--json")
            assert caught.value.code == 1


class TestWithoutADatabase:
    @pytest.mark.parametrize("database", ["postgres://nobody@127.0.0.1:1/nowhere", "sqlite:///{folder}/none.sqlite3"])
    def test_none_is_needed_and_none_is_touched(self, file: Path, tmp_path: Path, database: str) -> None:
        words = ["manage.py", "rank", str(file), "--metrics", "brier", "--bootstrap", "20", "--json"]
        environment = os.environ | {"DATABASE_URL": database.format(folder=tmp_path)}
        environment.pop("DJANGO_SETTINGS_MODULE", None)
        run = subprocess.run([sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        assert json.loads(run.stdout.splitlines()[-1])["rankings"]["brier"] == ["ann", "bob"]
        assert not (tmp_path / "none.sqlite3").exists()

    def test_bad_usage_ends_with_two_and_a_sentence(self, tmp_path: Path) -> None:
        words = ["manage.py", "rank", str(tmp_path / "none.csv")]
        run = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True)
        assert run.returncode == 2
        assert "Traceback" not in run.stderr
        assert "No such file" in run.stderr


@pytest.mark.skipif(not ORACLE.exists(), reason=f"the captured data is not at {ORACLE}")
class TestLikePmRank:
    """The package's own numbers on the same file, through the command."""

    def test_figures_are_the_packages(self) -> None:
        oracle = json.loads((ORACLE / "S.pm_rank-0.3.1.json").read_text())["metrics"]
        report = json.loads(printed(ORACLE / "S.csv", "--like", "pm_rank", "--gamma", "0,0.5", "--json"))
        found = report["forecasters"]
        for ours, theirs in {
            "brier": "brier",
            "log": "log",
            "spherical": "spherical",
            "average_return:0": "aver_default_g0.0",
            "average_return:0.5": "aver_default_g0.5",
            "pool_weight": "gbt_default",
        }.items():
            scores = oracle[theirs]["scores"]
            assert {name: entry[ours] for name, entry in found.items()} == pytest.approx(scores, abs=1e-9), ours
        assert report["rankings"]["brier"] == sorted(oracle["brier"]["ranking"], key=oracle["brier"]["ranking"].get)

    def test_defects_come_only_where_asked_for(self) -> None:
        right = json.loads(printed(ORACLE / "S.csv", "--like", "pm_rank", "--json"))
        wrong = json.loads(printed(ORACLE / "S.csv", "--like", "pm_rank", "--defects", "--json"))
        assert wrong["settings"]["defects"] is True
        assert right["forecasters"]["f00"]["calibration"] != wrong["forecasters"]["f00"]["calibration"]
        assert right["forecasters"]["f00"]["brier"] == wrong["forecasters"]["f00"]["brier"]
