"""`manage.py rank` is the library's command, without a database."""

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from forecast_rank.cli import main

ROOT = Path(__file__).resolve().parents[2]
FORECASTS = """forecaster,question,probability,outcome,odds
ann,q1,0.7,1,0.6
bob,q1,0.4,1,0.6
ann,q2,0.2,0,0.3
bob,q2,0.1,0,0.3
ann,q3,0.9,1,0.8
bob,q3,0.8,1,0.8
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "forecasts.csv"
    path.write_text(FORECASTS)
    return path


def test_output_equals_the_library_command(file: Path, capsys: pytest.CaptureFixture) -> None:
    for options in (["--metrics", "brier,average_return", "--gamma", "0,1"], ["--like", "pm_rank"]):
        for output in ([], ["--json"]):
            stdout = StringIO()
            call_command("rank", str(file), *options, *output, stdout=stdout)
            assert main([str(file), *options, *output]) == 0
            assert stdout.getvalue().strip() == capsys.readouterr().out.strip()


def test_exit_codes(file: Path) -> None:
    with pytest.raises(CommandError, match="unknown elo") as caught:
        call_command("rank", str(file), "--metrics", "elo")
    assert caught.value.returncode == 2
    file.write_text(FORECASTS.splitlines()[0] + "\n")
    with pytest.raises(SystemExit) as stopped:
        call_command("rank", str(file), "--json", stdout=StringIO(), stderr=StringIO())
    assert stopped.value.code == 1


@pytest.mark.parametrize("database", ["postgres://nobody@127.0.0.1:1/nowhere", "sqlite:///{folder}/none.sqlite3"])
def test_database_is_neither_needed_nor_made(file: Path, tmp_path: Path, database: str) -> None:
    words = ["manage.py", "rank", str(file), "--metrics", "brier", "--bootstrap", "20", "--json"]
    environment = os.environ | {"DATABASE_URL": database.format(folder=tmp_path)}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    run = subprocess.run([sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout.splitlines()[-1])["rankings"]["brier"] == ["ann", "bob"]
    assert not (tmp_path / "none.sqlite3").exists()


def test_closed_output_pipe_ends_quietly(file: Path) -> None:
    command = f"{sys.executable} manage.py rank {file} --metrics brier --bootstrap 0 | true"
    shell = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=ROOT, capture_output=True, text=True)
    assert (shell.returncode, shell.stderr) == (0, "")


def test_unreadable_file_exits_2_with_a_sentence(tmp_path: Path) -> None:
    words = ["manage.py", "rank", str(tmp_path / "none.csv")]
    run = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 2
    assert "Traceback" not in run.stderr
    assert "No such file" in run.stderr
