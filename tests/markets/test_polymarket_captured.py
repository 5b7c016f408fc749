"""Every captured answer of Polymarket: each row is parsed, or skipped for a stated reason."""

import json
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from markets.sources.base import SkippedMarket, VenueMarket
from markets.sources.polymarket import Clob, WinningToken
from markets.sources.polymarket.parsing import parse_event, parse_market
from tests.captured import CAPTURED

CAPTURES = CAPTURED / "polymarket"

pytestmark = pytest.mark.captured


@cache
def captured(name: str) -> Any:
    return json.loads((CAPTURES / name).read_text(), parse_float=Decimal)


def gamma_rows() -> Iterator[tuple[dict[str, Any], VenueMarket | SkippedMarket]]:
    """Each captured market as sent, with what was made of it."""
    for path in sorted((CAPTURES / "gamma").glob("*.json")):
        answer = captured(f"gamma/{path.name}")
        if isinstance(answer, dict):
            answer = [answer] if "id" in answer else answer["markets"]
        for place, raw in enumerate(answer, start=1):
            if "markets" in raw:
                yield from zip(raw["markets"], parse_event(raw), strict=True)
            else:
                yield raw, parse_market(raw, f"{path.name}, row {place}")


@cache
def usable() -> list[tuple[dict[str, Any], VenueMarket]]:
    return [(raw, row) for raw, row in gamma_rows() if isinstance(row, VenueMarket)]


def test_only_placeholders_are_skipped() -> None:
    reasons = Counter(row.reason for _, row in gamma_rows() if isinstance(row, SkippedMarket))
    assert reasons == {"placeholder: neither active nor closed": 14}
    assert len(usable()) == 1251


def test_every_outcome_keeps_the_name_token_and_price_of_its_index() -> None:
    for raw, row in usable():
        names, prices = json.loads(raw["outcomes"]), json.loads(raw["outcomePrices"])
        tokens = json.loads(raw.get("clobTokenIds") or "null") or [None] * len(names)
        assert [outcome.name for outcome in row.outcomes] == [name.strip() for name in names]
        assert [outcome.price for outcome in row.outcomes] == [Decimal(price) for price in prices]
        assert [outcome.token_id for outcome in row.outcomes] == [token or None for token in tokens]
        assert [outcome.index for outcome in row.outcomes] == list(range(len(names)))


def test_what_is_open_is_what_gamma_left_open() -> None:
    for raw, row in usable():
        assert row.closed is raw["closed"]
        assert row.is_open is (not raw["closed"] and raw.get("acceptingOrders", True))
    assert Counter(row.is_open for _, row in usable()) == {True: 781, False: 470}


def test_missing_dates_and_liquidity_cost_no_row() -> None:
    rows = [row for _, row in usable()]
    assert sum(row.closes_at is None for row in rows) == sum("endDate" not in raw for raw, _ in usable())
    assert sum(row.liquidity is None for row in rows) == sum("liquidity" not in raw for raw, _ in usable())


def test_oracle_and_volume_are_read_where_they_are() -> None:
    statuses = Counter(row.oracle_status for _, row in usable())
    assert {status: statuses[status] for status in ("resolved", "proposed", "disputed")} == {
        "resolved": 176,
        "proposed": 7,
        "disputed": 7,
    }
    for raw, row in usable():
        if "volumeNum" in raw:
            assert row.volume == raw["volumeNum"]


def test_category_comes_from_the_row_or_from_the_events_tags() -> None:
    rows = {row.external_id: row for _, row in usable()}
    assert rows["692258"].category == "Finance"
    assert rows["692258"].event_title == "MicroStrategy sells any Bitcoin by ___ ?"
    for raw, row in usable():
        if raw.get("category"):
            assert row.category == raw["category"].strip()


def test_two_sides_quote_each_other() -> None:
    for raw, row in usable():
        if len(row.outcomes) == 2 and "bestAsk" in raw:
            assert row.outcomes[0].ask == raw["bestAsk"]
            assert row.outcomes[1].bid == 1 - raw["bestAsk"]


@pytest.mark.parametrize(
    ("name", "bid", "ask"),
    [
        ("book__nautilus.json", "0.1", "0.14"),
        ("book__funkekaiser_binary.json", "0.063", "0.068"),
        ("book__ra1nty_one_sided.json", None, "0.001"),
    ],
)
def test_captured_book_gives_its_best_prices(httpserver: HTTPServer, name: str, bid: str | None, ask: str) -> None:
    body = (CAPTURES / "clob" / name).read_text()
    token = captured(f"clob/{name}")["asset_id"]
    httpserver.expect_request("/books", method="POST").respond_with_data(f"[{body}]")
    with Clob(httpserver.url_for("/")) as clob:
        book = clob.books([token]).values[token]
    assert (book.bid, book.ask) == (bid and Decimal(bid), Decimal(ask))


def test_captured_midpoint_is_a_price(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/midpoints", method="POST").respond_with_data("", status=404)
    httpserver.expect_request("/midpoint").respond_with_data((CAPTURES / "clob" / "midpoint__ra1nty.json").read_text())
    with Clob(httpserver.url_for("/")) as clob:
        assert clob.midpoints(["9"]).values == {"9": Decimal("0.0005")}


NO = "89711174926330519158043401581181146613785179104141808554061413232025882707365"


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("clob_market__closed_accepting_false.json", "No"),
        ("clob_market__closed_accepting_true.json", "Yes"),
        ("clob_market__nautilus.json", None),
    ],
)
def test_captured_market_names_its_winner(httpserver: HTTPServer, name: str, outcome: str | None) -> None:
    market = captured(f"clob/{name}")
    httpserver.expect_request(f"/markets/{market['condition_id']}").respond_with_data(
        (CAPTURES / "clob" / name).read_text()
    )
    with Clob(httpserver.url_for("/")) as clob:
        winner = clob.winner(market["condition_id"])
    assert (winner and winner.outcome) == outcome
    if name == "clob_market__closed_accepting_false.json":
        assert winner == WinningToken(NO, "No")
