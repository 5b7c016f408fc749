"""Lists of the API beyond what `test_api_matrix` asks of each: cells of CSV, cursors while rows come in, search."""

import csv
import io
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from arena_site.api import ENDPOINTS
from foundation.rest.filters import StrictFilterBackend
from tests.arena_site.endpoints import CURSORS, ROWS
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    DecisionFactory,
    MarketFactory,
    PriceObservationFactory,
    QuestionFactory,
    SnapshotFactory,
    ask,
    bet,
)
from tests.problems import errors, problem

pytestmark = pytest.mark.django_db


def rows_of(client: Client, name: str, **query: Any) -> list[dict[str, Any]]:
    response = client.get(f"/api/v1/{name}/", query)
    assert response.status_code == 200, response.content
    rows: list[dict[str, Any]] = response.json()["results"]
    return rows


def csv_rows(response: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(response.content.decode())))


# --- CSV -------------------------------------------------------------------------------------------------


def test_csv_of_an_empty_list_has_its_header(client: Client) -> None:
    assert client.get("/api/v1/trades/?format=csv&fields=id,side").content == b"id,side\r\n"
    board = client.get("/api/v1/leaderboard/?format=csv&protocol=forecast&fields=family,brier")
    assert board.content == b"family,brier\r\n"


def test_csv_defuses_formulas_and_leaves_negative_amounts(client: Client) -> None:
    MarketFactory(question="=HYPERLINK(1)", slug="-2+3", volume="12.50")
    market = MarketFactory(question="@risk", volume="10.00")
    (line, second_line) = csv_rows(client.get("/api/v1/markets/?format=csv"))
    assert (line["question"], line["slug"], line["volume"]) == ("'=HYPERLINK(1)", "'-2+3", "12.50")
    assert second_line["question"] == "'@risk"
    bet(AgentFactory(), market, amount="100.00")
    amounts = {line["kind"]: line["amount"] for line in csv_rows(client.get("/api/v1/journal/?format=csv"))}
    assert amounts == {"deposit": "10000.00", "buy": "-100.00"}


def test_format_parameter_outweighs_the_accept_header(client: Client) -> None:
    assert client.get("/api/v1/agents/?format=json", headers={"accept": "text/csv"}).json()["results"] == []


# --- pages -----------------------------------------------------------------------------------------------


def links(response: Any) -> dict[str, str]:
    result = re.findall(r'<([^>]*)>; rel="(\w+)"', response.get("Link", ""))
    return {relation: address for address, relation in result}


def test_pages_of_csv_link_to_each_other(client: Client) -> None:
    for _ in range(5):
        MarketFactory()
    address = "http://testserver/api/v1/markets/?page_size=2&format=csv"
    first = links(client.get(address))
    assert set(first) == {"next", "first", "last"}
    assert "page=2" in first["next"]
    second = client.get(first["next"])
    assert set(links(second)) == {"next", "prev", "first", "last"}
    last = links(client.get(links(second)["next"]))
    assert set(last) == {"prev", "first", "last"}
    assert "format=csv" in last["prev"]


def make_rows(number: int, first: int = 0) -> None:
    """Rows of each list with cursors, two of each instant."""
    market, agent = MarketFactory(), AgentFactory(cohort=CohortFactory())
    for n in range(first, first + number):
        at = WEEK + timedelta(minutes=10 * (n // 2))
        PriceObservationFactory(outcome=market.outcomes.first(), observed_at=at)
        SnapshotFactory(agent=AgentFactory(cohort=agent.cohort), taken_at=at)
        bet(agent, market, amount="50.00", week=1 + n // 2)
        ask(QuestionFactory(), {"gpt-5.1": (0.5, 0.5)}, day=WEEK + timedelta(days=n // 2))


def test_cursor_repeats_and_loses_nothing_while_rows_come_in(client: Client) -> None:
    make_rows(6)
    for name in CURSORS:
        for ordering in [sign + field for field in ENDPOINTS[name].orderings for sign in ("", "-")]:
            before = [row["id"] for row in rows_of(client, name, ordering=ordering)]
            ids: list[int] = []
            address = f"/api/v1/{name}/?page_size=2&ordering={ordering}"
            while address:
                page = client.get(address).json()
                ids += [row["id"] for row in page["results"]]
                address = page["next"]
                if len(ids) < 4:
                    make_rows(1, first=len(ids))
            assert len(ids) == len(set(ids)), (name, ordering)
            assert [key for key in ids if key in before] == before, (name, ordering)


def test_cursor_of_another_order_is_refused(client: Client) -> None:
    make_rows(3)
    address = client.get("/api/v1/trades/?page_size=1&ordering=amount").json()["next"]
    refused = client.get(address.replace("ordering=amount", "ordering=-amount"))
    assert problem(refused, 404)["detail"] == "the cursor was not issued by this list in this order"


# --- filters ---------------------------------------------------------------------------------------------


def filters_of_each_kind() -> list[tuple[str, str]]:
    """The lists and parameters of each search, and of one filter of each other kind."""
    filters: dict[Any, tuple[str, str]] = {}
    for name in ROWS:
        filter_set = StrictFilterBackend().get_filterset_class(ENDPOINTS[name]())
        for parameter, single in filter_set.base_filters.items():
            kind = type(getattr(single, "single", single))
            filters.setdefault(
                (kind, parameter.endswith("__in"), name if parameter == "search" else ""), (name, parameter)
            )
    return list(filters.values())


@pytest.mark.parametrize(("name", "parameter"), filters_of_each_kind())
def test_a_hundred_words_in_a_filter_cost_no_more_than_one(
    client: Client, name: str, parameter: str, django_assert_max_num_queries: Any
) -> None:
    for separator in (" ", ","):
        with django_assert_max_num_queries(8) as captured:
            answer = client.get(f"/api/v1/{name}/", {parameter: separator.join(["e"] * 100)})
        assert answer.status_code in (200, 400)
        assert all(query["sql"].count(" JOIN ") <= 8 for query in captured.captured_queries)
        assert all(query["sql"].count(" LIKE ") <= 48 for query in captured.captured_queries)


@pytest.mark.parametrize(
    ("name", "hit", "miss"),
    [
        ("markets", "RAIN porto", "rain snow"),
        ("questions", "rain", "hail"),
        ("decisions", "nothing MISpriced", "50%"),
        ("forecasts", "porto", "hail"),
        ("families", "GPT", "_"),
    ],
)
def test_search_finds_rows_with_every_word(client: Client, name: str, hit: str, miss: str) -> None:
    market = MarketFactory(question="Will it rain in Porto?")
    DecisionFactory(reasoning="Nothing looks mispriced.")
    ask(QuestionFactory(markets=[market], text="Will it rain in Porto?"), {"gpt-5.1": (0.5, 0.5)}, day=WEEK)
    assert rows_of(client, name, search=hit)
    assert rows_of(client, name, search=miss) == []
    assert list(errors(client.get(f"/api/v1/{name}/", {"search": "x" * 201}))) == ["search"]
