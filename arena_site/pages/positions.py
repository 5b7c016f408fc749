"""Positions as the pages show them: their value now, or their result."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from operator import attrgetter
from typing import NamedTuple

from agents.models import Agent, Position
from agents.models.ledger import marked_value, mean_price
from markets.models import Market

OPEN, AWAITING, WON, LOST, CANCELLED, SOLD = "open", "awaiting resolution", "won", "lost", "cancelled", "sold"
STATES = (OPEN, AWAITING, WON, LOST, CANCELLED, SOLD)
"""States of a position in the order in which it passes through them."""
COLUMNS = (
    *("pk", "market_id", "outcome_id", "status", "shares", "cost_basis", "realized_pnl", "opened_at", "closed_at"),
    *("agent_id", "market__question", "market__status", "market__winning_outcome_id"),
    *("outcome__side", "outcome__price", "outcome__price_stale"),
)


class PositionRow(NamedTuple):
    """Columns of a position, its market and its outcome, in the order of COLUMNS."""

    pk: int
    market_id: int
    outcome_id: int
    status: str
    shares: Decimal
    cost_basis: Decimal
    realized_pnl: Decimal
    opened_at: datetime
    closed_at: datetime | None
    agent_id: int
    question: str
    market_status: str
    winning_outcome_id: int | None
    side: str
    price: Decimal | None
    price_stale: bool

    @property
    def state(self) -> str:
        """One of STATES; by the market's outcome, which the reversal of a settlement may have changed."""
        if self.status == Position.Status.OPEN:
            return AWAITING if self.market_status == Market.Status.CLOSED else OPEN
        if self.status == Position.Status.CLOSED:
            return SOLD
        if self.status == Position.Status.CANCELLED:
            return CANCELLED
        return WON if self.winning_outcome_id == self.outcome_id else LOST

    @property
    def entry_price(self) -> Decimal | None:
        return mean_price(self.cost_basis, self.shares)

    @property
    def value(self) -> Decimal | None:
        """The value at the last accepted price; None for a closed position."""
        if self.status != Position.Status.OPEN:
            return None
        return marked_value(self.shares, self.cost_basis, self.price)

    @property
    def unrealized_pnl(self) -> Decimal | None:
        return None if self.value is None else self.value - self.cost_basis

    @property
    def pnl(self) -> Decimal:
        """Realized and unrealized profit or loss together."""
        return self.realized_pnl + (self.unrealized_pnl or Decimal(0))


def positions_of(owner: Agent | Market) -> tuple[list[PositionRow], list[PositionRow]]:
    """The open positions of an agent or on a market by value, and the closed ones, the latest first."""
    current: list[PositionRow] = []
    past: list[PositionRow] = []
    for values in owner.positions.order_by().values_list(*COLUMNS):
        row = PositionRow._make(values)
        (past if row.value is None else current).append(row)
    current.sort(key=lambda row: (-(row.value or 0), row.pk))
    past.sort(key=lambda row: (row.closed_at, row.pk), reverse=True)
    return current, past


def count_states(positions: Iterable[PositionRow]) -> list[tuple[str, int]]:
    """The number of positions in each state that occurs, in the order of STATES."""
    counts = Counter(map(attrgetter("state"), positions))
    return [(state, counts[state]) for state in STATES if counts[state]]


def side_result(market_status: str, *, won: bool) -> str:
    """The state of a trade on one side of a market: open, awaiting resolution, won, lost or cancelled."""
    if market_status == Market.Status.RESOLVED:
        return WON if won else LOST
    if market_status == Market.Status.CANCELLED:
        return CANCELLED
    return AWAITING if market_status == Market.Status.CLOSED else OPEN
