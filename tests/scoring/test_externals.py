"""External agents on leaderboards: scored like the others, but without a rank and in no ensemble."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from agents.models import Agent, Family
from scoring.services.forecast_leaderboards import refresh_forecast_leaderboards
from scoring.services.scores import compute_scores
from scoring.services.trading_leaderboards import refresh_trading_leaderboards, trading_leaderboard
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    FamilyFactory,
    MarketFactory,
    QuestionFactory,
    ask,
    bet,
    end_question,
    resolve,
)
from tests.guards import guards_removed

pytestmark = pytest.mark.django_db
END = WEEK + timedelta(days=30)
GPT, GROK = "gpt-5.1", "grok-4"


@pytest.fixture
def visitor() -> Family:
    return FamilyFactory(slug="visitor", display_name="Visitor", external=True, active=False, track="closed")


@pytest.fixture
def cohort_with_external(visitor: Family) -> None:
    """A cohort of two models and an external agent, which has the highest return."""
    cohort = CohortFactory()
    first, second = (AgentFactory(cohort=cohort) for _ in range(2))
    guest = AgentFactory(cohort=cohort, family=visitor)
    market = MarketFactory()
    bet(first, market, "YES", "500.00")
    bet(second, market, "NO", "500.00")
    bet(guest, market, "YES", "2500.00")
    resolve(market, "YES")
    compute_scores(at=END)


def ranks(entries: list[dict[str, Any]]) -> list[tuple[str, int | None, int | None]]:
    return [(row["family"], row["rank"], row["rank_high"]) for row in entries]


def test_best_external_agent_takes_no_rank(cohort_with_external: None) -> None:
    entries = trading_leaderboard().entries
    assert [row[1:] for row in ranks(entries)] == [(1, 2), (2, 2), (None, None)]
    guest = entries[-1]
    assert (guest["family"], guest["external"], guest["resolved_bets"], guest["brier"]) == ("visitor", True, 1, 0.0)
    assert guest["return_percent"] > entries[0]["return_percent"]
    with guards_removed(Agent):
        Agent.objects.filter(family__slug="visitor").update(family=FamilyFactory())
    assert trading_leaderboard().entries[0]["rank"] == 1
    assert trading_leaderboard().entries[0]["family"] not in (GPT, "gemini-2.5-flash")


def test_pages_and_api_show_external_agents_last_and_marked(cohort_with_external: None, client: Client) -> None:
    refresh_trading_leaderboards(at=END)
    results = client.get("/api/v1/leaderboard/").json()["results"]
    assert [(row["external"], row["rank"]) for row in results] == [(False, 1), (False, 2), (True, None)]
    for address in ("/trading/", "/cohorts/1/", "/models/visitor/"):
        page = client.get(address).content.decode()
        assert 'Visitor <span class="badge">external</span>' in page
        assert "None" not in page
    assert "so they are not ranked" in client.get("/trading/").content.decode()
    assert "Visitor" not in client.get("/cohorts/").content.decode()  # it leads no cohort
    assert client.get("/api/v1/families/visitor/").json()["external"] is True


def stated(*slugs: str) -> dict[str, list[float]]:
    vectors = {GPT: [0.7, 0.3], GROK: [0.5, 0.5], "visitor": [1.0, 0.0]}
    return {slug: vectors[slug] for slug in slugs}


def forecast_entries(client: Client) -> dict[str, dict[str, Any]]:
    refresh_forecast_leaderboards(at=END)
    rows = client.get("/api/v1/leaderboard/?protocol=forecast").json()["results"]
    return {row["forecaster"]: row for row in rows}


def test_perfect_external_forecaster_takes_no_rank_and_is_in_no_ensemble(visitor: Family, client: Client) -> None:
    question = QuestionFactory()
    ask(question, stated(GPT, GROK, "visitor"))
    end_question(question, "YES")
    compute_scores(at=END)
    entries = forecast_entries(client)
    assert list(entries)[-1] == "visitor"
    guest = entries["visitor"]
    assert (guest["external"], guest["reference"], guest["family"], guest["rank"]) == (True, False, "visitor", None)
    assert (guest["n"], guest["brier"], guest["asked"]) == (1, 0.0, 1)
    assert (entries[GPT]["rank"], entries[GROK]["rank"]) == (1, 2)
    assert entries["ensemble"]["brier"] == pytest.approx(0.16)
    page = client.get("/forecasts/").content.decode()
    assert 'Visitor <span class="badge">external</span>' in page
    assert "neither ranked nor part of an ensemble" in page


def test_external_forecasts_change_no_figure_of_others(visitor: Family, client: Client) -> None:
    for winner in ("YES", "NO", "YES"):
        question = QuestionFactory()
        ask(question, stated(GPT, GROK))
        end_question(question, winner)
    compute_scores(at=END)
    before = forecast_entries(client)
    for number, question in enumerate(list(QuestionFactory._meta.model.objects.all())):
        ask(question, {"visitor": [0.9, 0.1]}, day=WEEK, cost=f"0.0{number}")
    compute_scores(at=END)
    after = forecast_entries(client)
    guest = after.pop("visitor")
    assert guest["n"] == 3
    differing = {(name, key) for name in before for key in before[name] if after[name][key] != before[name][key]}
    assert differing == set()
