"""The ledger: the only code that changes cash, shares and cost basis.

Callers open the transaction and hold the agent's lock.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Any

from django.db import connection
from django.db.models import Max

from agents.models import Agent, Decision, JournalEntry, Position, Reversal, Settlement, Trade
from agents.models.ledger import to_cents, to_microshares
from agents.services.resolutions import Resolution
from cohorts.models import Methodology
from foundation.bulk import field_values, update_changed
from foundation.locks import lock_rows
from markets.models import Market, Outcome
from markets.services.cache_versions import Scope, renew_versions

RESOLUTION = timedelta(microseconds=1)
"""The least difference of two instants on record."""
SETTLED_FIELDS = ("shares", "cost_basis", "realized_pnl", "status", "closed_at")
"""The fields of a position that its settlement changes."""


def lock_agent(agent_id: int) -> Agent:
    """The agent, locked until the transaction ends."""
    return lock_agents([agent_id])[agent_id]


def lock_agents(agent_ids: Iterable[int]) -> dict[int, Agent]:
    """The agents by id, locked until the transaction ends."""
    ids = set(agent_ids)
    if connection.features.has_select_for_update:
        # In one order everywhere, so that two transactions can not wait for each other.
        list(Agent.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk").values_list("pk"))
    else:  # SQLite, which ignores select_for_update silently, has one lock for all, taken by a write
        lock_rows(Agent.objects.filter(pk__in=ids))
    # Prefetched, not joined: a methodology has large texts, and all these agents share one or two.
    return Agent.objects.select_related("cohort").prefetch_related("cohort__methodology").in_bulk(ids)


def following_instant(agents: Iterable[Agent], at: datetime, *, same: bool = False) -> datetime:
    """The instant at which the ledger of locked agents is written: `at`, or just after what is recorded of them.

    A model may think while snapshots are taken. With `same`, an instant that a record has already is late enough.
    """
    rows = Agent.objects.filter(pk__in=[agent.pk for agent in agents])
    # The newest of each table apart: joined, they would multiply.
    newest = [rows.aggregate(at=Max(name))["at"] for name in ("journal__occurred_at", "snapshots__taken_at")]
    recorded = max(filter(None, newest), default=None)
    if recorded is None or at > recorded or (same and at == recorded):
        return at
    return recorded + RESOLUTION


def deposit(agent: Agent, amount: Decimal, *, at: datetime) -> JournalEntry:
    """Credits an agent's starting balance."""
    return _post(agent, JournalEntry.Kind.DEPOSIT, amount, at=at)


def buy(
    agent: Agent,
    outcome: Outcome,
    *,
    amount: Decimal,
    price: Decimal,
    decision: Decision,
    at: datetime,
) -> Trade:
    """Buys shares of `outcome` for `amount` in whole cents; adds to the open position if there is one."""
    maximum = agent.cohort.methodology.maximum_bet(agent.cash)
    shares = to_microshares(amount / price)
    position = Position.objects.open().filter(agent=agent, outcome=outcome).first()
    if position is None:
        position = Position.objects.create(
            agent=agent,
            market_id=outcome.market_id,
            outcome=outcome,
            shares=shares,
            cost_basis=amount,
            opened_at=at,
        )
    else:
        position.shares += shares
        position.cost_basis += amount
        position.save(update_fields=["shares", "cost_basis"])
    Market.objects.filter(pk=outcome.market_id, traded=False).update(traded=True)
    trade = Trade(
        kind=Trade.Kind.BUY,
        shares=shares,
        price=price,
        amount=amount,
        cost_basis=amount,
        implied_confidence=min(float(amount / maximum), 1.0),
    )
    return _record_trade(trade, agent, position, decision, at)


@dataclass(frozen=True, slots=True)
class Sale:
    """The shares, the cost basis and the proceeds of a sale."""

    shares: Decimal
    cost_basis: Decimal
    proceeds: Decimal


def sale_of(position: Position, *, percentage: Decimal, price: Decimal) -> Sale:
    """The sale of a percentage in (0, 100] of a position; of all of it if nothing would remain after rounding."""
    fraction = percentage / 100
    shares = min(to_microshares(position.shares * fraction), position.shares)
    if shares == position.shares:
        cost_basis = position.cost_basis
    else:
        cost_basis = min(to_cents(position.cost_basis * fraction), position.cost_basis)
    return Sale(shares, cost_basis, to_cents(shares * price))


def sell(
    agent: Agent,
    position: Position,
    *,
    percentage: Decimal,
    price: Decimal,
    decision: Decision,
    at: datetime,
) -> Trade:
    """Sells a percentage in (0, 100] of an open position."""
    sale = sale_of(position, percentage=percentage, price=price)
    position.shares -= sale.shares
    position.cost_basis -= sale.cost_basis
    position.realized_pnl += sale.proceeds - sale.cost_basis
    if not position.shares:
        position.status, position.closed_at = Position.Status.CLOSED, at
    position.save()
    trade = Trade(
        kind=Trade.Kind.SELL,
        shares=sale.shares,
        price=price,
        amount=sale.proceeds,
        cost_basis=sale.cost_basis,
        realized_pnl=sale.proceeds - sale.cost_basis,
    )
    return _record_trade(trade, agent, position, decision, at)


