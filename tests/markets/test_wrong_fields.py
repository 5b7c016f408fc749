"""Fields of the wrong type, one at a time: which rows they cost, what of a row still counts, what stays on record.

In the tables a value stands as it does in JSON.
"""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from agents.services.resolutions import read_resolution
from foundation.http import UpstreamError, parse_json
from markets.models import Market, Outcome
from markets.pricing import PriceRule, decide_polymarket_price
from markets.services.market_storage import FetchedMarkets, OutcomesChanged, SyncReport, store_markets
from markets.sources.base import SkippedMarket, Unresolved, VenueMarket
from markets.sources.polymarket import Clob, Gamma
from markets.sources.polymarket.clob import parse_book, parse_midpoint
from markets.sources.polymarket.parsing import parse_market
from tests.commands import SUNDAY
from tests.json_fields import EVERY, WRONG, replace_field

WHOLE = {
    "question": "Will it rain?",
    "outcomes": '["Yes", "No"]',
    "outcomePrices": '["0.40", "0.60"]',
    "closed": False,
    "active": True,
    "acceptingOrders": True,
    "conditionId": "0xabc",
    "slug": "rain",
    "description": "The rules.",
    "category": "Weather",
    "tags": [{"label": "Rain"}],
    "events": [{"id": "7", "title": "Storms"}],
    "volume": "900",
    "volumeNum": 900,
    "liquidity": "500",
    "liquidityNum": 500,
    "endDate": "2026-06-30T00:00:00Z",
    "bestBid": 0.39,
    "bestAsk": 0.41,
    "closedTime": None,
    "enableOrderBook": True,
    "umaResolutionStatus": "proposed",
    "umaResolutionStatuses": '["proposed"]',
    "negRisk": False,
}


def row_of(number: int, **fields: Any) -> dict[str, Any]:
    return WHOLE | {"id": str(number), "clobTokenIds": json.dumps([f"{number}1", f"{number}2"])} | fields


def store(rows: list[dict[str, Any]]) -> list[SkippedMarket]:
    """Stores rows of Gamma in one transaction; returns those that can not be read."""
    parsed = [parse_market(parse_json(json.dumps(row)), str(row.get("id"))) for row in rows]
    fetched = FetchedMarkets("polymarket", {row.external_id: row for row in parsed if isinstance(row, VenueMarket)})
    store_markets(fetched, SUNDAY, SyncReport())
    return [row for row in parsed if isinstance(row, SkippedMarket)]


# ── Gamma's rows ──────────────────────────────────────────────────────────────────────────────────

GAMMA = {
    # field: (values that cost the row, values that change what is on record); for all others it stays as it was
    "question": ('absent null 7 true [] {} ""', '"x"'),
    "outcomes": (EVERY, ""),
    "outcomePrices": (EVERY, ""),
    "closed": ('7 "x" [] {} ""', "true"),
    "clobTokenIds": ("", ""),
    "active": ("", ""),
    "acceptingOrders": ("", ""),
    "enableOrderBook": ("", ""),
    "conditionId": ("", '7 "x"'),
    "slug": ("", '"x"'),
    "description": ("", '"x"'),
    "category": ("", EVERY),  # else its tags say
    "tags": ("", ""),
    "events": ("", ""),
    "volume": ("", ""),
    "volumeNum": ("", "7"),
    "liquidity": ("", ""),
    "liquidityNum": ("", "7"),
    "endDate": ("", ""),
    "closedTime": ("", ""),
    "bestBid": ("", EVERY),  # an offer that is not stated now is not an offer
    "bestAsk": ("", EVERY),
    "umaResolutionStatus": ("", '"x"'),
    "umaResolutionStatuses": ("", ""),
    "negRisk": ("", "true"),
}


def on_record() -> dict[str, list[Any]]:
    """The values that a wrong field must not change, by the market's id."""
    record = {}
    names = ("question", "kind", "status", "accepts_orders", "oracle_status", "condition_id", "slug", "description")
    more = ("category", "event_id", "event_title", "event_exclusive", "volume", "liquidity", "closes_at")
    for market_id, *values in Market.objects.values_list("external_id", *names, *more):
        record[market_id] = values
    quotes = Outcome.objects.order_by("index").values_list("market__external_id", "name", "token_id", "quote", "bid")
    for market_id, *values in quotes:
        record[market_id] += values
    return record


