"""The ledger: the only code that changes cash, shares and cost basis.

Callers open the transaction and hold the agent's lock.
"""

from datetime import datetime
from decimal import Decimal

from django.db.models import F

from agents.models import Agent, Decision, JournalEntry, Position, Reversal, Settlement, Trade
from agents.models.ledger import to_cents, to_microshares
from cohorts.models import Methodology
from markets.models import Market, Outcome
from markets.services.cache_versions import Scope, renew_versions


def lock_agent(agent_id: int) -> Agent:
    """The agent, locked until the transaction ends."""
    # An UPDATE locks the row on PostgreSQL and the database on SQLite, which ignores select_for_update silently.
    Agent.objects.filter(pk=agent_id).update(journal_length=F("journal_length"))
    return Agent.objects.select_related("cohort__methodology").get(pk=agent_id)


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


def sell(
    agent: Agent,
    position: Position,
    *,
    percentage: Decimal,
    price: Decimal,
    decision: Decision,
    at: datetime,
) -> Trade:
    """Sells a percentage in (0, 100] of an open position; all of it if nothing would remain after rounding."""
    fraction = percentage / 100
    shares = min(to_microshares(position.shares * fraction), position.shares)
    if shares == position.shares:
        cost_basis = position.cost_basis
    else:
        cost_basis = min(to_cents(position.cost_basis * fraction), position.cost_basis)
    proceeds = to_cents(shares * price)
    position.shares -= shares
    position.cost_basis -= cost_basis
    position.realized_pnl += proceeds - cost_basis
    if not position.shares:
        position.status, position.closed_at = Position.Status.CLOSED, at
    position.save()
    trade = Trade(
        kind=Trade.Kind.SELL,
        shares=shares,
        price=price,
        amount=proceeds,
        cost_basis=cost_basis,
        realized_pnl=proceeds - cost_basis,
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


def settle(agent: Agent, position: Position, *, kind: Settlement.Kind, at: datetime) -> Settlement:
    """Closes an open position with its payout."""
    payout = settlement_payout(kind, position.shares, position.cost_basis)
    settlement = Settlement.objects.create(
        position=position,
        agent=agent,
        market_id=position.market_id,
        kind=kind,
        shares=position.shares,
        cost_basis=position.cost_basis,
        payout=payout,
        realized_pnl=payout - position.cost_basis,
        settled_at=at,
    )
    refunded = kind == Settlement.Kind.REFUNDED
    position.realized_pnl += settlement.realized_pnl
    position.shares, position.cost_basis = Decimal(0), Decimal(0)
    position.status = Position.Status.CANCELLED if refunded else Position.Status.SETTLED
    position.closed_at = at
    position.save()
    entry = JournalEntry.Kind.REFUND if refunded else JournalEntry.Kind.PAYOUT
    _post(agent, entry, payout, settlement=settlement, at=at)
    return settlement


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


def _post(
    agent: Agent,
    kind: JournalEntry.Kind,
    amount: Decimal,
    *,
    at: datetime,
    trade: Trade | None = None,
    settlement: Settlement | None = None,
) -> JournalEntry:
    agent.cash += amount
    agent.journal_length += 1
    agent.save(update_fields=["cash", "journal_length"])
    if agent.cohort.completed_at is not None:  # its agents' cash is part of the competition index
        renew_versions(Scope.COMPETITION)
    return JournalEntry.objects.create(
        agent=agent,
        sequence=agent.journal_length,
        kind=kind,
        amount=amount,
        balance=agent.cash,
        trade=trade,
        settlement=settlement,
        occurred_at=at,
    )
