"""How many queries each endpoint costs: stated for every one there is, and the same for one row as for many."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.models import Agent
from arena_site.api import ENDPOINTS, router
from markets.models import Question
from tests.factories import MarketFactory, asked, bet, play_week
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db

QUERIES = {
    "leaderboard": 2,
    "cohorts": 4,
    "methodologies": 2,
    "universes": 2,
    "families": 2,
    "releases": 2,
    "agents": 5,
    "decisions": 2,
    "trades": 2,
    "positions": 2,
    "journal": 2,
    "settlements": 3,
    "reversals": 2,
    "snapshots": 4,
    "brier-scores": 2,
    "markets": 3,
    "prices": 1,
    "runs": 2,
    "questions": 3,
    "elicitations": 2,
    "forecasts": 1,
    "forecast-boards": 2,
    "imports": 2,
    "chain": 2,
    "chain-links": 2,
    "exports": 2,
}
"""Of a list, whatever its length; besides what every request of the API costs."""
QUERIES_OF_ONE = {
    "cohorts": 3,
    "methodologies": 1,
    "universes": 2,
    "families": 1,
    "releases": 1,
    "agents": 4,
    "decisions": 4,
    "trades": 1,
    "positions": 1,
    "journal": 1,
    "settlements": 2,
    "reversals": 1,
    "brier-scores": 1,
    "markets": 2,
    "prices": 1,
    "runs": 1,
    "questions": 5,
    "elicitations": 2,
    "forecasts": 2,
    "forecast-boards": 1,
    "imports": 3,
    "chain": 1,
    "chain-links": 1,
    "exports": 1,
}
"""Of one row, at most: what it does not have is not looked for."""


def _season() -> None:
    """Two weeks; one agent trades five times more, one question is answered by three and on two days."""
    first, _ = play_week(), play_week()
    for _ in range(5):
        bet(Agent.objects.filter(cohort=first).first(), MarketFactory(), amount="50.00")
    said = {slug: [0.6, 0.4] for slug in ("gpt-5.1", "grok-4", "kimi-k2")}
    asked(Question.objects.order_by("pk").first(), said, day=first.week_start.replace(day=first.week_start.day + 1))


season = shared_rows(_season)


def cost(client: Client, path: str, **query: Any) -> int:
    """The queries of an answer, without those of a request that is refused before anything is looked up."""

    def queries(status: int, **query: Any) -> int:
        with CaptureQueriesContext(connection) as counted:
            answer = client.get(path, query)
        assert answer.status_code == status, answer.content
        return len(counted)

    return queries(200, **query) - queries(400, mood="bad")


def test_every_endpoint_has_its_queries_stated() -> None:
    assert {prefix for prefix, _, _ in router.registry} == ENDPOINTS.keys() == QUERIES.keys()
    assert {prefix for prefix, view, _ in router.registry if hasattr(view, "retrieve")} - {"snapshots"} == (
        QUERIES_OF_ONE.keys()
    )


@pytest.mark.parametrize("name", QUERIES)
def test_a_list_costs_the_same_queries_however_long_it_is(season: None, client: Client, name: str) -> None:
    path = f"/api/v1/{name}/"
    rows = client.get(path, {"page_size": 500}).json()["results"]
    assert len(rows) > 1 or name == "chain"
    one, many = cost(client, path, page_size=1), cost(client, path, page_size=499)
    assert (one, many) == (QUERIES[name], QUERIES[name])


@pytest.mark.parametrize("name", QUERIES_OF_ONE)
def test_a_row_costs_no_more_queries_however_much_belongs_to_it(season: None, client: Client, name: str) -> None:
    key = getattr(ENDPOINTS[name], "lookup_field", "pk")
    rows = client.get(f"/api/v1/{name}/", {"page_size": 500}).json()["results"]
    costs = [cost(client, f"/api/v1/{name}/{row['id' if key == 'pk' else key]}/") for row in [*rows[:6], *rows[-6:]]]
    assert max(costs) == QUERIES_OF_ONE[name]


@pytest.mark.parametrize("query", [{}, {"range": "1D"}, {"family": "gpt-5.1"}, {"as_of": "2026-03-20"}])
def test_curves_cost_no_more_queries_for_more_points(season: None, client: Client, query: dict[str, str]) -> None:
    assert cost(client, "/api/v1/performance/", **query) <= 12
