"""Positions as a reader sees them: what they are worth now, and what became of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from django.db import connection

from agents.models import Agent, Position, Settlement
from agents.models.ledger import marked_value, mean_price
from markets.fields import instant, stored_unit
from markets.models import Market, Outcome


class _Market(NamedTuple):
    question: str
    status: str
    winning_outcome_id: int | None


class _Outcome(NamedTuple):
    side: str
    price: Decimal | None
    price_stale: bool


class Listed(NamedTuple):
    """A position as far as a list shows it: a page has a hundred, and models of each would be much of its time."""

    pk: int
    market_id: int
    outcome_id: int
    status: str
    shares: Decimal
    cost_basis: Decimal
    realized_pnl: Decimal
    opened_at: datetime
    closed_at: datetime | None
    market: _Market
    outcome: _Outcome

    @property
    def side(self) -> str:
        return self.outcome.side

    @property
    def entry_price(self) -> Decimal | None:
        return mean_price(self.cost_basis, self.shares)

    def value_at(self, price: Decimal | None) -> Decimal:
        return marked_value(self.shares, self.cost_basis, price)


def listed(agent: Agent) -> list[Listed]:
    """The agent's positions, with what is shown of their markets and outcomes.

    By hand: to read them is less work than to have the ORM convert each value by itself.
    """
    position, market, outcome = (model._meta.db_table for model in (Position, Market, Outcome))
    sql = (
        f"SELECT {position}.id, {position}.market_id, outcome_id, {position}.status, shares, cost_basis, "  # noqa: S608
        f"realized_pnl, opened_at, {position}.closed_at, question, {market}.status, winning_outcome_id, "
        "side, price, price_stale "
        f"FROM {position} JOIN {market} ON {market}.id = {position}.market_id "
        f"JOIN {outcome} ON {outcome}.id = outcome_id WHERE agent_id = %s"
    )
    share, cent = stored_unit(Position, "shares"), stored_unit(Position, "cost_basis")
    unit = stored_unit(Outcome, "price")
    with connection.cursor() as cursor:
        cursor.execute(sql, [agent.pk])
        rows = cursor.fetchall()
    found = []
    for row in rows:
        side, price, stale = row[12:]
        own = (*row[:4], row[4] * share, row[5] * cent, row[6] * cent, instant(row[7]), instant(row[8]))
        backed = _Outcome(side, None if price is None else price * unit, bool(stale))
        found.append(Listed._make((*own, _Market(*row[9:12]), backed)))
    return found


@dataclass(frozen=True, slots=True)
class Holding:
    """A position (outcome and market loaded) with its value and its fate in one word."""

    position: Position | Listed
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


def holding(position: Position | Listed) -> Holding:
    """The position at the last accepted price of its outcome."""
    if position.status != Position.Status.OPEN:
        return Holding(position, _end(position), None, None)
    value = position.value_at(position.outcome.price)
    fate = AWAITING if position.market.status == Market.Status.CLOSED else OPEN
    return Holding(position, fate, value, value - position.cost_basis)


def _end(position: Position | Listed) -> str:
    """What became of a position that is no longer held: by its market's end, which a reversal may have changed."""
    if position.status == Position.Status.CLOSED:
        return SOLD
    if position.status == Position.Status.CANCELLED:
        return _SETTLED[Settlement.Kind.REFUNDED]
    won = position.market.winning_outcome_id == position.outcome_id
    return _SETTLED[Settlement.Kind.WON if won else Settlement.Kind.LOST]


def holdings(positions: Iterable[Position | Listed]) -> tuple[list[Holding], list[Holding]]:
    """Open ones, by value, and past ones, the latest first."""
    all_of_them = [holding(position) for position in positions]
    held = sorted((h for h in all_of_them if h.value is not None), key=lambda h: (-(h.value or 0), h.position.pk))
    past = [h for h in all_of_them if h.value is None]
    past.sort(key=lambda h: (h.position.closed_at, h.position.pk), reverse=True)  # type: ignore[arg-type, return-value]
    return held, past


def fate_of_side(status: str, *, won: bool) -> str:
    """What a market of that status came to, seen from a side that won or did not."""
    if status == Market.Status.RESOLVED:
        return "won" if won else "lost"
    if status == Market.Status.CANCELLED:
        return "cancelled"
    return AWAITING if status == Market.Status.CLOSED else OPEN
