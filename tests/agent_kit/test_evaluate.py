"""`arena-agent evaluate`: the figures of `rank` on the rows that it writes, and an agent that is handed tasks alone."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

import forecast_rank
from arena_agent.canonical import sha256
from arena_agent.cli import main
from tests.agent_kit.datasets import sealed, write_dataset, write_lines
from tests.agent_kit.test_check import agent_file
from tests.agent_kit.test_run import EVEN
from tests.documentation import notebook_code
from tests.lazy_modules import pl

pytestmark = pytest.mark.slow

FIGURES = ("n", "coverage", "brier", "brier_ci", "alpha", "alpha_ci", "adjusted_brier")
PRICES = "def forecast(self, question): return question.prices or question.even()"


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def evaluated(capfd: pytest.CaptureFixture[str], file: str, data: Any, *options: str) -> tuple[int, Any, str]:
    """Exit code, report and standard error."""
    code = main(["evaluate", file, "--data", str(data), "--json", *options])
    output = capfd.readouterr()
    return code, json.loads(output.out) if output.out else None, output.err


def test_figures_are_those_of_rank_to_the_last_bit(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data, out = write_dataset(tmp_path / "data", 60, days=2), tmp_path / "out"
    code, report, _ = evaluated(capfd, agent_file(tmp_path, PRICES), data, "--out", str(out), "--workers", "3")
    assert code == 0
    assert json.loads((out / "report.json").read_text()) == report
    call_command("rank", out / "forecasts.csv", out=out / "rank.json", json=True)
    ranked = json.loads((out / "rank.json").read_text())
    entry = ranked["forecasters"]["own"]
    assert {name: report[name] for name in FIGURES} == {name: entry[name] for name in FIGURES}
    assert report["pairs"] == [pair for pair in ranked["pairs"] if "own" in (pair["first"], pair["second"])]
    assert len(report["pairs"]) == 3
    assert None not in (report["brier_ci"], report["alpha_ci"])
    assert (report["agent"], report["track"], report["faults"]) == ("own", "closed", {"count": 0, "first": []})
    assert "may know what happened" in report["caution"]
    rows = forecast_rank.read(out / "forecasts.csv", strict=True)
    assert rows.panel.forecasters == ["model-0", "model-1", "model-2", "own"]


def test_questions_asked_twice_count_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    evaluated(capfd, agent_file(tmp_path, EVEN), write_dataset(tmp_path / "data", 40, days=2), "--out", str(out))
    rows = pl.read_csv(out / "forecasts.csv", schema_overrides={"question": pl.String})
    assert rows["weight"].unique().to_list() == [0.5]
    assert rows["question"].n_unique() == 40
    assert rows.filter(forecaster="own").height == rows.filter(forecaster="model-1").height


def test_digest_depends_on_dataset_and_answers_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file, data = agent_file(tmp_path, EVEN), write_dataset(tmp_path / "data", 10)
    first, again = (evaluated(capfd, file, data, "--workers", workers)[1]["digest"] for workers in ("1", "2"))
    other_digest = evaluated(capfd, file, write_dataset(tmp_path / "other", 10, seed=1))[1]["digest"]
    priced = evaluated(capfd, agent_file(tmp_path, PRICES), data)[1]["digest"]
    assert first == again
    assert len({first, other_digest, priced}) == 3


SPY = """\
def forecast(self, question):
    import os, sys, pathlib
    with open({notes!r}, 'a') as notes:
        print(sys.argv, os.getcwd(), os.listdir(), sorted(os.environ), file=notes)
    return question.even()
"""


def test_agent_is_handed_tasks_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    notes, data = tmp_path / "notes", write_dataset(tmp_path / "secret-data", 3)
    code, _, _ = evaluated(capfd, agent_file(tmp_path, SPY.format(notes=str(notes))), data)
    assert code == 0
    notes_text = notes.read_text()
    assert len(notes_text.splitlines()) == 3
    assert "secret-data" not in notes_text
    assert "outcomes" not in notes_text


LATE = """\
def forecast(self, question):
    import time
    if question.id == '1001':
        time.sleep(60)
    if question.id == '1002':
        __import__('os')._exit(3)
    if question.id == '1003':
        raise ValueError('no idea')
    return question.even()
