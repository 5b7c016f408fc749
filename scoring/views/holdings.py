"""Positions as a reader sees them: what they are worth now, and what became of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from agents.models import Position, Settlement, Trade
from markets.models import Market


@dataclass(frozen=True, slots=True)
class Holding:
    """A position (outcome and market loaded) with its value and its fate in one word."""

    position: Position
    fate: str
    value: Decimal | None
    unrealized: Decimal | None

    @property
    def pnl(self) -> Decimal:
        """All that the position brought so far, sold, settled or still held."""
        return self.position.realized_pnl + (self.unrealized or Decimal(0))


OPEN, AWAITING, SOLD = "open", "awaiting resolution", "sold"
_SETTLED = {
    Settlement.Kind.WON: "won",
    Settlement.Kind.LOST: "lost",
    Settlement.Kind.REFUNDED: "cancelled",
}
STATES = (OPEN, AWAITING, *_SETTLED.values(), SOLD)
"""What can be said of a position, in the order of its life."""


def holding(position: Position) -> Holding:
    """The position at the last accepted price of its outcome."""
    if position.status != Position.Status.OPEN:
        return Holding(position, _end(position), None, None)
    value = position.value_at(position.outcome.price)
    fate = AWAITING if position.market.status == Market.Status.CLOSED else OPEN
    return Holding(position, fate, value, value - position.cost_basis)


def _end(position: Position) -> str:
    """What became of a position that is no longer held: by its market's end, which a reversal may have changed."""
    if position.status == Position.Status.CLOSED:
        return SOLD
    if position.status == Position.Status.CANCELLED:
        return _SETTLED[Settlement.Kind.REFUNDED]
    won = position.market.winning_outcome_id == position.outcome_id
    return _SETTLED[Settlement.Kind.WON if won else Settlement.Kind.LOST]


def holdings(positions: Iterable[Position]) -> tuple[list[Holding], list[Holding]]:
    """Open ones, by value, and past ones, the latest first."""
    all_of_them = [holding(position) for position in positions]
    held = sorted((h for h in all_of_them if h.value is not None), key=lambda h: (-(h.value or 0), h.position.pk))
    past = [h for h in all_of_them if h.value is None]
    past.sort(key=lambda h: (h.position.closed_at, h.position.pk), reverse=True)  # type: ignore[arg-type, return-value]
    return held, past


def fate_of_trade(trade: Trade) -> str:
    """What the market of a trade came to, seen from the side that was traded."""
    market = trade.market
    if market.status == Market.Status.RESOLVED:
        return "won" if market.winning_outcome_id == trade.outcome_id else "lost"
    if market.status == Market.Status.CANCELLED:
        return "cancelled"
    return AWAITING if market.status == Market.Status.CLOSED else OPEN
