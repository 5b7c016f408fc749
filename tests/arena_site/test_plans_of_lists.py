"""Lists of the big tables: PostgreSQL reads the first page in each offered order from an index."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from arena_site.api import ENDPOINTS
from tests.factories import play_week
from tests.shared_rows import shared_rows

pytestmark = [pytest.mark.django_db, pytest.mark.postgres_only]

BIG = (
    *("trades", "snapshots", "prices", "forecasts", "decisions", "journal", "positions", "settlements"),
    *("brier-scores", "markets", "questions", "chain-links"),
)

season = shared_rows(play_week)


def nodes(plan: dict[str, Any]) -> Iterator[str]:
    yield plan["Node Type"]
    for part in plan.get("Plans", ()):
        yield from nodes(part)


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
        found: list[str] = []
        for page in pages:
            cursor.execute("EXPLAIN (FORMAT JSON) " + page.replace("%", "%%"))
            ((plan,),) = cursor.fetchall()
            found += nodes((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"])
    return "Sort" in found


@pytest.mark.parametrize("name", BIG)
def test_each_order_of_a_big_list_is_read_from_an_index(season: None, client: Client, name: str) -> None:
    orders = ["", *(f"?ordering={sign}{field}" for field in ENDPOINTS[name].orderings for sign in ("", "-"))]
    assert [order for order in orders if sorts(client, f"/api/v1/{name}/{order}")] == []
