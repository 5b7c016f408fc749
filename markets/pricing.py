"""The price rule: which of the prices on offer the arena believes. Pure functions, no database."""

from dataclasses import dataclass
from decimal import Decimal

MIDPOINT, GAMMA, TRADE, LAST = "midpoint", "gamma", "trade", "last"


@dataclass(frozen=True, slots=True)
class PriceRule:
    """The tolerances of a methodology (SPEC of marking): absolute differences between prices."""

    midpoint_tolerance: Decimal
    maximum_spread: Decimal
    gamma_tolerance: Decimal


@dataclass(frozen=True, slots=True)
class Verdict:
    """The price the rule arrived at, where it came from, and why. `price` is None where there never was one."""

    price: Decimal | None
    source: str
    stale: bool
    reason: str

    @property
    def complement(self) -> "Verdict":
        """The verdict on the other side of a binary market."""
        return self if self.price is None else Verdict(1 - self.price, self.source, self.stale, self.reason)


def needs_book(rule: PriceRule, *, midpoint: Decimal | None, gamma: Decimal | None) -> bool:
    """Is the order book needed to judge this midpoint?"""
    return midpoint is not None and (gamma is None or abs(midpoint - gamma) > rule.midpoint_tolerance)


def judge(
    rule: PriceRule,
    *,
    midpoint: Decimal | None,
    gamma: Decimal | None,
    spread: Decimal | None,
    last: Decimal | None,
    gamma_is_news: bool = True,
) -> Verdict:
    """Applies the rule to one side of an open market.

    `spread` is that of an order book with both sides, None where the book is one-sided or unknown. Exactly 0
    or 1 is no price of an open market once a better one is known: an empty book looks like that. A Gamma price
    seen before the last one was accepted (`gamma_is_news` is False) may confirm a midpoint but replaces nothing.
    """
    refused = []
    if _usable(midpoint, last):
        assert midpoint is not None
        if gamma is not None and abs(midpoint - gamma) <= rule.midpoint_tolerance:
            return Verdict(midpoint, MIDPOINT, False, "midpoint agrees with Gamma")
        if spread is not None and 0 <= spread <= rule.maximum_spread:
            return Verdict(midpoint, MIDPOINT, False, f"midpoint of a two-sided book, spread {spread:f}")
        refused.append(f"midpoint {midpoint:f} refused: far from Gamma, no tight two-sided book")
    else:
        refused.append(
            "no midpoint" if midpoint is None else f"midpoint {midpoint:f} refused: no price of an open market"
        )
    if _usable(gamma, last):
        assert gamma is not None
        if last is None:
            return Verdict(gamma, GAMMA, False, "; ".join([*refused, "Gamma's, the first price"]))
        if not gamma_is_news:
            refused.append(f"Gamma's {gamma:f} refused: not seen again since the last accepted price")
        elif abs(gamma - last) <= rule.gamma_tolerance:
            return Verdict(gamma, GAMMA, False, "; ".join([*refused, "Gamma's is near the last accepted price"]))
        else:
            refused.append(f"Gamma's {gamma:f} refused: far from the last accepted price")
    else:
        refused.append("no Gamma price" if gamma is None else f"Gamma's {gamma:f} refused: no price of an open market")
    return Verdict(last, LAST if last is not None else "", True, "; ".join(refused))


def judge_quote(
    rule: PriceRule,
    *,
    quote: Decimal | None,
    bid: Decimal | None,
    ask: Decimal | None,
    last: Decimal | None,
    is_news: bool = True,
) -> Verdict:
    """Applies the rule to one side of an open market at a venue that states its own book beside the quote.

    Its quote is the midpoint of that book where the book is tight, else the last trade, which a jump puts in doubt.
    """
    if quote is None or not _usable(quote, last):
        why = "no quote" if quote is None else f"quote {quote:f} refused: no price of an open market"
        return Verdict(last, LAST if last is not None else "", True, why)
    if not is_news:
        why = f"quote {quote:f} refused: not seen again since the last accepted price"
        return Verdict(last, LAST if last is not None else "", True, why)
    spread = None if bid is None or ask is None else ask - bid
    if spread is not None and bid is not None and 2 * (quote - bid) == spread and 0 <= spread <= rule.maximum_spread:
        return Verdict(quote, MIDPOINT, False, f"midpoint of a two-sided book, spread {spread:f}")
    if last is None:
        return Verdict(quote, TRADE, False, "last trade, no tight two-sided book; the first price")
    if abs(quote - last) <= rule.gamma_tolerance:
        return Verdict(quote, TRADE, False, "last trade, no tight two-sided book; near the last accepted price")
    why = f"last trade {quote:f} refused: no tight two-sided book, and far from the last accepted price"
    return Verdict(last, LAST, True, why)


def _usable(price: Decimal | None, last: Decimal | None) -> bool:
    return price is not None and (last is None or last in (0, 1) or 0 < price < 1)
