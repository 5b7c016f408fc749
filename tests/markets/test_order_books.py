"""Order books captured at the freeze: their levels and fees, and what becomes of those that can not be had."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from markets.models import Market, OrderBook
from markets.services.order_books import stored_levels
from markets.sources.polymarket.clob import parse_levels
from markets.sources.polymarket.parsing import parse_market
from tests.commands import DECISION, SUNDAY, run
from tests.sandbox import Venue
from venue_sandbox.script import Script

pytestmark = pytest.mark.django_db
RAIN, SNOW = "Will it rain?", "Will it snow?"
SPORTS_FEE = {"exponent": 1, "rate": 0.05, "takerOnly": True}


def opened(venue: Venue) -> None:
    venue.market(RAIN, feesEnabled=True, feeSchedule=SPORTS_FEE)
    venue.market(SNOW)
    venue.start_first_cohort()


def stored(question: str, side: str = "YES") -> dict[str, Any]:
    books = OrderBook.objects.filter(outcome__market__question=question, outcome__side=side)
    return books.values("bids", "asks", "fee_rate", "fee_exponent").get()


def test_freeze_captures_the_book_of_each_side_with_the_fee(venue: Venue) -> None:
    opened(venue)
    report = run("run_decisions", DECISION)
    assert (report["books"], report["books_missing"]) == (4, 0)
    assert stored(RAIN) == {
        "bids": [["0.395", "10"]], "asks": [["0.405", "10"]], "fee_rate": Decimal("0.05"), "fee_exponent": 1,
    }  # fmt: skip
    assert stored(SNOW, "NO") == {
        "bids": [["0.595", "10"]], "asks": [["0.605", "10"]], "fee_rate": None, "fee_exponent": None,
    }  # fmt: skip
    again = run("run_decisions", DECISION + timedelta(hours=1))
    assert (again["books"], OrderBook.objects.count()) == (0, 4)


def test_run_decides_without_the_books_that_fail_and_counts_them(venue: Venue) -> None:
    opened(venue)
    venue.down.add("/clob/books")
    report = run("run_decisions", DECISION)
    assert (report.code, report["completed"]) == (0, 7)
    assert (report["books"], report["books_missing"]) == (0, 4)


def test_book_far_from_the_frozen_price_is_not_stored(venue: Venue) -> None:
    opened(venue)
    yes, no = venue.tokens(RAIN)
    venue.books[yes] = (None, "0.02")  # offers at a twentieth of the price
    venue.books[no] = ("0.01", "0.99")  # dear, but a price that one would have to pay
    assert run("run_decisions", DECISION)["books_missing"] == 2, "the midpoint is refused, so both sides are stale"
    assert set(OrderBook.objects.values_list("outcome__token_id", flat=True)) == {*venue.tokens(SNOW)}


def test_replay_captures_nothing(venue: Venue) -> None:
    opened(venue)
    run("sync_markets", SUNDAY + timedelta(days=1))
    report = run("run_decisions", DECISION)
    assert (report["completed"], report["books"], OrderBook.objects.count()) == (7, 0, 0)


def test_levels_are_stored_down_to_the_depth() -> None:
    levels = [(Decimal("0.40"), Decimal("100.1234567")), (Decimal("0.41"), Decimal(100)), (Decimal("0.42"), Decimal(1))]
    assert stored_levels(levels, Decimal(41)) == [["0.4", "100.123456"], ["0.41", "100"]]
    assert stored_levels(levels, Decimal(40)) == [["0.4", "100.123456"]]


def test_levels_come_best_first_whatever_the_order_and_empty_ones_are_left_out() -> None:
    bids = [{"price": "0.3", "size": "5"}, {"price": "0.38", "size": "2"}, {"price": "0.39", "size": "0"}]
    book = parse_levels("1", {"bids": bids, "asks": [{"price": "0.5", "size": "1"}, {"price": "0.4", "size": "7"}]})
    assert book.bids == [(Decimal("0.38"), 2), (Decimal("0.3"), 5)]
    assert book.asks == [(Decimal("0.4"), 7), (Decimal("0.5"), 1)]


NO_FEE, UNKNOWN = (None, None, False), (None, None, True)


@pytest.mark.parametrize(
    ("fields", "fee"),
    [
        ({"feesEnabled": True, "feeSchedule": {"exponent": 2, "rate": 0.25}}, (Decimal("0.25"), 2, False)),
        ({"feeSchedule": SPORTS_FEE}, (Decimal("0.05"), 1, False)),
        ({"feesEnabled": False, "feeSchedule": SPORTS_FEE}, NO_FEE),
        ({}, NO_FEE),
        ({"feesEnabled": True, "feeSchedule": {"rate": "much", "exponent": 1}}, UNKNOWN),
        ({"feesEnabled": True, "feeSchedule": {"rate": -1, "exponent": 1}}, UNKNOWN),
        ({"feesEnabled": True, "feeSchedule": {"rate": 0.04}}, UNKNOWN),
        ({"feesEnabled": True, "feeSchedule": "much"}, UNKNOWN),
        ({"feesEnabled": True, "feeSchedule": None}, UNKNOWN),
        ({"feesEnabled": True}, UNKNOWN),
        ({"feeSchedule": [1]}, UNKNOWN),
    ],
)
def test_fee_schedule_of_a_market_is_read_where_fees_are_enabled(fields: Any, fee: Any) -> None:
    row: Any = parse_market(Script().market(RAIN) | fields, "row")
    assert (row.fee_rate, row.fee_exponent, row.fee_unknown) == fee


def test_sync_stores_the_fee_and_its_end(venue: Venue) -> None:
    venue.market(RAIN, feesEnabled=True, feeSchedule=SPORTS_FEE)
    run("sync_markets", SUNDAY)
    assert Market.objects.get().fee_rate == Decimal("0.05")
    venue.row(RAIN)["feesEnabled"] = False
    run("sync_markets", SUNDAY + timedelta(minutes=5))
    assert Market.objects.get().fee_rate is None
