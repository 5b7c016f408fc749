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

from agents.models import Decision, Forecast, ModelCall, Receipt, Registration, Submission, Trade
from agents.services.registrations import register_external_agent
from tests.agent_kit.test_check import agent_file
from tests.commands import DECISION, SUNDAY, run
from tests.sandbox import Venue

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

AGENT = """\
def forecast(self, question): return question.prices or question.even()
def trade(self, portfolio, markets): return [Bet(markets[0], 'YES', portfolio.max_bet / 4)]
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
    assert json.loads(played.stdout) == {"answered": 3, "refused": 0, "failed": 0, "pending": 0, "cost_usd": 0.0}
    again = arena_agent(tmp_path, week, "run", file, "--once", "--url", live_server.url)
    assert (again.returncode, json.loads(again.stdout)["answered"]) == (0, 0)
    assert run("open_envelopes", DECISION + timedelta(minutes=20)).code == 0
    decision = Decision.objects.get(agent__family__slug="visitor")
    assert (decision.status, decision.action, str(Trade.objects.get().amount)) == ("completed", "BET", "625.00")
    assert Forecast.objects.filter(family__slug="visitor").count() == 4
    assert ModelCall.objects.filter(model="external/visitor").count() == 3


@pytest.mark.django_db(transaction=True)
def test_loop_answers_a_task_that_opens_while_it_runs(
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
    assert run("open_envelopes", DECISION + timedelta(minutes=20)).code == 0
    (tmp_path / "receipts.json").write_text(output.stdout)
    key.write_bytes(httpx.get(f"{live_server.url}/.well-known/arena-chain.json").content)
    # Publishes the boards: the archive could not, since the database in memory lets nobody write beside a reader.
    assert run("compute_scores", DECISION + timedelta(hours=1)).code == 0
    exported = run("export_dataset", DECISION + timedelta(hours=1), "--format", "csv", out=tmp_path / "archive")
    assert exported.code == 0
    options = [str(tmp_path / "receipts.json"), "--key", str(key), "--archive", str(tmp_path / "archive")]
    verified = arena_agent(tmp_path, "", "verify", *options)
    assert (verified.returncode, json.loads(verified.stdout)["ok"]) == (0, True), verified.stdout + verified.stderr


@pytest.mark.django_db(transaction=True)
def test_arena_says_as_whom_it_knows_the_token(week: str, live_server: LiveServer, tmp_path: Path) -> None:
    shown = arena_agent(tmp_path, week, "whoami", "--url", live_server.url)
    assert json.loads(shown.stdout) == {
        "url": live_server.url, "slug": "visitor", "name": "Visitor", "track": "closed",
        "protocols": ["trading", "forecast"], "version": 1, "version_note": "",
    }  # fmt: skip
    opened = agent_file(tmp_path, f"track = 'open'\n{AGENT}")
    refused = arena_agent(tmp_path, week, "run", opened, "--once", "--url", live_server.url)
    assert (refused.returncode, Submission.objects.count()) == (2, 0)
    unknown = arena_agent(tmp_path, "arena_wrong", "run", opened, "--once", "--url", live_server.url)
    assert unknown.returncode == 3
    assert "the token is unknown or revoked" in unknown.stderr


@pytest.mark.django_db(transaction=True)
def test_body_that_is_too_long_or_encoded_is_refused_in_words(week: str, live_server: LiveServer) -> None:
    """A client that still sends when the answer comes reads it all the same."""
    headers = {"Authorization": f"Bearer {week}", "Idempotency-Key": "1", "Content-Type": "application/json"}
    address = f"{live_server.url}/api/v1/submissions/?batch=1"
    long = httpx.post(address, headers=headers, content=b"x" * 30_000_000, timeout=60)
    assert (long.status_code, long.json()["detail"]) == (413, "the body is longer than 1,000,000 bytes")
    encoded = httpx.post(address, headers=headers | {"Content-Encoding": "gzip"}, content=b"\x1f\x8b", timeout=60)
    assert encoded.status_code == 415
    assert encoded.json()["detail"] == "Content-Encoding 'gzip' is not read: send the body as it is"


@pytest.mark.django_db(transaction=True)
def test_loop_killed_at_any_point_answers_each_task_once_and_has_its_receipt(
    week: str, live_server: LiveServer, tmp_path: Path
) -> None:
    journal, file = tmp_path / "journal.jsonl", agent_file(tmp_path, AGENT)
    command = [sys.executable, "-m", "arena_agent", "run", file, "--once", "--url", live_server.url]
    command += ["--journal", str(journal), "--json"]
    environment = {"ARENA_AGENT_HOME": str(tmp_path / "home"), "ARENA_AGENT_TOKEN": week, "PATH": ""}
    for lines in (*range(6), *range(6)):
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