@pytest.mark.django_db
def test_field_of_a_gamma_row_costs_its_row_or_changes_nothing_but_what_it_says() -> None:
    cases = {str(number): case for number, case in enumerate((name, value) for name in GAMMA for value in WRONG)}
    rows = [row_of(int(number)) for number in cases]
    assert store(rows) == []
    before = on_record()
    skipped = store([replace_field(row, *cases[row["id"]]) for row in rows])
    after = on_record()
    lost = {cases[row.ref] for row in skipped}
    changed = {case for number, case in cases.items() if after[number] != before[number]}
    assert lost == {(name, value) for name, (values, _) in GAMMA.items() for value in values.split()}
    assert changed == {(name, value) for name, (_, values) in GAMMA.items() for value in values.split()}


@pytest.mark.django_db
def test_endless_text_is_cut_or_left_out_and_fails_no_batch() -> None:
    endless = "9" * 100_000
    names = ("conditionId", "slug", "category", "endDate", "umaResolutionStatus", "volume", "groupItemTitle")
    assert store([row_of(number, **{name: endless}) for number, name in enumerate(names)]) == []
    assert Market.objects.count() == len(names)
    for market in Market.objects.all():
        market.clean_fields(exclude=["event_title"])


# ── results ───────────────────────────────────────────────────────────────────────────────────────

FINAL = {
    # field: values in spite of which the market resolves; for all others it waits, or its row is skipped
    "id": "",
    "question": '"x"',
    "outcomes": "",
    "outcomePrices": "",
    "closed": "true",
    "umaResolutionStatus": "",
    "clobTokenIds": EVERY,
    "acceptingOrders": EVERY,
    "closedTime": EVERY,
    "conditionId": EVERY,
    "events": EVERY,
}
RESOLVED = {"closed": True, "outcomePrices": '["1", "0"]', "umaResolutionStatus": "resolved"}
NOWHERE = "http://127.0.0.1:9"


def winner(row: dict[str, Any]) -> str | None:
    """The side that wins by a row; None where it tells no final result."""
    market = Market.objects.get()
    parsed = Gamma.with_id(market.external_id, parse_market(row, "row"))
    if isinstance(parsed, SkippedMarket) or not parsed.closed:
        return None
    with Gamma(NOWHERE) as gamma:
        try:
            resolution = read_resolution(market, parsed, gamma)
        except OutcomesChanged:
            return None
    return None if isinstance(resolution, Unresolved) or resolution.winner is None else resolution.winner.side


@pytest.mark.django_db
def test_field_of_a_final_row_resolves_nothing_wrong() -> None:
    store([row_of(1)])
    winners = {
        (name, value): winner(replace_field(row_of(1, **RESOLVED), name, value)) for name in FINAL for value in WRONG
    }
    assert {case: side for case, side in winners.items() if side} == {
        (name, value): "YES" for name, values in FINAL.items() for value in values.split()
    }


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("names", "prices", "side"),
    [
        (["Yes", "No"], ["1", "0"], "YES"),
        ([" YES", "no "], ["1", "0"], "YES"),
        (["It will", "It will not"], ["1", "0"], "YES"),
        (["No", "Yes"], ["0", "1"], None),
        (["NO", "Maybe"], ["0", "1"], None),
    ],
    ids=["as on record", "in other letters", "in other words", "in another order", "one in another place"],
)
def test_without_tokens_a_row_whose_names_changed_places_resolves_nothing(
    names: list[str], prices: list[str], side: str | None
) -> None:
    store([row_of(1)])
    assert winner(row_of(1, **RESOLVED | {"outcomes": names, "outcomePrices": prices, "clobTokenIds": None})) == side


