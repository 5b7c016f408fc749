"""The price rule: which of a venue's prices the arena accepts. Pure functions, no database.

Gamma is Polymarket's catalogue, the CLOB its order books. `services/prices.py` handles closed markets.
"""

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

MIDPOINT, GAMMA, TRADE, RETAINED = "midpoint", "gamma", "trade", "retained"
PRICE_STEP = Decimal("0.0000000001")
"""The last place of a stored price."""
CERTAIN = "refused: 0 or 1 on an open market"
NOT_NEW = "refused: not read again since the last accepted price"


@dataclass(frozen=True, slots=True)
class PriceRule:
    """A methodology's tolerances, as absolute differences between prices."""

    midpoint_tolerance: Decimal
    maximum_spread: Decimal
    jump_tolerance: Decimal
    """The largest change from the last accepted price that a single price without a book may make."""


@dataclass(frozen=True, slots=True)
class PriceDecision:
    """An accepted or retained price, its source and the reason. `price` is None if none was ever accepted.

    The reason contains no numbers: the row of the observation holds them.
    """

    price: Decimal | None
    source: str
    stale: bool
    reason: str


def decide_polymarket_price(
    rule: PriceRule,
    *,
    midpoint: Decimal | None,
    gamma: Decimal | None,
    bid: Decimal | None,
    ask: Decimal | None,
    last: Decimal | None,
    gamma_is_new: bool = True,
    book_is_own: bool = True,
) -> PriceDecision:
    """The price of one side of an open market at Polymarket.

    `bid` and `ask` are None if the book has no such side or is unknown. A midpoint outside them is not that of its
    book; only those of the book itself (`book_is_own`), not of the catalogue, confirm one. A price of exactly
    0 or 1, as of an empty book, is refused once another price is known. A Gamma price that was read before the last
    price was accepted (`gamma_is_new` is False) can confirm a midpoint but is not accepted itself.
    """
    if midpoint is None:
        reason = "no midpoint"
    elif _is_certain(midpoint, last):
        reason = f"midpoint {CERTAIN}"
    elif not is_inside(midpoint, bid, ask):
        reason = "midpoint refused: outside its book"
    elif gamma is not None and abs(midpoint - gamma) <= rule.midpoint_tolerance:
        return PriceDecision(midpoint, MIDPOINT, False, "midpoint agrees with Gamma")
    elif book_is_own and has_tight_book(rule, bid, ask):
        return PriceDecision(midpoint, MIDPOINT, False, "midpoint of a tight two-sided book")
    else:
        reason = "midpoint refused: far from Gamma, no tight two-sided book"
    if gamma is None:
        return _retain(last, f"{reason}; no Gamma price")
    return _accept_near(rule, gamma, GAMMA, f"{reason}; Gamma's price", last=last, is_new=gamma_is_new)


def decide_quoted_price(
    rule: PriceRule,
    *,
    trade: Decimal | None,
    bid: Decimal | None,
    ask: Decimal | None,
    last: Decimal | None,
    is_new: bool = True,
) -> PriceDecision:
    """The price of one side of an open market at a venue whose catalogue states best bid, ask and last trade.

    The midpoint of a tight book, else the last trade, which is refused if it is far from the last price.
    """
    midpoint = book_midpoint(rule, bid, ask)
    if midpoint is not None and not is_new:
        return _retain(last, f"two-sided book {NOT_NEW}")
    if midpoint is not None:
        return PriceDecision(midpoint, MIDPOINT, False, "midpoint of a tight two-sided book")
    if trade is None:
        return _retain(last, "no trade, no tight two-sided book")
    return _accept_near(rule, trade, TRADE, "no tight two-sided book; last trade", last=last, is_new=is_new)


def _accept_near(
    rule: PriceRule, price: Decimal, source: str, description: str, *, last: Decimal | None, is_new: bool
) -> PriceDecision:
    """A price that no book confirms: accepted as the first one, or near the last accepted one."""
    if _is_certain(price, last):
        return _retain(last, f"{description} {CERTAIN}")
    if last is None:
        return PriceDecision(price, source, False, f"{description}, the first price")
    if not is_new:
        return _retain(last, f"{description} {NOT_NEW}")
    if abs(price - last) <= rule.jump_tolerance:
        return PriceDecision(price, source, False, f"{description}, near the last accepted price")
    return _retain(last, f"{description} refused: far from the last accepted price")


def book_midpoint(rule: PriceRule, bid: Decimal | None, ask: Decimal | None) -> Decimal | None:
    """The midpoint of a tight book, None for any other."""
    if bid is None or ask is None or not has_tight_book(rule, bid, ask):
        return None
    return ((bid + ask) / 2).quantize(PRICE_STEP, rounding=ROUND_HALF_EVEN)


def is_inside(midpoint: Decimal, bid: Decimal | None, ask: Decimal | None) -> bool:
    """True if a midpoint lies within its book; a side that is empty or unknown bounds nothing."""
    return (bid is None or bid <= midpoint) and (ask is None or midpoint <= ask)


def has_tight_book(rule: PriceRule, bid: Decimal | None, ask: Decimal | None) -> bool:
    """True if both sides of the book are stated, uncrossed and within the rule's spread."""
    return bid is not None and ask is not None and 0 <= ask - bid <= rule.maximum_spread


def _retain(last: Decimal | None, why: str) -> PriceDecision:
    """The decision that keeps the last accepted price, which may be none."""
    return PriceDecision(last, RETAINED if last is not None else "", True, why)


def _is_certain(price: Decimal, last: Decimal | None) -> bool:
    """True for a price of 0 or 1 where the last accepted price lay between them."""
    return not (0 < price < 1) and last is not None and last not in (0, 1)
