"""`arena-agent` against the arena itself: a week and its questions, over HTTP."""

import json
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from pytest_django.live_server_helper import LiveServer

from agents.models import Attempt, Decision, Forecast, ModelCall, Receipt, Registration, Submission, Trade
from agents.services.registrations import register_external_agent
from tests.agent_kit.test_check import agent_file
from tests.commands import run
from tests.venue import DECISION, SUNDAY, Venue

AGENT = """\
def forecast(self, question): return question.prices or question.even()
def trade(self, portfolio, markets): return [Bet(markets[0], 'YES', portfolio.max_bet / 4)]
"""
BROKEN = """\
def forecast(self, question): return 1 / 0
def trade(self, portfolio, markets): return []
"""


@pytest.fixture
def week(venue: Venue, settings: Any) -> str:
    """An open week and open questions. Returns the token of an agent that has answered nothing yet."""
    token = register_external_agent(name="Visitor", protocol="both", at=SUNDAY - timedelta(days=1)).token
    venue.market("Will it rain?")
    venue.market("Lakers or Celtics?", {"Lakers": "0.55", "Celtics": "0.45"})
    run("sync_markets", SUNDAY)
    run("start_cohort", SUNDAY)
    run("run_decisions", DECISION)
    run("run_forecasts", DECISION + timedelta(minutes=1))
    settings.ARENA_CLOCK = DECISION + timedelta(minutes=10)
    return token


def arena_agent(tmp_path: Path, token: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "arena_agent", *arguments, "--json"]
    environment = {"ARENA_AGENT_HOME": str(tmp_path / "home"), "ARENA_AGENT_TOKEN": token, "PATH": ""}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)


@pytest.mark.django_db(transaction=True)
def test_agent_plays_the_open_week_once(week: str, live_server: LiveServer, tmp_path: Path) -> None:
    file = agent_file(tmp_path, AGENT)
    played = arena_agent(tmp_path, week, "run", file, "--once", "--url", live_server.url)
    assert played.returncode == 0, played.stderr
    assert json.loads(played.stdout) == {"answered": 3, "refused": 0, "failed": 0, "pending": 0}
    decision = Decision.objects.get(agent__family__slug="visitor")
    assert (decision.status, decision.action, str(Trade.objects.get().amount)) == ("completed", "BET", "625.00")
    assert Forecast.objects.filter(family__slug="visitor").count() == 4
    again = arena_agent(tmp_path, week, "run", file, "--once", "--url", live_server.url)
    assert (again.returncode, json.loads(again.stdout)["answered"]) == (0, 0)
    assert ModelCall.objects.filter(model="external/visitor").count() == 3


@pytest.mark.django_db(transaction=True)
def test_failing_forecast_costs_no_decision(week: str, live_server: LiveServer, tmp_path: Path) -> None:
    played = arena_agent(tmp_path, week, "run", agent_file(tmp_path, BROKEN), "--once", "--url", live_server.url)
    assert (played.returncode, json.loads(played.stdout)["failed"]) == (1, 2)
    assert Decision.objects.get(agent__family__slug="visitor").action == "HOLD"
    assert not Forecast.objects.filter(family__slug="visitor").exists()


@pytest.mark.django_db(transaction=True)
def test_unknown_token_has_no_access(week: str, live_server: LiveServer, tmp_path: Path) -> None:
    file = agent_file(tmp_path, AGENT)
    refused = arena_agent(tmp_path, "arena_wrong", "run", file, "--once", "--url", live_server.url)
    assert refused.returncode == 3
    assert "the token is unknown or revoked" in refused.stderr