"""


def test_failures_cost_their_tasks_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = write_dataset(tmp_path / "data", 10)
    code, report, _ = evaluated(capfd, agent_file(tmp_path, LATE), data, "--timeout", "2")
    assert code == 0
    assert report["faults"]["first"] == [
        "batch-1: the agent did not answer within 2 seconds",
        "batch-2: the agent's process ended with code 3",
        "batch-3: question 1003: ValueError: no idea",
    ]
    assert (report["n"], report["coverage"]) == (7, 0.7)


def test_agent_without_any_forecast_fails(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = agent_file(tmp_path, "def forecast(self, question): return {}")
    code, report, error = evaluated(capfd, file, write_dataset(tmp_path / "data", 3))
    assert (code, report) == (1, None)
    assert "own gave no forecast that can be scored" in error
    assert '"YES" has no probability' in error


def test_outcomes_that_contradict_each_other_are_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = write_dataset(tmp_path / "data", 3)
    rows = [json.loads(line) | {"outcome": 1} for line in (data / "outcomes.jsonl").read_text().splitlines()]
    write_lines(data / "outcomes.jsonl", rows)
    code, _, error = evaluated(capfd, agent_file(tmp_path, EVEN), sealed(data))
    assert (code, "the rows of the dataset can not be scored" in error) == (1, True), error


def _drop_manifest(data: Path) -> None:
    (data / "manifest.json").unlink()


def _edit_outcomes(data: Path) -> None:
    (data / "outcomes.jsonl").write_text("{}\n")


def _edit_manifest(data: Path) -> None:
    manifest = json.loads((data / "manifest.json").read_text())
    (data / "manifest.json").write_text(json.dumps(manifest | {"from": "2026-01-01"}))


def _new_format(data: Path) -> None:
    manifest = json.loads((data / "manifest.json").read_text()) | {"format": 2}
    manifest["sha256"] = sha256({name: value for name, value in manifest.items() if name != "sha256"})
    (data / "manifest.json").write_text(json.dumps(manifest))


def _nest_manifest(data: Path) -> None:
    (data / "manifest.json").write_text("[" * 200_000)


def _name_no_number(data: Path) -> None:
    manifest = json.loads((data / "manifest.json").read_text())
    (data / "manifest.json").write_text(json.dumps(manifest | {"tasks": float("inf")}))


def _break_task(data: Path) -> None:
    lines = (data / "tasks.jsonl").read_text().splitlines()
    (data / "tasks.jsonl").write_text("\n".join([lines[0], "{}"]))
    sealed(data)


def _break_block(data: Path) -> None:
    write_lines(data / "tasks.jsonl", [{"task": "a", "blocks": {"QUESTIONS": '["question_id"]\nrubbish'}}])
    sealed(data)


def _break_outcome(data: Path) -> None:
    write_lines(data / "outcomes.jsonl", [{"question_id": "1000", "option": "YES", "outcome": 0.5}])
    sealed(data)


def _drop_column(data: Path) -> None:
    pl.DataFrame({"forecaster": ["a"]}).write_parquet(data / "forecasts.parquet")
    sealed(data)


def _take_name(data: Path) -> None:
    table = pl.read_parquet(data / "forecasts.parquet").with_columns(pl.lit("own").alias("forecaster"))
    table.write_parquet(data / "forecasts.parquet")
    sealed(data)


BROKEN = {
    _drop_manifest: "manifest.json: there is no such file",
    _edit_outcomes: "outcomes.jsonl: its SHA-256 is not that of the manifest",
    _edit_manifest: "manifest.json: its sha256 is not that of its content",
    _new_format: "its format is 2; this version reads 1",
    _nest_manifest: "manifest.json: it is nested too deeply",
    _name_no_number: "manifest.json: Infinity is not a JSON number",
    _break_task: "tasks.jsonl, line 2: KeyError: 'task'",
    _break_block: "tasks.jsonl, line 1: QUESTIONS: line 2 is not JSON",
    _break_outcome: "the outcome of question 1000 must be 0 or 1",
    _drop_column: "forecasts.parquet",
    _take_name: "'own' is the name of a forecaster of this dataset",
}


@pytest.mark.parametrize("damage", BROKEN, ids=lambda damage: damage.__name__)
def test_damaged_dataset_is_refused_by_file(tmp_path: Path, capfd: pytest.CaptureFixture[str], damage: Any) -> None:
    data = write_dataset(tmp_path / "data", 4)
    damage(data)
    code, _, error = evaluated(capfd, agent_file(tmp_path, EVEN), data)
    assert code == 2
    assert BROKEN[damage] in error


def test_dataset_of_an_address_is_downloaded_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARENA_AGENT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ARENA_AGENT_TOKEN", "arena_secret")
    data, file = write_dataset(tmp_path / "data", 10), agent_file(tmp_path, EVEN)
    with HTTPServer() as server:
        for path in data.iterdir():
            server.expect_request(f"/data/datasets/spring/{path.name}").respond_with_data(path.read_bytes())
        address = server.url_for("/data/datasets/spring/")
        code, report, error = evaluated(capfd, file, address)
        assert code == 0, error
        assert len(server.log) == 4
        assert {request.headers.get("Authorization") for request, _ in server.log} == {None}
        assert evaluated(capfd, file, address)[1]["digest"] == report["digest"]
        assert len(server.log) == 5
        code, _, error = evaluated(capfd, file, server.url_for("/nowhere"))
        assert (code, "nowhere/manifest.json: 500" in error) == (1, True)
        code, _, error = evaluated(capfd, file, "http://a..example/data")
        assert (code, "is no name of a host" in error) == (2, True)
    assert evaluated(capfd, file, data)[1]["digest"] == report["digest"]


def test_download_that_drips_ends(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARENA_AGENT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("arena_agent.download.PATIENCE_S", 0.2)
    monkeypatch.setattr("arena_agent.download.SLOWEST_BYTES_PER_S", 10**9)

    def drip(_: Request) -> Response:
        return Response(chunk for chunk in iter(lambda: time.sleep(0.05) or b"{" * 65536, None))

    with HTTPServer() as server:
        server.expect_request("/data/manifest.json").respond_with_handler(drip)
        code, _, error = evaluated(capfd, agent_file(tmp_path, EVEN), server.url_for("/data"))
    assert (code, "came in time; too slow" in error) == (1, True)


def test_report_is_a_table_for_people(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = write_dataset(tmp_path / "data")
    assert main(["evaluate", agent_file(tmp_path, EVEN), "--data", str(data)]) == 0
    output = capfd.readouterr().out
    assert "own beside the models" in output
    assert "own against Model [0]: -" in output
    assert "own against model-1: -" in output
    assert "│ Model [0]" in output
    assert json.loads(Path("report.json").read_text())["agent"] == "own"
    assert not Path("forecasts.csv").exists()


@pytest.mark.thorough
def test_ten_thousand_tasks_cost_little_time_and_memory(tmp_path: Path) -> None:
    """Processor time, which other work on the machine does not change: 20 seconds, and 300 MB."""
    data, file = write_dataset(tmp_path / "data", 10_000), agent_file(tmp_path, EVEN)
    script = (
        "import re, resource, sys\n"
        "from arena_agent.cli import main\n"
        f"code = main(['evaluate', {file!r}, '--data', {str(data)!r}])\n"
        "own, agent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))\n"
        "seconds = own.ru_utime + own.ru_stime + agent.ru_utime + agent.ru_stime\n"
        "peak = re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]\n"  # maxrss would include pytest's
        "print(code, seconds, int(peak) / 1024, file=sys.stderr)\n"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    code, seconds, megabytes = map(float, process.stderr.split())
    assert code == 0
    assert seconds < 20
    assert megabytes < 300


def test_notebook_evaluates_two_agents(tmp_path: Path) -> None:
    environment = os.environ | {"ARENA_DATASET": str(write_dataset(tmp_path / "data"))}
    command = [sys.executable, "-c", notebook_code("evaluate_an_agent.ipynb")]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert re.findall(r"^(\S+): Brier 0\.\d{4} .* on (\d+) questions$", ran.stdout, re.MULTILINE) == [
        ("as-the-market", "40"),
        ("humble", "40"),
    ]
    assert ran.stdout.count("faults 0") == 2