YES, NO = '"token_id": "11", "winner": true', '"token_id": "12", "winner": '
WINS, WAITS, FAILS = "resolved", "waiting", "failed"
WINNERS = {
    f"[{{{YES}}}]": WINS,
    f"[{{{YES}}}, {{{NO} false}}, null, 7]": WINS,
    f"[{{{YES}}}, {{{YES}}}]": WAITS,
    f'[{{{YES}}}, {{{NO} "true"}}]': WAITS,
    f"[{{{NO} true}}]": WAITS,
    **{f'[{{"token_id": "11", "winner": {value}}}]': WAITS for value in WRONG[1:] if value != "true"},
    **{f'[{{"token_id": {value}, "winner": true}}]': WAITS for value in WRONG[1:]},
    **{f"[{value}]": WAITS for value in WRONG[1:]},
    "[]": WAITS,
    **{value: FAILS for value in WRONG[1:] if value != "[]"},
}
"""What the CLOB shows as a market's tokens, and what it is for a market closed at 1 and 0 with a silent oracle."""


@pytest.fixture
def gamma(httpserver: HTTPServer) -> Iterator[Gamma]:
    with Gamma(NOWHERE, clob=Clob(httpserver.url_for("/"), retries=0)) as gamma:
        yield gamma


def test_winner_that_the_clob_flags(httpserver: HTTPServer, gamma: Gamma) -> None:
    row = parse_market(row_of(1, closed=True, outcomePrices='["1", "0"]', umaResolutionStatus="proposed"), "row")
    assert isinstance(row, VenueMarket)
    results = {}
    for tokens in WINNERS:
        httpserver.clear()
        httpserver.expect_request("/markets/0xabc").respond_with_data(f'{{"tokens": {tokens}}}')
        try:
            results[tokens] = WAITS if isinstance(gamma.resolution(row), Unresolved) else WINS
        except UpstreamError:
            results[tokens] = FAILS
    assert results == WINNERS


# ── midpoints and books ───────────────────────────────────────────────────────────────────────────

MIDPOINTS = {
    '"0.41"': True,
    "0.41": True,
    '"0.4100000000000000000000000000000001"': True,
    **dict.fromkeys(["null", "7", "true", '"x"', "[]", "{}", '""', '{"mid": "0.41"}', '["0.41"]'], False),
    **dict.fromkeys(['"NaN"', "NaN", "Infinity", "-0.41", '"1.01"', "0", '"1"', "1e-400", '"٠.٤"'], False),
}
"""A midpoint as the CLOB may write it, and whether it is believed; where not, the last price stands, flagged."""
BID, ASK = '[{"price": "0.695", "size": "10"}]', '[{"price": "0.705", "size": "10"}]'
BOOKS = {
    f'"bids": {BID}, "asks": {ASK}': True,
    **{f'"bids": {BID}, "asks": {value}': False for value in WRONG[1:]},
    **{f'"bids": {value}, "asks": {ASK}': False for value in WRONG[1:]},
    **{f'"bids": [{{"price": {value}}}], "asks": {ASK}': False for value in WRONG[1:]},
    **{f'"bids": [{{"price": "0.695", "size": {size}}}], "asks": {ASK}': size == "7" for size in WRONG[1:]},
    f'"bids": {ASK}, "asks": {BID}': False,
    f'"bids": [{{"price": "0.5"}}], "asks": {ASK}': False,
}
"""The book behind a midpoint far from Gamma's price, and whether it bears the midpoint out."""
RULE = PriceRule(Decimal("0.10"), Decimal("0.10"), Decimal("0.25"))


@pytest.mark.parametrize(("text", "is_believed"), MIDPOINTS.items())
def test_midpoint_of_a_token(text: str, is_believed: bool) -> None:
    try:
        midpoint = parse_midpoint("1", {"mid": parse_json(text)})
    except ValueError:
        midpoint = None
    verdict = decide_polymarket_price(
        RULE, midpoint=midpoint, gamma=None, bid=Decimal("0.40"), ask=Decimal("0.42"), last=Decimal("0.40")
    )
    assert verdict.stale is not is_believed


@pytest.mark.parametrize(("text", "is_believed"), BOOKS.items())
def test_book_behind_a_doubtful_midpoint(text: str, is_believed: bool) -> None:
    try:
        book = parse_book("1", parse_json(f"{{{text}}}"))
        sides = {"bid": book.bid, "ask": book.ask}
    except ValueError:
        sides = {"bid": None, "ask": None}
    verdict = decide_polymarket_price(
        RULE, midpoint=Decimal("0.70"), gamma=Decimal("0.40"), last=Decimal("0.40"), **sides
    )
    assert (verdict.source == "midpoint") is is_believed
