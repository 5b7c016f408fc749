"""Capturing the order books of a universe at its freeze, from which the costs of its trades follow later on.

Nobody knows at the freeze what will be bet on, and a book that is read after the answers is no longer the one at whose
midpoint the agents traded. So the books of all open markets of the universe are read, in a few requests.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import ROUND_DOWN, Decimal
from typing import NamedTuple

from foundation.json_lines import json_number
from markets.models import OrderBook, Outcome, Universe
from markets.pricing import PriceRule
from markets.services.prices import as_price
from markets.sources.polymarket import Clob
from markets.sources.polymarket.clob import BookLevels, Level

SHARE_STEP = Decimal("0.000001")
CAPTURE_S = 60
"""How long the books of a freeze may take in all; the run goes on without those that have not come by then."""


class Capture(NamedTuple):
    """How many books were stored, and how many could not be had."""

    books: int
    missing: int


def capture_order_books(
    universe: Universe, *, depth: Decimal, rule: PriceRule, captured_at: datetime, clob: Clob
) -> Capture:
    """Stores the books of every side of the universe's open markets.

    `depth` is the number of dollars down to which each side of a book is stored. A book that would sell below, or buy
    above, the frozen price by more than the price rule tolerates is not that of the frozen price, and counts as
    missing, like that of a stale price, which is not asked for. Raises nothing for requests that fail.
    """
    entries = universe.entries.filter(open=True).select_related("market").prefetch_related("market__outcomes")
    outcomes: list[tuple[Outcome, Decimal]] = []
    stale = 0
    for entry in entries:
        for outcome in entry.market.outcomes.all():
            price = entry.price(outcome.side)
            if outcome.token_id and price is not None:
                if entry.is_stale(outcome.side):
                    stale += 1
                else:
                    outcomes.append((outcome, price))
    if not outcomes:
        return Capture(0, stale)
    answer = clob.limit_total(CAPTURE_S).order_books([outcome.token_id for outcome, _ in outcomes])
    books = []
    for outcome, price in outcomes:
        levels = answer.values.get(outcome.token_id)
        if levels is None or _contradicts(levels, price, rule.midpoint_tolerance):
            continue
        market = outcome.market
        book = OrderBook(
            universe=universe,
            outcome=outcome,
            captured_at=captured_at,
            bids=stored_levels(levels.bids, depth),
            asks=stored_levels(levels.asks, depth),
            fee_rate=market.fee_rate,
            fee_exponent=market.fee_exponent,
            fee_unknown=market.fee_unknown,
        )
        books.append(book)
    OrderBook.objects.bulk_create(books, batch_size=500)
    return Capture(len(books), stale + len(outcomes) - len(books))


def stored_levels(levels: Iterable[Level], depth: Decimal) -> list[list[str]]:
    """The levels, best first, until they come to `depth` dollars."""
    stored: list[list[str]] = []
    total = Decimal(0)
    for price, shares in levels:
        if total >= depth:
            break
        stored.append([json_number(as_price(price)), json_number(shares.quantize(SHARE_STEP, rounding=ROUND_DOWN))])
        total += price * shares
    return stored


def _contradicts(levels: BookLevels, price: Decimal, tolerance: Decimal) -> bool:
    return _best(levels.asks, 1) < price - tolerance or _best(levels.bids, 0) > price + tolerance


def _best(levels: Sequence[Level], default: int) -> Decimal:
    return levels[0][0] if levels else Decimal(default)
