"""The price rule: which of a venue's prices the arena accepts. Pure functions, no database."""

from dataclasses import dataclass
from decimal import Decimal

MIDPOINT, GAMMA, TRADE, RETAINED = "midpoint", "gamma", "trade", "retained"
CERTAIN = "refused: a certain price of an open market"
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
    """An accepted or retained price, its source and the reason. `price` is None if none was ever accepted."""

    price: Decimal | None
    source: str
    stale: bool
    reason: str

    @property
    def complement(self) -> "PriceDecision":
        """The decision on the other side of a binary market."""
        return self if self.price is None else PriceDecision(1 - self.price, self.source, self.stale, self.reason)


def needs_book(rule: PriceRule, *, midpoint: Decimal | None, gamma: Decimal | None) -> bool:
    """True if the midpoint can only be accepted with the order book's spread."""
    return midpoint is not None and (gamma is None or abs(midpoint - gamma) > rule.midpoint_tolerance)


def decide_price(
    rule: PriceRule,
    *,
    midpoint: Decimal | None,
    gamma: Decimal | None,
    spread: Decimal | None,
    last: Decimal | None,
    gamma_is_new: bool = True,
) -> PriceDecision:
    """The price of one side of an open market at Polymarket.

    `spread` is None if the book is one-sided or unknown. A price of exactly 0 or 1, as of an empty book, is refused
    once another price is known. A Gamma price that was read before the last price was accepted (`gamma_is_new` is
    False) can confirm a midpoint but is not accepted itself.
    """
    if midpoint is None:
        reason = "no midpoint"
    elif _is_certain(midpoint, last):
        reason = f"midpoint {midpoint:f} {CERTAIN}"
    elif gamma is not None and abs(midpoint - gamma) <= rule.midpoint_tolerance:
        return PriceDecision(midpoint, MIDPOINT, False, "midpoint agrees with Gamma")
    elif spread is not None and 0 <= spread <= rule.maximum_spread:
        return PriceDecision(midpoint, MIDPOINT, False, f"midpoint of a two-sided book, spread {spread:f}")
    else:
        reason = f"midpoint {midpoint:f} refused: far from Gamma, no tight two-sided book"
    if gamma is None:
        return _retain(last, f"{reason}; no Gamma price")
    if _is_certain(gamma, last):
        return _retain(last, f"{reason}; Gamma's {gamma:f} {CERTAIN}")
    if last is None:
        return PriceDecision(gamma, GAMMA, False, f"{reason}; Gamma's, the first price")
    if not gamma_is_new:
        return _retain(last, f"{reason}; Gamma's {gamma:f} {NOT_NEW}")
    if abs(gamma - last) <= rule.jump_tolerance:
        return PriceDecision(gamma, GAMMA, False, f"{reason}; Gamma's is near the last accepted price")
    return _retain(last, f"{reason}; Gamma's {gamma:f} refused: far from the last accepted price")


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
    tight = has_tight_book(rule, bid, ask)
    if not is_new and (tight or trade is not None):
        return _retain(last, f"book and last trade {NOT_NEW}")
    if tight and bid is not None and ask is not None:
        return PriceDecision((bid + ask) / 2, MIDPOINT, False, f"midpoint of a two-sided book, spread {ask - bid:f}")
    if trade is None:
        return _retain(last, "no trade, no tight two-sided book")
    if _is_certain(trade, last):
        return _retain(last, f"last trade {trade:f} {CERTAIN}")
    if last is None:
        return PriceDecision(trade, TRADE, False, "last trade, no tight two-sided book; the first price")
    if abs(trade - last) <= rule.jump_tolerance:
        return PriceDecision(trade, TRADE, False, "last trade, no tight two-sided book; near the last accepted price")
    why = f"last trade {trade:f} refused: no tight two-sided book, and far from the last accepted price"
    return _retain(last, why)


def has_tight_book(rule: PriceRule, bid: Decimal | None, ask: Decimal | None) -> bool:
    """True if both sides of the book are stated, uncrossed and within the rule's spread."""
    return bid is not None and ask is not None and 0 <= ask - bid <= rule.maximum_spread


def _retain(last: Decimal | None, why: str) -> PriceDecision:
    """The decision that keeps the last accepted price, which may be none."""
    return PriceDecision(last, RETAINED if last is not None else "", True, why)


def _is_certain(price: Decimal, last: Decimal | None) -> bool:
    """True for a price of 0 or 1 where the last accepted price lay between them."""
    return not (0 < price < 1) and last is not None and last not in (0, 1)
