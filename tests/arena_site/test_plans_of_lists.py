"""Lists of the big tables: PostgreSQL reads the first page in each offered order from an index."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.list_filters import decision_changed, settlement_changed, trade_changed
from agents.models import Decision, Forecast, Settlement, Trade
from arena_site.api import ENDPOINTS
from markets.models import Market, Question
from markets.selectors.list_filters import matching_markets, matching_questions
from scoring.api.agents import brier_score_changed
from scoring.api.forecasts import forecast_changed
from scoring.models import BrierScore
from tests.factories import WEEK, play_week
from tests.shared_rows import shared_rows

pytestmark = [pytest.mark.django_db, pytest.mark.postgres_only]

BIG = (
    *("trades", "snapshots", "prices", "forecasts", "decisions", "journal", "positions", "settlements"),
    *("brier-scores", "markets", "questions", "chain-links", "elicitations", "runs"),
)

season = shared_rows(play_week)


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


def explain(statement: str, *parameters: Any) -> Iterator[dict[str, Any]]:
    """The nodes of the statement's plan."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {statement}", parameters)
        ((plan,),) = cursor.fetchall()
    return nodes((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"])


def sorts(client: Client, address: str) -> bool:
    """Whether the rows of a page are sorted although PostgreSQL avoids it wherever an index has the order.

    Rows that share their first key may be: an `Incremental Sort` reads no more than the page's.
    """
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200
    pages = [query["sql"] for query in queries if " ORDER BY " in query["sql"] and " LIMIT " in query["sql"]]
    assert pages, address
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_sort = off")
    return any(node["Node Type"] == "Sort" for page in pages for node in explain(page.replace("%", "%%")))


@pytest.mark.parametrize("name", BIG)
def test_each_order_of_a_big_list_is_read_from_an_index(season: None, client: Client, name: str) -> None:
    orders = ["", *(f"?ordering={sign}{field}" for field in ENDPOINTS[name].orderings for sign in ("", "-"))]
    assert [order for order in orders if sorts(client, f"/api/v1/{name}/{order}")] == []


CHANGES = {
    Decision: decision_changed,
    Trade: trade_changed,
    Settlement: settlement_changed,
    Forecast: forecast_changed,
    BrierScore: brier_score_changed,
}


@pytest.mark.parametrize("model", CHANGES)
def test_changes_are_found_by_an_index(season: None, model: Any) -> None:
    with connection.cursor() as cursor:  # else such small tables would be read whole
        cursor.execute(
            "SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off"
        )
    statement, parameters = model.objects.filter(CHANGES[model](WEEK)).order_by().values("pk").query.sql_with_params()
    plan = list(explain(statement, *parameters))
    assert any("updated_at" in node.get("Index Cond", "") for node in plan)
    related = [node for node in plan if node.get("Relation Name") != model._meta.db_table]
    assert not any("updated_at" in node.get("Filter", "") for node in related)


# --- The search of markets and questions by trigrams on PostgreSQL


@pytest.mark.parametrize(
    ("rows", "index"),
    [
        (matching_markets(Market.objects.all(), "rain orsa"), "market_question_trigrams"),
        (matching_questions(Question.objects.all(), "rain orsa"), "question_text_trigrams"),
    ],
    ids=["markets", "questions"],
)
def test_words_are_looked_up_in_the_trigram_index(rows, index: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")  # an empty table is read whole otherwise
    assert index in rows.order_by().explain()
