"""The sandbox's Kalshi has the real one's format, and resolves as the sandbox's Polymarket does."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest

from markets.sources.base import VenueMarket
from markets.sources.kalshi import Kalshi as Client
from markets.sources.polymarket import Gamma
from venue_sandbox.catalogue import load_season
from venue_sandbox.editions import extend_season
from venue_sandbox.exchange import Exchange
from venue_sandbox.http_messages import zulu
from venue_sandbox.kalshi import Kalshi
from venue_sandbox.script import KalshiScript
from venue_sandbox.server import Addresses, running

STARTS = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)
Row = dict[str, Any]


class Venue:
    """A client of one running sandbox."""

    def __init__(self, addresses: Addresses):
        self.addresses = addresses
        self.http = httpx.Client(timeout=30)

    def set_clock(self, day: float) -> None:
        self.http.post(self.addresses.clock, json={"now": zulu(STARTS + day * DAY)}).raise_for_status()

    def get(self, path: str, **query: Any) -> httpx.Response:
        return self.http.get(self.addresses.kalshi + path, params=query)

    def events(self, **query: Any) -> list[Row]:
        events: list[Row] = self.get("/events", **({"with_nested_markets": "true", "limit": 200} | query)).json()[
            "events"
        ]
        return events

    def market(self, ticker: str) -> Row:
        row: Row = self.get(f"/markets/{ticker}").json()["market"]
        return row

    def titled(self, title: str) -> list[Row]:
        return next(event["markets"] for event in self.events() if event["title"] == title)


@pytest.fixture(scope="module")
def venue() -> Iterator[Venue]:
    with running() as addresses:
        client = Venue(addresses)
        with client.http:
            yield client


def test_prices_are_dollar_strings_with_equal_cents_for_some_markets(venue: Venue) -> None:
    venue.set_clock(2)
    rows = [market for event in venue.events() for market in event["markets"]]
    quotes = ("yes_bid", "yes_ask", "no_bid", "no_ask", "last_price")
    for row in rows:
        dollar_quotes = [row[f"{name}_dollars"] for name in quotes if f"{name}_dollars" in row]
        assert all(len(text) == 6 and 0 <= Decimal(text) <= 1 for text in dollar_quotes)
        if "yes_bid" in row:
            assert Decimal(row["yes_bid"]) / 100 == Decimal(row["yes_bid_dollars"])
    in_cents = sum("yes_bid" in row for row in rows)
    assert 0 < in_cents < len(rows)


def test_events_include_markets_and_mutual_exclusivity(venue: Venue) -> None:
    venue.set_clock(2)
    events = {event["title"]: event for event in venue.events()}
    premier = events["Who will be Valdria's next prime minister?"]
    assert premier["mutually_exclusive"] is True
    assert [market["yes_sub_title"] for market in premier["markets"]][:2] == ["Mara Ellison", "Tobias Renn"]
    assert {market["event_ticker"] for market in premier["markets"]} == {premier["event_ticker"]}
    assert events["Which prices will rise in Valdria's February report?"]["mutually_exclusive"] is False
    assert venue.get("/events", limit=1).json()["events"][0].get("markets") is None


def test_pages_end_with_an_empty_cursor(venue: Venue) -> None:
    venue.set_clock(2)
    tickers, cursor = [], ""
    while True:
        body = venue.get("/events", status="open", limit=2, cursor=cursor).json()
        tickers += [event["event_ticker"] for event in body["events"]]
        cursor = body["cursor"]
        if not cursor:
            break
    all_tickers = [event["event_ticker"] for event in venue.events(status="open", limit=200)]
    assert tickers == all_tickers
    assert len(tickers) > 4


@pytest.mark.parametrize("query", [{"status": "active"}, {"cursor": "%%%"}, {"limit": "0"}, {"limit": "many"}])
def test_kalshi_refuses_invalid_requests(venue: Venue, query: dict[str, str]) -> None:
    reply = venue.get("/events", **query)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "bad_request")


def test_unknown_and_unlisted_tickers_are_not_found(venue: Venue) -> None:
    venue.set_clock(2)
    later = venue.get("/markets/KXBOVDECISION-26APR12-ACU0")
    assert later.status_code == venue.get("/markets/KXNONE").status_code
    assert (later.status_code, later.json()["error"]["code"]) == (404, "not_found")
    venue.set_clock(10)
    assert venue.market("KXBOVDECISION-26APR12-ACU0")["status"] == "active"


def test_arenas_client_parses_every_traded_market(venue: Venue) -> None:
    venue.set_clock(2)
    with Client(venue.addresses.kalshi) as client:
        pages = list(client.catalogue(page_limit=3))
    rows = [row for page in pages for row in page.rows]
    left_out = [row for page in pages for row in page.skipped]
    assert len(pages) > 2
    assert [row.reason.split(":")[0] for row in left_out] == ["no price"]
    assert all(row.outcomes[0].price is not None for row in rows)
    assert {row.option for row in rows} >= {"Fuel", "Mara Ellison", "Glass Harbour"}


def test_changed_events_known_tickers_and_the_historical_tier_are_answered(venue: Venue) -> None:
    venue.set_clock(2)
    ticker = venue.events()[0]["markets"][0]["ticker"]
    assert [row["ticker"] for row in venue.get("/markets", tickers=f"{ticker},KXNONE").json()["markets"]] == [ticker]
    later = int((STARTS + 2 * DAY).timestamp())
    assert venue.get("/events", min_updated_ts=later).json()["events"] == []
    venue.set_clock(12)
    assert 0 < len(venue.events(min_updated_ts=later)) < len(venue.events())
    assert venue.get(f"/historical/markets/{ticker}").status_code == 404
    venue.set_clock(300)
    assert venue.get(f"/markets/{ticker}").status_code == 404
    assert venue.get(f"/historical/markets/{ticker}").json()["market"]["status"] == "finalized"


def test_markets_pass_through_every_status(venue: Venue) -> None:
    venue.set_clock(2)
    tickers = [row["ticker"] for event in venue.events() for row in event["markets"]]
    results = Counter[tuple[str, str]]()
    for hour in range(24 * 2, 24 * 48, 12):
        venue.set_clock(hour / 24)
        results.update({(row["status"], row["result"]) for row in map(venue.market, tickers[::8])})
    assert {status for status, _ in results} >= {"active", "closed", "determined", "finalized"}
    assert all(not result for status, result in results if status in ("active", "closed"))
    assert all(result in ("yes", "no", "scalar") for status, result in results if status == "finalized")


def test_some_markets_are_disputed_or_settle_evenly(venue: Venue) -> None:
    venue.set_clock(31.5)
    assert {row["status"] for row in venue.titled("Harbour League player of the month for March?")} <= {
        "disputed",
        "determined",
    }
    venue.set_clock(17)
    settled = venue.titled("Who will win the Norhaven Open doubles?")
    assert {(row["status"], row["result"], row["settlement_value_dollars"]) for row in settled} == {
        ("finalized", "scalar", "0.5000")
    }


def test_duplicate_questions_resolve_alike_at_both_venues(venue: Venue) -> None:
    """Polymarket's group and Kalshi's event share a race."""
    venue.set_clock(60)
    exchange = Exchange(load_season(), seed=0)
    polymarket_rows = {
        (event.title, market.label.removeprefix("the ")): exchange.winner(market) == market.outcomes.index("Yes")
        for event in exchange.season.events
        for market in event.markets
        if "Yes" in market.outcomes
    }
    listing = Kalshi(exchange, KalshiScript())
    compared = 0
    for entry in listing.listing.cross_listings:
        event = next(event for event in listing.exchange.season.events if event.id.startswith(f"{entry.series}-"))
        for market in event.markets:
            assert venue.market(market.id)["result"] == ("yes" if polymarket_rows[entry.of, market.label] else "no")
            compared += 1
    assert compared == 32


def test_gamma_labels_options_and_exclusive_groups(venue: Venue) -> None:
    venue.set_clock(2)
    with Gamma(venue.addresses.gamma) as gamma:
        rows = [row for page in gamma.catalogue() for row in page.rows]
        group = [row for row in rows if row.event_title == "Next prime minister of Valdria"]
        one = gamma.market(group[0].external_id)
    assert {(row.option, row.event_exclusive) for row in group} >= {("Mara Ellison", True), ("Another person", True)}
    assert len(group) == 6
    assert isinstance(one, VenueMarket)
    assert (one.option, one.event_exclusive) == (group[0].option, True)
    assert {row.event_exclusive for row in rows if row not in group} == {True, False}


def test_extended_season_has_editions_at_kalshi() -> None:
    exchange = Exchange(extend_season(load_season(), 52), seed=0)
    events = Kalshi(exchange, KalshiScript()).exchange.season.events
    assert len({event.id for event in events}) == len(events)
    assert len({market.id for event in events for market in event.markets}) == sum(len(e.markets) for e in events)
    for week in range(0, 52, 4):
        at = exchange.season.starts + week * 7 * DAY
        assert any(market.lists <= at < market.closes for event in events for market in event.markets)
