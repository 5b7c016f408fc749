"""The sandbox's script over HTTP: markets by hand beside the season's, prices, results, answers of models, outages."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest

from venue_sandbox.catalogue import Market, ResolutionKind, load_season
from venue_sandbox.exchange import Exchange
from venue_sandbox.http_messages import zulu
from venue_sandbox.kalshi import Kalshi
from venue_sandbox.script import KalshiScript
from venue_sandbox.server import Addresses, running

DAY_THREE = datetime(2026, 3, 4, tzinfo=UTC)
FROST = {"question": "Will there be frost?", "prices": {"Yes": "0.25", "No": "0.75"}}


class Client:
    """A client of a sandbox of its own, on the third day of the season."""

    def __init__(self, addresses: Addresses, http: httpx.Client):
        self.addresses = addresses
        self.http = http
        self.turn_to(DAY_THREE)

    def turn_to(self, at: datetime) -> None:
        assert self.http.post(self.addresses.clock, json={"now": zulu(at)}).status_code == 200

    def tell(self, name: str, **body: Any) -> httpx.Response:
        return self.http.post(f"{self.addresses.root}/sandbox/{name}", json=body)

    def market(self, id: str) -> Any:
        return self.http.get(f"{self.addresses.gamma}/markets/{id}").json()

    def kalshi_market(self, ticker: str) -> Any:
        return self.http.get(f"{self.addresses.kalshi}/markets/{ticker}").json()["market"]

    def catalogue(self, **query: str) -> list[str]:
        """The ids of all pages, by volume."""
        query = {"order": "volumeNum", "ascending": "false", "limit": "20"} | query
        ids: list[str] = []
        while True:
            page = self.http.get(f"{self.addresses.gamma}/markets/keyset", params=query).json()
            ids += [row["id"] for row in page["markets"]]
            if "next_cursor" not in page:
                return ids
            query["after_cursor"] = page["next_cursor"]

    def quotes(self, *tokens: str) -> tuple[dict[str, str], list[Any]]:
        """Midpoints and books."""
        body = [{"token_id": token} for token in tokens]
        midpoints, books = (
            self.http.post(f"{self.addresses.clob}/{name}", json=body) for name in ("midpoints", "books")
        )
        return midpoints.json(), books.json()

    def ask(self, model: str, text: str) -> httpx.Response:
        messages = [{"role": "system", "content": "Trade."}, {"role": "user", "content": text}]
        url = f"{self.addresses.openrouter}/chat/completions"
        return self.http.post(url, json={"model": model, "messages": messages})


@pytest.fixture
def client() -> Iterator[Client]:
    with running() as addresses, httpx.Client(timeout=30) as http:
        yield Client(addresses, http)


@pytest.fixture(scope="module")
def exchange() -> Exchange:
    return Exchange(load_season())


def open_market(exchange: Exchange, outcomes: int = 2) -> Market:
    """A market that is open on the third day and resolves as most do."""
    return next(
        market
        for market in exchange.season.markets
        if market.resolution is ResolutionKind.PLAIN
        and market.version == "v1"
        and len(market.outcomes) == outcomes
        and exchange.is_listed(market, DAY_THREE - timedelta(minutes=5))
        and exchange.market_state(market, DAY_THREE).open
    )


def test_market_by_hand_is_listed_among_the_seasons(client: Client) -> None:
    before = client.catalogue()
    row = client.tell("markets", **FROST).json()
    assert client.market(row["id"]) == row
    assert row["question"] == "Will there be frost?"
    assert (row["outcomePrices"], row["closed"], row["volume"]) == ('["0.25", "0.75"]', False, "999999")
    after = client.catalogue()
    assert len(before) > 20  # of more than a page
    assert [id for id in after if id != row["id"]] == before
    volumes = [float(client.market(id)["volumeNum"]) for id in after]
    assert volumes == sorted(volumes, reverse=True)
    assert client.catalogue(id=row["id"]) == [row["id"]]


def test_market_by_hand_has_the_fields_of_a_seasons_market(client: Client, exchange: Exchange) -> None:
    row = client.tell("markets", **FROST).json()
    season = client.market(open_market(exchange).id)
    assert set(row) - set(season) == set()
    assert {name: type(value) for name, value in row.items() if name != "volumeNum"} == {
        name: type(season[name]) for name in row if name != "volumeNum"
    }
    yes = json.loads(row["clobTokenIds"])[0]
    _, (by_hand, of_season) = client.quotes(yes, open_market(exchange).tokens[0])
    assert set(by_hand) - set(of_season) == set()
    assert by_hand["bids"][0].keys() == of_season["bids"][0].keys()


def test_price_moves_at_every_endpoint(client: Client, exchange: Exchange) -> None:
    row = client.tell("markets", **FROST).json()
    season, prices = open_market(exchange), ["0.71", "0.29"]
    for id, tokens in ((row["id"], json.loads(row["clobTokenIds"])), (season.id, season.tokens)):
        assert client.tell("prices", market=id, prices=prices).json()["outcomePrices"] == '["0.71", "0.29"]'
        assert client.market(id)["outcomePrices"] == '["0.71", "0.29"]'
        midpoints, books = client.quotes(*tokens)
        assert midpoints == dict(zip(tokens, prices, strict=True))
        for book, price in zip(books, prices, strict=True):
            assert Decimal(book["bids"][-1]["price"]) < Decimal(price) < Decimal(book["asks"][-1]["price"])


def test_price_and_result_of_a_kalshi_market(client: Client, exchange: Exchange) -> None:
    kalshi = Kalshi(exchange, KalshiScript())
    ticker = open_market(kalshi.exchange).id
    row = client.tell("prices", market=ticker, prices=["0.63", "0.37"]).json()["market"]
    assert Decimal(row["yes_bid_dollars"]) < Decimal("0.63") < Decimal(row["yes_ask_dollars"])
    assert row["last_price_dollars"] == "0.6300"
    row = client.tell("resolutions", market=ticker, winner=1).json()["market"]
    assert (row["status"], row["result"], row["settlement_value_dollars"]) == ("finalized", "no", "0.0000")
    assert row["close_time"] == "2026-03-04T00:00:00Z"
    since = {"min_updated_ts": f"{DAY_THREE.timestamp():.0f}", "with_nested_markets": "true", "limit": "200"}
    changed = client.http.get(f"{client.addresses.kalshi}/events", params=since).json()["events"]
    assert ticker in {market["ticker"] for event in changed for market in event["markets"]}


def test_market_by_hand_resolves_once(client: Client) -> None:
    row = client.tell("markets", **FROST).json()
    resolved = client.tell("resolutions", market=row["id"], winner=1)
    assert resolved.json()["outcomePrices"] == '["0", "1"]'
    assert (resolved.json()["closed"], resolved.json()["umaResolutionStatus"]) == (True, "resolved")
    assert client.tell("resolutions", market=row["id"], winner=1).status_code == 422
    assert row["id"] not in client.catalogue()
    assert client.catalogue(id=row["id"], closed="true") == [row["id"]]
    midpoints, books = client.quotes(*json.loads(row["clobTokenIds"]))
    assert (midpoints, [(book["bids"], book["asks"]) for book in books]) == ({}, [([], [])] * 2)


def test_model_gives_the_answers_of_the_script_and_then_its_own(client: Client) -> None:
    model = "openai/gpt-5.2"
    told = client.tell("answers", model=model, answers=["no JSON", {"action": "HOLD", "reasoning": "waits"}])
    assert told.json() == {"model": model, "queued": 2}
    scripted = [client.ask(model, "Hello").json() for _ in range(2)]
    own = client.ask(model, "Hello").json()
    texts = [completion["choices"][0]["message"]["content"] for completion in (*scripted, own)]
    assert texts[:2] == ["no JSON", '{"action": "HOLD", "reasoning": "waits"}']
    assert texts[2].startswith("I can not answer this message")
    assert set(own) - set(scripted[0]) == set()
    assert set(own["choices"][0]) == set(scripted[0]["choices"][0])
    assert client.ask("x-ai/grok-4.1-fast", "Hello").json()["choices"][0]["message"]["content"] == texts[2]


def test_outage_ends_when_the_next_list_of_outages_lacks_it(client: Client, exchange: Exchange) -> None:
    season = open_market(exchange)
    row = client.tell("markets", **FROST).json()
    books = f"{client.addresses.clob}/books"
    client.tell("outages", down=["gamma", "/clob/books"], gone=[])
    statuses = [
        client.http.get(f"{client.addresses.gamma}/markets/{season.id}").status_code,
        client.http.post(books, json=[]).status_code,
        client.http.post(f"{client.addresses.clob}/midpoints", json=[]).status_code,
    ]
    assert statuses == [503, 503, 200]
    client.tell("outages", down=[], gone=[season.id, row["id"]])
    assert client.market(season.id) == client.market(row["id"]) == client.market("1")
    assert not {season.id, row["id"]} & set(client.catalogue())
    client.tell("outages", down=[], gone=[])
    assert {season.id, row["id"]} <= set(client.catalogue())
    assert client.http.post(books, json=[]).status_code == 200


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("markets", {"question": "Q?"}),
        ("markets", {"question": "Q?", "prices": {"Yes": "1.5", "No": "x"}}),
        ("prices", {"market": "1", "prices": ["0.5", "0.5"]}),
        ("prices", {"market": "901", "prices": ["0.5"]}),
        ("prices", {"market": "901", "prices": ["0.5", "NaN"]}),
        ("resolutions", {"market": "901", "winner": 2}),
        ("resolutions", {"market": "901", "winner": "Yes"}),
        ("answers", {"model": "openai/gpt-5.2", "answers": 3}),
        ("outages", {"down": ["gamma"]}),
    ],
)
def test_script_that_makes_no_sense_is_refused(client: Client, name: str, body: dict[str, Any]) -> None:
    assert client.tell("markets", **FROST).json()["id"] == "901"
    before = client.market("901")
    assert client.tell(name, **body).status_code == 422
    assert client.market("901") == before
