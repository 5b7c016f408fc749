"""The number of queries of each endpoint, which does not depend on the number of rows."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.models import Agent, Decision
from arena_site.api import ENDPOINTS, router
from markets.models import Question
from scoring.services.forecast_leaderboards import refresh_forecast_leaderboards
from tests.factories import (
    WEEK,
    InstructionFactory,
    MarketFactory,
    ModelCallFactory,
    QuestionFactory,
    ask,
    bet,
    end_question,
    play_week,
    submit_hold,
)
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db

QUERIES: dict[str, tuple[int, int | None]] = {
    "leaderboard": (2, None),
    "agents-board": (1, None),
    "comparisons/conditions": (1, None),
    "disagreements": (8, None),
    "risk": (1, None),
    "cohorts": (4, 3),
    "methodologies": (3, 2),
    "universes": (2, 2),
    "families": (2, 1),
    "releases": (2, 1),
    "agents": (7, 6),
    "decisions": (2, 4),
    "trades": (1, 1),
    "positions": (2, 1),
    "journal": (2, 1),
    "settlements": (3, 2),
    "reversals": (2, 1),
    "snapshots": (4, None),
    "brier-scores": (2, 1),
    "markets": (3, 2),
    "prices": (1, 1),
    "runs": (2, 1),
    "questions": (3, 5),
    "question-sets": (2, 2),
    "elicitations": (2, 2),
    "forecasts": (1, 2),
    "forecast-leaderboards": (2, 1),
    "imports": (2, 3),
    "chain": (2, 1),
    "chain-links": (2, 1),
    "receipts": (2, 1),
    "attempts": (2, 1),
    "exports": (2, 1),
}
"""Queries of a list of any length and of one row at most (None without such a page), beyond those of any request."""


def _season() -> None:
    """Two weeks; an agent trades five times more, a decision takes three calls, a question is answered on two days."""
    first, _ = play_week(), play_week()
    for _ in range(5):
        bet(Agent.objects.filter(cohort=first).first(), MarketFactory(), amount="50.00")
    decision = Decision.objects.earliest("pk")
    for _ in range(2):
        InstructionFactory(call=ModelCallFactory(decision=decision))
        submit_hold(decision)
    forecasts = {slug: [0.6, 0.4] for slug in ("gpt-5.1", "grok-4", "kimi-k2")}
    ask(Question.objects.order_by("pk").first(), forecasts, day=first.week_start.replace(day=first.week_start.day + 1))
    rain = QuestionFactory()
    for arm in ("priced", "blind"):
        ask(rain, forecasts, arm=arm)
    end_question(rain, "YES")
    refresh_forecast_leaderboards(at=WEEK + timedelta(days=31))


season = shared_rows(_season)


def cost(client: Client, path: str, **query: Any) -> int:
    """The queries of a response, without those of a request that is refused at once."""

    def queries(status: int, **query: Any) -> int:
        with CaptureQueriesContext(connection) as captured:
            response = client.get(path, query)
        assert response.status_code == status, response.content
        return len(captured)

    return queries(200, **query) - queries(400, mood="bad")


def test_every_endpoint_has_its_queries_stated() -> None:
    assert {prefix for prefix, _, _ in router.registry} == ENDPOINTS.keys() == QUERIES.keys()
    details = {prefix for prefix, view, _ in router.registry if hasattr(view, "retrieve")}
    assert details - {"snapshots"} == {name for name, (_, one) in QUERIES.items() if one is not None}


@pytest.mark.parametrize("name", QUERIES)
def test_a_list_needs_the_same_queries_for_any_length(season: None, client: Client, name: str) -> None:
    path = f"/api/v1/{name}/"
    rows = client.get(path, {"page_size": 500}).json()["results"]
    assert len(rows) > 1 or name == "chain"
    assert [cost(client, path, page_size=size) for size in (1, 499)] == [QUERIES[name][0]] * 2


@pytest.mark.parametrize("name", [name for name, (_, one) in QUERIES.items() if one is not None])
def test_a_row_needs_the_same_queries_for_any_number_of_related_rows(season: None, client: Client, name: str) -> None:
    key = getattr(ENDPOINTS[name], "lookup_field", "pk")
    rows = client.get(f"/api/v1/{name}/", {"page_size": 500}).json()["results"]
    costs = [cost(client, f"/api/v1/{name}/{row['id' if key == 'pk' else key]}/") for row in [*rows[:6], *rows[-6:]]]
    assert max(costs) == QUERIES[name][1]


@pytest.mark.parametrize("query", [{}, {"range": "1D"}, {"family": "gpt-5.1"}, {"as_of": "2026-03-20"}])
def test_curves_cost_no_more_queries_for_more_points(season: None, client: Client, query: dict[str, str]) -> None:
    assert cost(client, "/api/v1/performance/", **query) <= 13