@pytest.mark.django_db(transaction=True)
def test_waiting_loop_answers_as_soon_as_a_task_is_open(
    week: str, live_server: LiveServer, settings: Any, tmp_path: Path
) -> None:
    opened, settings.ARENA_CLOCK = settings.ARENA_CLOCK, DECISION - timedelta(minutes=1)
    command = [sys.executable, "-m", "arena_agent", "run", agent_file(tmp_path, AGENT), "--url", live_server.url]
    environment = {"ARENA_AGENT_HOME": str(tmp_path / "home"), "ARENA_AGENT_TOKEN": week, "PATH": ""}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        while not Registration.objects.exclude(last_used_at=None).exists():
            time.sleep(0.01)
        settings.ARENA_CLOCK = opened
        assert process.stdout is not None
        events = [process.stdout.readline().partition(" ")[0] for _ in range(3)]
    finally:
        process.terminate()
        process.wait(timeout=30)
    assert events == ["answered"] * 3


@pytest.mark.django_db(transaction=True)
def test_receipts_of_the_loop_are_verified_offline_and_against_an_archive(
    week: str, live_server: LiveServer, tmp_path: Path
) -> None:
    file, key = agent_file(tmp_path, AGENT), tmp_path / "keys.json"
    assert arena_agent(tmp_path, week, "run", file, "--once", "--url", live_server.url).returncode == 0
    output = arena_agent(tmp_path, week, "receipts", "--url", live_server.url)
    assert len(json.loads(output.stdout)["receipts"]) == 3
    (tmp_path / "receipts.json").write_text(output.stdout)
    key.write_bytes(httpx.get(f"{live_server.url}/.well-known/arena-chain.json").content)
    run("export_dataset", DECISION + timedelta(hours=1), "--format", "csv", out=tmp_path / "archive")
    options = [str(tmp_path / "receipts.json"), "--key", str(key), "--archive", str(tmp_path / "archive")]
    verified = arena_agent(tmp_path, "", "verify", *options)
    assert (verified.returncode, json.loads(verified.stdout)["ok"]) == (0, True), verified.stdout + verified.stderr


@pytest.mark.django_db(transaction=True)
def test_exception_of_the_agent_is_reported_once(week: str, live_server: LiveServer, tmp_path: Path) -> None:
    for _ in range(2):
        arena_agent(tmp_path, week, "run", agent_file(tmp_path, BROKEN), "--once", "--url", live_server.url)
    attempts = Attempt.objects.order_by("batch").values_list("origin", "kind", "reason")
    assert [(origin, kind) for origin, kind, _ in attempts] == [("agent", "raised")] * 2
    assert "ZeroDivisionError" in attempts[0][2]


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.django_db(transaction=True)
def test_loop_killed_at_any_point_answers_each_task_once_and_has_its_receipt(
    week: str, live_server: LiveServer, tmp_path: Path, kills: int
) -> None:
    journal, file = tmp_path / "journal.jsonl", agent_file(tmp_path, AGENT)
    command = [sys.executable, "-m", "arena_agent", "run", file, "--once", "--url", live_server.url]
    command += ["--journal", str(journal), "--json"]
    environment = {"ARENA_AGENT_HOME": str(tmp_path / "home"), "ARENA_AGENT_TOKEN": week, "PATH": ""}
    for number in range(kills):
        lines = number % 6
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        while process.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") >= lines):
            time.sleep(0.001)
        process.kill()
        process.wait()
    last = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert last.returncode == 0, last.stderr
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    assert sorted(entry["task"] for entry in entries if entry["event"] == "answer") == sorted(
        {entry["task"] for entry in entries}
    )
    replies = [entry["status"] for entry in entries if entry["event"] == "reply"]
    assert replies == [201] * 3
    assert ModelCall.objects.filter(model="external/visitor").count() == 3
    assert Submission.objects.count() == 3
    bodies = [entry["reply"]["receipt"]["body"] for entry in entries if entry["event"] == "reply"]
    assert sorted(body["task"] for body in bodies) == sorted({entry["task"] for entry in entries})
    assert sorted(body["sequence"] for body in bodies) == [1, 2, 3]
    assert Receipt.objects.count() == 3
