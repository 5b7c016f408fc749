"""A season with an external agent in it, from its registration to the boards, the ledger's proof and the archive."""

import csv
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from agents.models import Forecast, Trade
from agents.services.registrations import register_external_agent
from arena_verifier.program import verify
from markets.models import Market
from tests.answers import GPT, GROK, bet, forecast
from tests.commands import DECISION, SUNDAY, run
from tests.factories import line_up
from tests.sandbox import Venue
from tests.scoring.exports.forgery import Cells, rewrite

RAIN = "Will it rain?"
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


@pytest.fixture
def guest(venue: Venue) -> str:
    """The token of an agent that was registered in time."""
    return register_external_agent(name="Guest", protocol="both", at=SUNDAY - DAY).token


def submit(client: Client, token: str, answer: Any, **target: Any) -> int:
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": json.dumps(target)}
    path = f"/api/v1/submissions/?{'&'.join(f'{name}={value}' for name, value in target.items())}"
    return client.post(path, json.dumps(answer), content_type="application/json", headers=headers).status_code


FORGED = {
    "rank": "7", "answered": "7", "asked": "7", "missed": "7", "refused": "7", "external": "false", "score": "7",
}  # fmt: skip


def forge_guest(rows: Cells) -> None:
    for row in rows:
        if row["forecaster"] == "guest":
            row.update(FORGED)


def test_a_guests_season_is_settled_proved_and_exported(
    venue: Venue, guest: str, client: Client, settings: Any, tmp_path: Path
) -> None:
    venue.market(RAIN)
    venue.market("Will it snow?")
    venue.says(GPT, bet(RAIN, "YES", 500), forecast(lean=0.2), forecast(lean=0.2))
    venue.says(GROK, bet(RAIN, "NO", 500))
    line_up(GPT, GROK)
    venue.start_first_cohort()
    run("run_decisions", DECISION)
    settings.ARENA_CLOCK = DECISION + 10 * MINUTE
    token = {"Authorization": f"Bearer {guest}"}
    (task,) = client.get("/api/v1/submissions/open/", headers=token).json()["trading"]
    rain = str(Market.objects.get(question=RAIN).pk)
    buy = {"action": "BET", "bets": [{"market_id": rain, "side": "YES", "amount": 2500}]}
    assert submit(client, guest, buy, agent=task["agent"], universe=task["universe"]) == 201
    run("run_forecasts", SUNDAY + timedelta(hours=2))
    settings.ARENA_CLOCK = SUNDAY + timedelta(hours=2) + MINUTE
    for batch in client.get("/api/v1/submissions/open/", headers=token).json()["forecast"]:
        _, *rows = [json.loads(line) for line in batch["blocks"]["QUESTIONS"].splitlines()]
        sure = [{"question_id": row[0], "probabilities": {"YES": 1, "NO": 0}} for row in rows]
        assert submit(client, guest, {"forecasts": sure}, batch=batch["batch"]) == 201
    assert not Forecast.objects.exists(), "they wait in their envelopes"
    assert run("open_envelopes", SUNDAY + timedelta(hours=2, minutes=15)).code == 0
    assert (Trade.objects.count(), Forecast.objects.filter(family__slug="guest").count()) == (3, 4)
    venue.resolve(RAIN, "Yes")
    assert run("check_resolutions", SUNDAY + 2 * DAY).code == 0
    run("take_snapshots", SUNDAY + 2 * DAY)
    last = client.get("/api/v1/leaderboard/").json()["results"][-1]
    assert (last["family"], last["rank"], last["pnl"], last["cost_usd"]) == ("guest", None, "3750.00", "0.000000")
    exported = run("export_dataset", SUNDAY + 2 * DAY, out=tmp_path / "archive", format=["csv"])
    assert exported.code == 0, exported.stderr
    with (tmp_path / "archive" / "csv" / "leaderboard_forecast.csv").open() as board:
        assert [row["external"] for row in csv.DictReader(board) if row["forecaster"] == "guest"] == ["true"] * 4
    with (tmp_path / "archive" / "csv" / "leaderboard_agents.csv").open() as board:
        agents = [row for row in csv.DictReader(board) if row["external"] == "true"]
    assert [tuple(row[name] for name in ("track", "protocol", "forecaster", "answered", "pnl")) for row in agents] == [
        ("closed", "forecast", "guest", "1", ""), ("closed", "trading", "guest", "1", "3750.00"),
    ]  # fmt: skip
    call_command("verify_export", str(tmp_path / "archive"))
    rewrite(tmp_path / "archive", "leaderboard_agents", forge_guest, record=True)
    lines = verify(tmp_path / "archive")[0]["boards of agents"]
    assert [column for column in FORGED if not any(f"guest states {column} " in line for line in lines)] == []
