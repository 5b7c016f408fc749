"""The example client of the documentation, run unchanged."""

import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from agents.models import Decision, Forecast, Trade
from agents.services.registrations import register_external_agent
from tests.commands import DECISION, SUNDAY, run
from tests.documentation import example_client
from tests.sandbox import Venue


@pytest.fixture
def client_file(tmp_path: Path) -> Path:
    code = example_client()
    assert len([line for line in code.splitlines() if line.strip()]) <= 40
    file = tmp_path / "client.py"
    file.write_text(code)
    return file


@pytest.mark.django_db(transaction=True)
def test_client_decides_the_open_week_and_submits_forecasts(
    venue: Venue, settings: Any, live_server: LiveServer, client_file: Path
) -> None:
    token = register_external_agent(name="Visitor", protocol="both", at=SUNDAY - timedelta(days=1)).token
    venue.market("Will it rain?")
    venue.market("Lakers or Celtics?", {"Lakers": "0.55", "Celtics": "0.45"})
    run("sync_markets", SUNDAY)
    run("start_cohort", SUNDAY)
    run("run_decisions", DECISION)
    run("run_forecasts", DECISION + timedelta(minutes=1))
    settings.ARENA_CLOCK = DECISION + timedelta(minutes=10)
    command = [sys.executable, str(client_file), live_server.url, token]
    played = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert played.returncode == 0, played.stderr
    assert re.findall(r"\} (\d+) ", played.stdout) == ["201", "201", "201"]
    again = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (again.returncode, again.stdout) == (0, "nothing is open\n")
    run("open_envelopes", DECISION + timedelta(minutes=20))
    decision = Decision.objects.get(agent__family__slug="visitor")
    assert (decision.status, decision.action) == ("completed", "BET")
    assert str(Trade.objects.get().amount) == "100.00"
    assert Forecast.objects.filter(family__slug="visitor").count() == 4
