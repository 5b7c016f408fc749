"""Endpoints and the admin show the same value, return, Brier score and win rate; pages: test_figures.py."""

import json
from datetime import timedelta
from decimal import Decimal
from statistics import fmean
from typing import Any

import pytest
import stamina
from django.test import Client
from django.urls import reverse

from agents.models import Family
from scoring.models import Leaderboard
from tests.answers import CLAUDE, GPT, GROK, bet, sell
from tests.commands import DECISION, SUNDAY, run
from tests.factories import line_up
from tests.markup import element, get_page
from tests.sandbox import Venue
from tests.shared_rows import shared_rows_at_venue

pytestmark = pytest.mark.slow

WEEK, DAY, TEN = timedelta(weeks=1), timedelta(days=1), timedelta(minutes=10)
PRICES = ("0.37", "0.41", "0.59", "0.113", "0.87", "0.505", "0.29", "0.71", "0.433", "0.661", "0.0721", "0.93")
AMOUNTS = (
    *("85.73", "63.77", "437.38", "469.75", "639.62", "562.84"),
    *("460.62", "572.39", "132.52", "134.13", "465.95", "647.50"),
)
"""Added up one after another, the scores of these bets end on another last digit than their exact sum."""
QUESTIONS = tuple(f"Question {number}?" for number in range(len(PRICES)))
ENDS = SUNDAY + 2 * WEEK + 13 * TEN


def play(venue: Venue) -> None:
    """Two cohorts, Grok in the first alone; odd amounts at odd prices; most markets ended, some still held."""
    line_up(GPT, GROK, CLAUDE)
    with stamina.set_testing(True, attempts=99, cap=True):
        for question, price in zip(QUESTIONS, PRICES, strict=True):
            venue.market(question, {"Yes": price, "No": str(1 - Decimal(price))})
        bets = [(q, "YES" if n % 3 else "NO", a) for n, (q, a) in enumerate(zip(QUESTIONS, AMOUNTS, strict=True))]
        venue.says(GPT, bet(*bets[0], *bets[1:]), sell(QUESTIONS[2], "33.3"), bet(*bets[0], *bets[6:]))
        venue.says(GROK, bet(*bets[4], *bets[5:9]))
        venue.says(CLAUDE, '{"action": "HOLD"}', bet(*bets[11], *bets[:3]))
        for week in (0, 1):
            run("sync_markets", SUNDAY + week * WEEK)
            Family.objects.filter(slug="grok-4").update(active=not week)
            run("start_cohort", SUNDAY + week * WEEK)
            assert run("run_decisions", DECISION + week * WEEK).code == 0
        for number, question in enumerate(QUESTIONS[:9]):
            venue.resolve(question, "Yes" if number % 2 else "No")
        venue.cancel(QUESTIONS[9])
        venue.move(QUESTIONS[10], Yes="0.0917", No="0.9083")
        for command in ("sync_markets", "check_resolutions", "take_snapshots", "verify_ledger"):
            assert run(command, ENDS).code == 0


played = shared_rows_at_venue(play)


@pytest.fixture
def season(played: tuple[Venue, None], venue: Venue) -> Venue:
    return venue.as_left(played[0])


def rows_of(address: str, client: Client) -> list[dict[str, Any]]:
    return client.get(address, {"page_size": 500}).json()["results"]


def test_every_endpoint_has_the_same_agent_figures(season: Venue, client: Client) -> None:
    agents = rows_of("/api/v1/agents/", client)
    assert len(agents) == 5
    assert sum(agent["brier"] is not None for agent in agents) == 4
    for agent in agents:
        (newest, *_) = client.get("/api/v1/snapshots/", {"agent": agent["id"]}).json()["results"]
        fields = ("cash", "positions_value", "total_value", "pnl", "pnl_percent", "brier", "resolved_bets")
        assert {key: newest[key] for key in fields} == {key: agent[key] for key in fields}


def test_the_admin_has_the_family_figures_of_the_api(season: Venue, client: Client, admin_client: Client) -> None:
    entries = rows_of("/api/v1/leaderboard/", client)
    assert len(entries) == 3
    address = reverse("admin:scoring_leaderboard_change", args=[Leaderboard.objects.get(methodology="").pk])
    shown = json.loads(element(get_page(admin_client, address), "pre.verbatim").text())
    for row in shown:
        assert "return_without_largest_bet" in row
        del row["return_without_largest_bet"]  # that of the page alone
    assert shown == entries
    assert rows_of("/api/v1/leaderboard/?methodology=v1", client) == entries


def test_a_family_in_one_cohort_has_the_numbers_of_its_agent(season: Venue, client: Client) -> None:
    (agent,) = client.get("/api/v1/agents/", {"family": "grok-4"}).json()["results"]
    (entry,) = [row for row in rows_of("/api/v1/leaderboard/", client) if row["family"] == "grok-4"]
    fields = ("total_value", "pnl", "brier", "win_rate", "resolved_bets")
    assert {key: entry[key] for key in fields} == {key: agent[key] for key in fields}
    assert entry["return_percent"] == float(agent["pnl_percent"])


def test_a_familys_numbers_follow_from_the_rows_that_are_published(season: Venue, client: Client) -> None:
    for entry in rows_of("/api/v1/leaderboard/", client):
        agents = client.get("/api/v1/agents/", {"family": entry["family"]}).json()["results"]
        bets = client.get("/api/v1/brier-scores/", {"family": entry["family"], "page_size": 500}).json()["results"]
        assert entry["brier"] == (fmean([bet["score"] for bet in bets]) if bets else None)
        assert entry["win_rate"] == (fmean([bet["outcome"] for bet in bets]) if bets else None)
        assert entry["return_percent"] == fmean([float(agent["pnl_percent"]) for agent in agents])
        assert abs(
            Decimal(entry["total_value"]) - sum(Decimal(agent["total_value"]) for agent in agents) / len(agents)
        ) <= Decimal("0.005")
        for agent in agents:
            agent_bets = [bet for bet in bets if bet["agent"] == agent["id"]]
            assert agent["brier"] == (fmean([bet["score"] for bet in agent_bets]) if agent_bets else None)
            assert agent["win_rate"] == (fmean([bet["outcome"] for bet in agent_bets]) if agent_bets else None)
