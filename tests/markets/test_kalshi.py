"""Kalshi over HTTP: walking the events, looking one market up, and rows that are not what they should be."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from foundation.http import UpstreamError
from markets.pricing import PriceRule, decide_quoted_price
from markets.sources.base import SkippedMarket, Unresolved, VenueMarket
from markets.sources.kalshi import Kalshi, parse_event, parse_market

NO_PRICE = "no price: no trade yet, and no book of two sides"
RULE = PriceRule(*(Decimal("0.10"),) * 2, jump_tolerance=Decimal("0.25"))

pytestmark = pytest.mark.usefixtures("retries_without_waits")


def raw(**fields: Any) -> dict[str, Any]:
    """A market as Kalshi sends it; a field given as ... is left out."""
    market: dict[str, Any] = {
        "ticker": "KXRAIN-26MAR20-T1",
        "event_ticker": "KXRAIN-26MAR20",
        "market_type": "binary",
        "title": "Will it rain?",
        "yes_sub_title": "Yes",
        "status": "active",
        "result": "",
        "close_time": "2026-03-20T03:59:00Z",
        "yes_bid_dollars": "0.4200",
        "yes_ask_dollars": "0.4400",
        "last_price_dollars": "0.3900",
        "volume_fp": "120.50",
    }
    return {key: value for key, value in (market | fields).items() if value is not ...}


def row(**fields: Any) -> VenueMarket:
    parsed = parse_market(raw(**fields), "row 1")
    assert isinstance(parsed, VenueMarket), parsed
    return parsed


def skipped(**fields: Any) -> SkippedMarket:
    parsed = parse_market(raw(**fields), "row 1")
    assert isinstance(parsed, SkippedMarket), parsed
    return parsed


def price(**fields: Any) -> tuple[Decimal | None, str]:
    yes = row(**fields).outcomes[0]
    decision = decide_quoted_price(RULE, trade=yes.price, bid=yes.bid, ask=yes.ask, last=None)
    return decision.price, decision.source


@pytest.fixture
def kalshi(httpserver: HTTPServer) -> Iterator[Kalshi]:
    with Kalshi(httpserver.url_for("/"), timeout_s=5) as kalshi:
        yield kalshi


# ── a row ─────────────────────────────────────────────────────────────────────────────────────────


def test_row_is_a_yes_no_market_with_both_sides_quoted() -> None:
    market = row(
        rules_primary="If it rains …", rules_secondary="Drizzle counts.", category="Weather",
        created_time="2026-03-01T08:00:00Z",
    )  # fmt: skip
    assert market.created_at == datetime(2026, 3, 1, 8, tzinfo=UTC)
    yes, no = market.outcomes
    assert (market.external_id, market.question, market.event_id) == (
        "KXRAIN-26MAR20-T1",
        "Will it rain?",
        "KXRAIN-26MAR20",
    )
    assert [(side.index, side.name, side.token_id) for side in (yes, no)] == [(0, "Yes", None), (1, "No", None)]
    assert (yes.price, yes.bid, yes.ask) == (Decimal("0.39"), Decimal("0.42"), Decimal("0.44"))
    assert (no.price, no.bid, no.ask) == (Decimal("0.61"), Decimal("0.56"), Decimal("0.58"))
    assert (market.description, market.category) == ("If it rains …\n\nDrizzle counts.", "Weather")
    assert (market.volume, market.closes_at) == (Decimal("120.5"), datetime(2026, 3, 20, 3, 59, tzinfo=UTC))
    assert market.is_open


CENTS = {"yes_bid_dollars": ..., "yes_ask_dollars": ..., "last_price_dollars": ...}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ("0.43", "midpoint")),
        ({"yes_bid": 70, "yes_ask": 74, "last_price": 71}, ("0.43", "midpoint")),
        (CENTS | {"yes_bid": 70, "yes_ask": 74, "last_price": 71}, ("0.72", "midpoint")),
        (CENTS | {"yes_bid": 0, "yes_ask": 74, "last_price": 71}, ("0.71", "trade")),
        ({"yes_bid_dollars": None, "yes_bid": 42}, ("0.43", "midpoint")),
        ({"yes_ask_dollars": "0.5200"}, ("0.47", "midpoint")),
        ({"yes_ask_dollars": "0.5201"}, ("0.39", "trade")),
        ({"yes_bid_dollars": "0.0000"}, ("0.39", "trade")),
        ({"yes_bid_dollars": "0.0000", "no_ask_dollars": "0.5800"}, ("0.43", "midpoint")),
        ({"yes_ask_dollars": "1.0000"}, ("0.39", "trade")),
        ({"yes_bid_dollars": "0.5000"}, ("0.39", "trade")),
        ({"yes_bid_dollars": "0.0650", "yes_ask_dollars": "0.0665"}, ("0.06575", "midpoint")),
    ],
    ids=[
        "dollars",
        "dollars win over cents",
        "cents alone",
        "a bid of no cents is none",
        "one field in cents",
        "widest book",
        "book too wide",
        "a bid of nothing is none",
        "the other side's offer is a bid",
        "an offer at a dollar is none",
        "crossed book",
        "fractions of a cent",
    ],
)
def test_price_is_the_middle_of_a_tight_book_else_the_last_trade(
    fields: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert price(**fields) == (Decimal(expected[0]), expected[1])


def test_cents_in_another_unit_are_not_read() -> None:
    fields = CENTS | {"yes_bid": 70, "yes_ask": 74, "response_price_units": "usd_centicent"}
    assert skipped(**fields).reason == NO_PRICE


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"ticker": None}, "no ticker"),
        ({"title": "", "rules_primary": ""}, "no question"),
        ({"status": "melted"}, "status: 'melted' is unknown"),
        ({"status": None}, "status: None is unknown"),
        ({"market_type": "scalar"}, "market_type: 'scalar' is not binary"),
        ({"ticker": "KXMVESPORTS-S2026-1"}, "multivariate: a parlay on other markets"),
        ({"mve_collection_ticker": "KXMVE-R"}, "multivariate: a parlay on other markets"),
        ({"yes_bid_dollars": "0.0000", "yes_ask_dollars": "0.0000", "last_price_dollars": "0.0000"}, NO_PRICE),
        ({"yes_bid_dollars": "NaN", "yes_ask_dollars": [1], "last_price_dollars": True}, NO_PRICE),
        ({"ticker": ..., "ticker_name": "KXRAIN"}, "the website's own (v1) format, another API"),
    ],
)
def test_unusable_row_is_skipped_with_its_reason(fields: dict[str, Any], reason: str) -> None:
    assert skipped(**fields).reason == reason


@pytest.mark.parametrize("not_a_market", [None, 7, "KXRAIN", ["KXRAIN"]])
def test_what_is_no_object_is_skipped(not_a_market: Any) -> None:
    assert isinstance(parse_market(not_a_market, "row 3"), SkippedMarket)
    assert [type(one) for one in parse_event({"event_ticker": "KXRAIN", "markets": [not_a_market]})] == [SkippedMarket]
    assert [type(one) for one in parse_event(not_a_market)] == [SkippedMarket]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys([*raw(), "rules_primary", "settlement_value_dollars"], JSON)))
def test_no_field_whatever_it_holds_breaks_the_reading(fields: dict[str, Any]) -> None:
    assert isinstance(parse_market(raw(**fields), "row 1"), VenueMarket | SkippedMarket)
    assert isinstance(parse_event({"event_ticker": "E", "markets": [raw(**fields)]}), list)


@pytest.mark.parametrize(
    ("status", "closed", "accepts_orders"),
    [
        ("active", False, True),
        ("initialized", False, False),
        ("inactive", False, False),
        ("closed", True, False),
        ("determined", True, False),
        ("disputed", True, False),
        ("amended", True, False),
        ("finalized", True, False),
        ("settled", True, False),
    ],
)
def test_each_status_is_open_paused_or_over(status: str, closed: bool, accepts_orders: bool) -> None:
    market = row(status=status)
    assert (market.closed, market.accepts_orders) == (closed, accepts_orders)
    assert market.oracle_status == ("finalized" if status == "settled" else status)


@pytest.mark.parametrize(
    ("fields", "result", "pays"),
    [
        ({"result": "yes"}, "yes", "1"),
        ({"result": "no"}, "no", "0"),
        ({"result": "scalar", "settlement_value_dollars": "0.6400"}, "scalar", "0.64"),
        ({"result": "scalar", "settlement_value": 64}, "scalar", "0.64"),
        ({"result": "void"}, "void", None),
        ({"result": ""}, "", None),
        ({"result": None}, "", None),
        ({"result": "", "settlement_value_dollars": "1.0000"}, "", None),
    ],
)
def test_ended_market_says_what_it_pays_and_needs_no_quote(
    fields: dict[str, Any], result: str, pays: str | None
) -> None:
    quote = {"yes_bid_dollars": "0.0000", "yes_ask_dollars": "1.0000"}
    market = row(status="finalized", **quote, **fields)
    yes, no = (outcome.price for outcome in market.outcomes)
    assert (market.result, yes) == (result, None if pays is None else Decimal(pays))
    assert no == (None if yes is None else 1 - yes)


@pytest.mark.parametrize(
    ("status", "result", "pays", "ends_as"),
    [
        ("finalized", "yes", "1.0000", "Yes"),
        ("finalized", "no", "0.0000", "No"),
        ("settled", "yes", None, "Yes"),
        ("finalized", "scalar", "0.6400", "cancelled"),
        ("finalized", "void", None, "cancelled"),
        ("closed", "", None, "waiting"),
        ("determined", "yes", None, "waiting"),
        ("disputed", "yes", None, "waiting"),
        ("amended", "no", "0.0000", "waiting"),
        ("finalized", "", None, "waiting"),
        ("finalized", "yes", "0.0000", "waiting"),
        ("finalized", "all of them", None, "waiting"),
    ],
)
def test_only_the_terminal_status_with_a_result_ends_a_market(
    kalshi: Kalshi, status: str, result: str, pays: str | None, ends_as: str
) -> None:
    resolution = kalshi.resolution(row(status=status, result=result, settlement_value_dollars=pays))
    if isinstance(resolution, Unresolved):
        assert ends_as == "waiting"
    else:
        assert ends_as == (resolution.winner.name if resolution.winner else "cancelled")


def test_result_of_an_open_market_is_not_believed() -> None:
    assert row(result="yes").result == ""


def test_option_is_the_markets_name_in_its_event() -> None:
    event = {
        "event_ticker": "KXPM",
        "title": "Who will be the next prime minister?",
        "category": "Elections",
        "mutually_exclusive": True,
        "markets": [
            raw(title="Who will be the next prime minister?", yes_sub_title="Mara Ellison"),
            raw(title="Will Tobias Renn be the next prime minister?", yes_sub_title="Tobias Renn"),
            raw(title="", yes_sub_title="Paulo Varga"),
        ],
    }
    rows = [one for one in parse_event(event) if isinstance(one, VenueMarket)]
    assert [one.option for one in rows] == ["Mara Ellison", "Tobias Renn", "Paulo Varga"]
    assert [one.question for one in rows] == [
        "Who will be the next prime minister? – Mara Ellison",
        "Will Tobias Renn be the next prime minister?",
        "Who will be the next prime minister? – Paulo Varga",
    ]
    assert {(one.event_id, one.event_title, one.event_exclusive, one.category) for one in rows} == {
        ("KXPM", "Who will be the next prime minister?", True, "Elections")
    }


def test_plain_yes_is_no_option_and_silence_about_exclusivity_is_no_answer() -> None:
    assert (row().option, row().event_exclusive) == ("", None)


# ── the client ────────────────────────────────────────────────────────────────────────────────────


def page(cursor: str | None, *tickers: str) -> str:
    events = [{"event_ticker": ticker, "title": "Rain", "markets": [raw(ticker=ticker)]} for ticker in tickers]
    return json.dumps({"events": events, "cursor": cursor})


def test_many_markets_are_listed_by_their_tickers(httpserver: HTTPServer, kalshi: Kalshi) -> None:
    tickers = [f"T{number}" for number in range(130)]
    for ticker_batch in (tickers[:100], tickers[100:]):
        listed = json.dumps({"markets": [raw(ticker=ticker) for ticker in (*ticker_batch[1:], "OTHER")]})
        query = {"tickers": ",".join(ticker_batch), "limit": str(len(ticker_batch))}
        httpserver.expect_request("/markets", query_string=query).respond_with_data(listed)
    assert kalshi.markets(tickers).keys() == set(tickers) - {"T0", "T100"}


def test_walk_follows_the_cursor_to_its_end(httpserver: HTTPServer, kalshi: Kalshi) -> None:
    parameters = {"status": "open", "with_nested_markets": "true", "limit": "200"}
    httpserver.expect_request("/events", query_string=parameters).respond_with_data(page("two", "A", "B"))
    httpserver.expect_request("/events", query_string=parameters | {"cursor": "two"}).respond_with_data(page("", "C"))
    pages = list(kalshi.catalogue())
    assert [[row.external_id for row in page.rows] for page in pages] == [["A", "B"], ["C"]]
    assert [page.cursor for page in pages] == ["two", None]


def test_walk_in_a_circle_ends(httpserver: HTTPServer, kalshi: Kalshi) -> None:
    httpserver.expect_request("/events").respond_with_data(page("again", "A"))
    with pytest.raises(UpstreamError, match="repeats its cursor 'again'"):
        list(kalshi.catalogue())


def test_walk_without_end_ends(httpserver: HTTPServer, kalshi: Kalshi) -> None:
    def ever_more(request: Request) -> Response:
        return Response(page(f"{request.args.get('cursor', '')}x", "A"))

    httpserver.expect_request("/events").respond_with_handler(ever_more)
    with pytest.raises(UpstreamError, match="did not end within 5 pages"):
        list(kalshi.catalogue(max_pages=5))


@pytest.mark.parametrize("answer", ['{"cursor": ""}', "[]", '{"events": {}}', '"well"'])
def test_answer_without_events_is_named(httpserver: HTTPServer, kalshi: Kalshi, answer: str) -> None:
    httpserver.expect_request("/events").respond_with_data(answer)
    with pytest.raises(UpstreamError, match="no list of events"):
        list(kalshi.catalogue())


def test_rate_limit_without_retry_after_is_waited_out(httpserver: HTTPServer, kalshi: Kalshi) -> None:
    httpserver.expect_ordered_request("/events").respond_with_data('{"error":"too many requests"}', status=429)
    httpserver.expect_ordered_request("/events").respond_with_data(page(None, "A"))
    assert [len(page.rows) for page in kalshi.catalogue()] == [1]


def test_single_market_is_looked_up_by_its_ticker(httpserver: HTTPServer, kalshi: Kalshi) -> None:
    httpserver.expect_request("/markets/KXRAIN-26MAR20-T1").respond_with_json({"market": raw(status="closed")})
    httpserver.expect_request("/markets/OTHER").respond_with_json({"market": raw()})
    httpserver.expect_request("/markets/OLD").respond_with_data("{}", status=404)
    httpserver.expect_request("/historical/markets/OLD").respond_with_json({"market": raw(ticker="OLD")})
    for tier in ("", "/historical"):
        httpserver.expect_request(f"{tier}/markets/GONE").respond_with_json({"error": "not found"}, status=404)
    market = kalshi.market("KXRAIN-26MAR20-T1")
    assert isinstance(market, VenueMarket)
    assert market.closed
    assert kalshi.market("OTHER") == SkippedMarket("OTHER", "answered with another market, KXRAIN-26MAR20-T1")
    old = kalshi.market("OLD")
    assert isinstance(old, VenueMarket)
    assert kalshi.market("GONE") is None


def test_look_up_without_a_market_is_named(httpserver: HTTPServer, kalshi: Kalshi) -> None:
    httpserver.expect_request("/markets/A").respond_with_json({"markets": []})
    with pytest.raises(UpstreamError, match="answered no market"):
        kalshi.market("A")


@pytest.mark.parametrize(
    ("expected", "closes"), [("2026-03-10T15:00:00Z", 10), ("2026-04-01T00:00:00Z", 20), ("soon", 20), (None, 20)]
)
def test_market_closes_when_its_event_is_expected_to_end_if_that_is_earlier(expected: Any, closes: int) -> None:
    closes_at = row(expected_expiration_time=expected).closes_at
    assert closes_at is not None
    assert (closes_at.month, closes_at.day) == (3, closes)
