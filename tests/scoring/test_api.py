"""The agent, snapshot, Brier score and leaderboard endpoints."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client

from arena_verifier.order_books import OF_FAMILY
from scoring.models import BrierScore, Leaderboard
from scoring.services.scores import compute_scores
from scoring.services.trading_leaderboards import trading_leaderboard
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    MarketFactory,
    ModelCallFactory,
    SnapshotFactory,
    bet,
    resolve,
)

pytestmark = pytest.mark.django_db
RESOLVED = WEEK + timedelta(days=30)


def test_agent_shows_its_value_and_record(client: Client) -> None:
    agent = AgentFactory()
    won = bet(agent, amount="1250.00", price="0.50")
    unresolved = bet(agent, MarketFactory(), amount="500.00", price="0.50")
    resolve(won.market, "YES")
    compute_scores(at=RESOLVED)
    row = client.get(f"/api/v1/agents/{agent.pk}/").json()
    assert row == {
        "id": agent.pk,
        "cohort": 1,
        "family": "gpt-5.1",
        "release": agent.release_id,
        "model_id": "openai/gpt-5.2",
        "display_name": "GPT-5.2",
        "status": "active",
        "cash": "10750.00",
        "positions_value": "400.00",
        "total_value": "11150.00",
        "pnl": "1150.00",
        "pnl_percent": "11.5000",
        "brier": 0.25,
        "resolved_bets": 1,
        "win_rate": 1.0,
        "return_after_costs": None,
        "liquidation_value": None,
        "trades_without_book": 2,
    }
    assert unresolved.position.shares == 1000
    assert client.get("/api/v1/agents/").json()["results"] == [row]


def test_agent_without_a_resolved_bet_has_no_score(client: Client) -> None:
    AgentFactory()
    (row,) = client.get("/api/v1/agents/").json()["results"]
    assert (row["brier"], row["resolved_bets"], row["win_rate"]) == (None, 0, None)
    assert (row["pnl"], row["pnl_percent"]) == ("0.00", "0.0000")


def test_snapshot_has_the_value_and_the_record_of_its_instant(client: Client) -> None:
    agent, other_agent = AgentFactory(), AgentFactory(cohort=CohortFactory())
    SnapshotFactory(agent=agent, brier=0.125)
    SnapshotFactory(agent=agent, positions_value=Decimal("0.01"))
    SnapshotFactory(agent=other_agent)
    first, second = client.get("/api/v1/snapshots/", {"agent": agent.pk}).json()["results"]
    assert first["taken_at"] == "2026-03-08T00:10:00Z"
    assert second == {
        "id": second["id"],
        "agent": agent.pk,
        "cohort": 1,
        "family": "gpt-5.1",
        "taken_at": "2026-03-08T00:00:00Z",
        "cash": "10000.00",
        "positions_value": "0.00",
        "total_value": "10000.00",
        "pnl": "0.00",
        "pnl_percent": "0.0000",
        "brier": 0.125,
        "resolved_bets": 0,
        "open_positions": 0,
        "stale_positions": 0,
    }
    assert (first["total_value"], first["pnl_percent"]) == ("10000.01", "0.0001")


def test_brier_score_can_be_recomputed_from_its_row(client: Client) -> None:
    trade = bet(AgentFactory(), side="NO", amount="1250.00")
    resolve(trade.market, "YES")
    compute_scores(at=RESOLVED)
    (row,) = client.get("/api/v1/brier-scores/", {"trade": trade.pk, "outcome": "false"}).json()["results"]
    assert row["score"] == (row["probability"] - row["outcome"]) ** 2 == 0.25
    assert (row["market_probability"], row["family"], row["cohort"]) == (0.6, "gpt-5.1", 1)
    assert row["scored_at"] == "2026-04-07T00:00:00.000001Z", "just after the payout, which is of that instant"
    assert BrierScore.objects.count() == 1


def test_leaderboard_is_empty_before_the_first_computation(client: Client) -> None:
    empty = {"count": 0, "next": None, "previous": None, "results": []}
    assert client.get("/api/v1/leaderboard/").json() == empty
    assert client.get("/api/v1/leaderboard/", {"protocol": "forecast"}).json() == empty


def test_leaderboard_shows_its_entries_as_computed(client: Client) -> None:
    cohort = CohortFactory()
    winner, loser = AgentFactory(cohort=cohort), AgentFactory(cohort=cohort)
    market = MarketFactory()
    for agent, side in ((winner, "YES"), (loser, "NO")):
        ModelCallFactory(decision=bet(agent, market, side).decision)
    resolve(market, "YES")
    compute_scores(at=RESOLVED)
    body = client.get("/api/v1/leaderboard/", {"protocol": "trading", "methodology": "v2"}).json()
    assert (body["count"], body["next"], body["previous"]) == (2, None, None)
    assert body["results"] == [
        {key: list(value) if isinstance(value, tuple) else value for key, value in entry.items()}
        for entry in trading_leaderboard("v2").entries
    ]
    first = body["results"][0]
    assert (first["family"], first["rank"], first["total_value"], first["pnl"]) == ("gpt-5.1", 1, "10750.00", "750.00")
    assert (first["return_percent"], first["return_se"], first["return_ci"]) == (7.5, None, None)
    assert (first["win_rate"], first["resolved_bets"], first["cost_usd"]) == (1.0, 1, "0.002500")


def test_leaderboard_shows_intervals_as_pairs(client: Client) -> None:
    entry = {**_entry("grok-4"), "return_se": 1.5, "return_ci": [-2.0, 4.0], "brier_ci": [0.1, 0.3]}
    entry |= {"return_se_cohorts": 0.5, "win_rate_ci": [0.2, 0.7]}
    Leaderboard.objects.create(protocol="trading", computed_at=WEEK, entries=[entry])
    assert client.get("/api/v1/leaderboard/").json()["results"] == [entry]


def _entry(family: str) -> dict[str, object]:
    nulls = (
        "return_se", "return_se_cohorts", "return_ci", "brier", "brier_ci", "bss_random", "bss_market", "win_rate",
        "win_rate_ci", *OF_FAMILY,
    )  # fmt: skip
    return dict.fromkeys(nulls) | {
        "family": family, "display_name": family, "external": False, "rank": 1, "rank_low": 1, "rank_high": 3,
        "cohorts": 1, "total_value": "10000.00", "pnl": "0.00", "return_percent": 0.0, "resolved_bets": 0,
        "resolved_events": 0,
        "cost_usd": "0.000000",
    }  # fmt: skip