def _record_trade(trade: Trade, agent: Agent, position: Position, decision: Decision, at: datetime) -> Trade:
    """Stores a trade as the next one of its decision, with its journal entry."""
    trade.agent, trade.position, trade.decision, trade.executed_at = agent, position, decision, at
    trade.market_id, trade.outcome_id = position.market_id, position.outcome_id
    trade.sequence = decision.trades.count() + 1
    trade.save(force_insert=True)
    bought = trade.kind == Trade.Kind.BUY
    kind = JournalEntry.Kind.BUY if bought else JournalEntry.Kind.SELL
    _post(agent, kind, -trade.amount if bought else trade.amount, trade=trade, at=at)
    return trade


def settle(
    agents: Mapping[int, Agent], positions: Sequence[Position], *, resolutions: Mapping[int, Resolution], at: datetime
) -> list[Settlement]:
    """Closes open positions with their payouts; `agents` are their owners and `resolutions` their markets', by id."""
    settlements = []
    before = {position.pk: field_values(position, SETTLED_FIELDS) for position in positions}
    for position in positions:
        kind = resolutions[position.market_id].settlement_kind(position.outcome_id)
        payout = settlement_payout(kind, position.shares, position.cost_basis)
        settlements.append(
            Settlement(
                position=position,
                agent=agents[position.agent_id],
                market_id=position.market_id,
                kind=kind,
                shares=position.shares,
                cost_basis=position.cost_basis,
                payout=payout,
                realized_pnl=payout - position.cost_basis,
                settled_at=at,
            )
        )
        position.realized_pnl += payout - position.cost_basis
        position.shares, position.cost_basis = Decimal(0), Decimal(0)
        refunded = kind == Settlement.Kind.REFUNDED
        position.status = Position.Status.CANCELLED if refunded else Position.Status.SETTLED
        position.closed_at = at
    Settlement.objects.bulk_create(settlements)
    update_changed(positions, before, SETTLED_FIELDS)
    entries = []
    for settlement in settlements:
        refunded = settlement.kind == Settlement.Kind.REFUNDED
        entry_kind = JournalEntry.Kind.REFUND if refunded else JournalEntry.Kind.PAYOUT
        entries.append(_entry(settlement.agent, entry_kind, settlement.payout, settlement=settlement, at=at))
    _post_all(entries)
    return settlements


def settlement_payout(kind: str, shares: Decimal, cost_basis: Decimal) -> Decimal:
    """The payout of a position: a dollar a share if won, nothing if lost, its cost basis if refunded."""
    return {
        Settlement.Kind.WON: to_cents(shares),
        Settlement.Kind.LOST: Decimal("0.00"),
        Settlement.Kind.REFUNDED: cost_basis,
    }[Settlement.Kind(kind)]


def reverse(agent: Agent, settlement: Settlement, *, kind: str, by: str, reason: str, at: datetime) -> Reversal:
    """Corrects a settlement by one journal entry over the difference to what was paid so far."""
    position, previous_payout = settlement.position, settlement.standing_payout
    payout = settlement_payout(kind, settlement.shares, settlement.cost_basis)
    position.realized_pnl += payout - previous_payout
    refunded = kind == Settlement.Kind.REFUNDED
    position.status = Position.Status.CANCELLED if refunded else Position.Status.SETTLED
    position.save(update_fields=["realized_pnl", "status"])
    return Reversal.objects.create(
        position=position,
        sequence=position.reversals.count() + 1,
        agent=agent,
        market_id=settlement.market_id,
        kind=kind,
        previous_payout=previous_payout,
        payout=payout,
        entry=_post(agent, JournalEntry.Kind.REVERSAL, payout - previous_payout, at=at),
        reason=reason,
        reversed_by=by,
        reversed_at=at,
    )


def declare_bankruptcy_if_due(agent: Agent, methodology: Methodology) -> bool:
    """Marks an agent bankrupt, for good, if it has too little cash for a bet and no open position."""
    if agent.cash >= methodology.bankruptcy_cash or Position.objects.open().filter(agent=agent).exists():
        return False
    agent.status = Agent.Status.BANKRUPT
    agent.save(update_fields=["status"])
    return True


def _post(agent: Agent, kind: JournalEntry.Kind, amount: Decimal, **of: Any) -> JournalEntry:
    """Stores one change of an agent's cash; `of` is what `_entry` takes besides."""
    (entry,) = _post_all([_entry(agent, kind, amount, **of)])
    return entry


def _entry(
    agent: Agent,
    kind: JournalEntry.Kind,
    amount: Decimal,
    *,
    at: datetime,
    trade: Trade | None = None,
    settlement: Settlement | None = None,
) -> JournalEntry:
    """The next entry of an agent's journal, with the balance after it; the agent's cash is changed, not stored yet."""
    agent.cash += amount
    agent.journal_length += 1
    return JournalEntry(
        agent=agent,
        sequence=agent.journal_length,
        kind=kind,
        amount=amount,
        balance=agent.cash,
        trade=trade,
        settlement=settlement,
        occurred_at=at,
    )


def _post_all(entries: Sequence[JournalEntry]) -> list[JournalEntry]:
    """Stores journal entries with the cash of their agents."""
    agents = list({entry.agent_id: entry.agent for entry in entries}.values())
    for agent in sorted(agents, key=attrgetter("pk")):
        agent.save(update_fields=["cash", "journal_length"])
    if any(agent.cohort.completed_at is not None for agent in agents):
        renew_versions(Scope.COMPETITION)  # the cash of agents of completed cohorts is part of the competition index
    return JournalEntry.objects.bulk_create(entries)
