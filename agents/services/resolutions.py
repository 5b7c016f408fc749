"""Reads the resolution of a closed market from its venue's row, by the documented rule of each venue."""

from dataclasses import dataclass
from decimal import Decimal

from agents.models import Settlement
from markets.models import Market, Outcome
from markets.services.sync import match_outcomes
from markets.sources import kalshi
from markets.sources.base import VenueMarket
from markets.sources.polymarket import Clob

SUM_TOLERANCE = Decimal("0.001")


@dataclass(frozen=True, slots=True)
class Resolution:
    """The final result of a market: its winning outcome, or None if it was cancelled."""

    winner: Outcome | None

    @property
    def market_status(self) -> Market.Status:
        return Market.Status.RESOLVED if self.winner else Market.Status.CANCELLED

    def settlement_kind(self, outcome_id: int) -> Settlement.Kind:
        """The kind of settlement of a position in an outcome."""
        if self.winner is None:
            return Settlement.Kind.REFUNDED
        return Settlement.Kind.WON if outcome_id == self.winner.pk else Settlement.Kind.LOST

    def __str__(self) -> str:
        return f"{self.winner.side} won" if self.winner else "cancelled"


CANCELLATION = Resolution(winner=None)


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A market without a documented resolution, and why."""

    reason: str


def read_resolution(market: Market, row: VenueMarket, clob: Clob) -> Resolution | Unresolved:
    """The resolution that a closed market's row documents."""
    if market.source == Market.Source.KALSHI:
        return _kalshi_resolution(market, row)
    return _polymarket_resolution(market, row, clob)


def _kalshi_resolution(market: Market, row: VenueMarket) -> Resolution | Unresolved:
    """Only the terminal status counts: a result that is merely determined may still be disputed and amended.

    Resolved: the result is yes or no, and a stated settlement value agrees. Cancelled: any settlement in between.
    """
    if row.oracle_status != kalshi.FINAL:
        return Unresolved(f"Kalshi says {row.oracle_status or 'nothing'}, not {kalshi.FINAL}")
    if row.result in kalshi.NOBODY_WON:
        return CANCELLATION
    matched = match_outcomes(list(market.outcomes.all()), row.outcomes)
    winner = next((pair for pair in matched if pair[1].name.casefold() == row.result), None)
    if winner is None:
        return Unresolved(f"{kalshi.FINAL} with the result {row.result!r}")
    outcome, quote = winner
    if quote.price != 1:
        return Unresolved(f"{kalshi.FINAL} as {row.result}, which pays {quote.price}")
    return Resolution(outcome)


def _polymarket_resolution(market: Market, row: VenueMarket, clob: Clob) -> Resolution | Unresolved:
    """A final price alone decides nothing.

    Resolved: prices exactly a permutation of 1 and 0s, and either the oracle's status `resolved` or exactly one
    winner flag at the CLOB that agrees. Cancelled: oracle `resolved`, all prices equal, positive, summing to 1.
    """
    oracle_resolved = row.oracle_status == "resolved"
    prices = [outcome.price for outcome in row.outcomes if outcome.price is not None]
    if len(prices) < len(row.outcomes):
        return Unresolved("a final price is missing")
    if prices.count(Decimal(1)) == 1 and prices.count(Decimal(0)) == len(prices) - 1:
        matched = match_outcomes(list(market.outcomes.all()), row.outcomes)
        winner = next(outcome for outcome, quote in matched if quote.price == 1)
        if oracle_resolved or _clob_agrees(winner, row, clob):
            return Resolution(winner)
        return Unresolved(f"prices are final but the oracle says {row.oracle_status or 'nothing'}")
    equal = len(set(prices)) == 1 and prices[0] > 0 and abs(sum(prices, Decimal(0)) - 1) <= SUM_TOLERANCE
    if oracle_resolved and equal:
        return CANCELLATION
    shown = ", ".join(f"{price:f}" for price in prices)
    return Unresolved(f"closed at {shown}, oracle says {row.oracle_status or 'nothing'}")


def _clob_agrees(winner: Outcome, row: VenueMarket, clob: Clob) -> bool:
    if not row.condition_id or not winner.token_id:
        return False
    flagged = clob.winner(row.condition_id)
    return flagged is not None and flagged.token_id == winner.token_id
