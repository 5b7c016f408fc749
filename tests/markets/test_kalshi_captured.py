"""Every captured answer of Kalshi: each row is parsed, or skipped for a stated reason."""

import json
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from markets.pricing import PriceRule, decide_quoted_price
from markets.sources.base import SkippedMarket, VenueMarket
from markets.sources.kalshi import parse_event, parse_market
from tests.captured import CAPTURED

CAPTURES = CAPTURED / "kalshi"
NO_BOOK = "orderbook__bobaoxu.json"
"""One market's order book, which nothing here asks for."""

pytestmark = pytest.mark.captured


def captured() -> Iterator[tuple[str, dict[str, Any], VenueMarket | SkippedMarket]]:
    """Each captured market as sent, with what was made of it."""
    for path in sorted(CAPTURES.glob("*.json")):
        if path.name == NO_BOOK:
            continue
        answer = json.loads(path.read_text(), parse_float=Decimal)
        if isinstance(answer, dict) and "events" in answer:
            for event in answer["events"]:
                for raw, row in zip(event["markets"], parse_event(event), strict=True):
                    yield path.name, raw, row
        else:
            rows = answer["markets"] if isinstance(answer, dict) else answer
            for place, raw in enumerate(rows, start=1):
                yield path.name, raw, parse_market(raw, f"{path.name}, row {place}")


def usable() -> list[tuple[dict[str, Any], VenueMarket]]:
    return [(raw, row) for _, raw, row in captured() if isinstance(row, VenueMarket)]


def test_every_row_is_read_or_left_out_for_one_of_four_reasons() -> None:
    reasons = Counter(row.reason if isinstance(row, SkippedMarket) else "" for _, _, row in captured())
    assert reasons == {
        "": 1824,
        "question: a template with an unfilled blank": 6,
        "no price: no trade yet, and no book of two sides": 413,
        "the website's own (v1) format, another API": 335,
        "multivariate: a parlay on other markets": 102,
    }


def test_each_price_says_what_it_is() -> None:
    rule = PriceRule(*(Decimal("0.10"),) * 3)
    sides = [row.outcomes[0] for _, row in usable() if not row.closed]
    decided = [decide_quoted_price(rule, trade=side.price, bid=side.bid, ask=side.ask, last=None) for side in sides]
    assert Counter(decision.source for decision in decided) == {"midpoint": 1307, "trade": 452, "": 50}


def test_dollars_and_cents_that_stand_side_by_side_say_the_same() -> None:
    pairs = [
        (raw, row) for raw, row in usable() if "yes_bid_dollars" in raw and "yes_bid" in raw and raw["yes_bid"] > 0
    ]
    assert pairs
    for raw, row in pairs:
        alone = {key: value for key, value in raw.items() if not key.endswith("_dollars")}
        in_cents = parse_market(alone, "alone")
        assert isinstance(in_cents, VenueMarket)
        assert in_cents.outcomes == row.outcomes


def test_statuses_and_results_are_those_that_were_sent() -> None:
    for raw, row in usable():
        assert row.oracle_status == raw["status"]
        assert row.is_open is (raw["status"] == "active")
    final_prices = Counter(
        (row.result, row.outcomes[0].price) for _, row in usable() if row.oracle_status == "finalized"
    )
    assert final_prices == {("no", Decimal(0)): 11, ("yes", Decimal(1)): 1}


def test_sides_add_up_and_quotes_keep_their_distance_from_0_and_1() -> None:
    for _, row in usable():
        yes, no = row.outcomes
        if yes.price is not None and no.price is not None:
            assert yes.price + no.price == 1
        quotes = [quote for side in (yes, no) for quote in (side.bid, side.ask) if quote is not None]
        assert all(0 < quote < 1 for quote in quotes)


def test_nested_events_lend_their_markets_title_and_exclusivity() -> None:
    rows = [row for name, _, row in captured() if name == "events_bobaoxu__GET_events.json"]
    assert {(row.event_title, row.event_exclusive, row.category) for row in rows if isinstance(row, VenueMarket)} == {
        ("Who will be the next Secretary General of NATO?", True, "Elections")
    }
    assert {row.option for row in rows if isinstance(row, VenueMarket)} >= {"Klaus Iohannis"}
