"""Verification of the ledger: every balance, position and payout recomputed from the rows that it follows from."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from django.db.models import Prefetch

from agents.models import Agent, JournalEntry, Position, Reversal, Settlement, Trade
from agents.models.ledger import to_cents, to_microshares
from agents.services.ledger import settlement_payout
from markets.models import Market

ZERO = Decimal("0.00")


@dataclass(slots=True)
class Audit:
    agents: int = 0
    journal_rows: int = 0
    violations: list[str] = field(default_factory=list)


def verify_ledger(progress: Callable[[int, int], None] = lambda done, of: None) -> Audit:
    """Checks every agent. Each violation is one line that names the agent, the row and the amounts."""
    audit = Audit()
    agents = Agent.objects.select_related("cohort__methodology", "family").order_by("pk")
    of = agents.count()
    for done, agent in enumerate(agents.iterator(chunk_size=200)):
        progress(done, of)
        journal = list(agent.journal.order_by("sequence").select_related("trade", "settlement", "reversal"))
        trades = list(agent.trades.order_by("pk"))
        positions = list(
            agent.positions.order_by("pk")
            .select_related("settlement__market")
            .prefetch_related("trades", Prefetch("reversals", Reversal.objects.order_by("sequence")))
        )
        audit.agents += 1
        audit.journal_rows += len(journal)
        name = f"{agent.family.slug} in cohort {agent.cohort.number} (agent {agent.pk})"
        for violations in (
            _journal(agent, journal),
            _unbooked(trades, positions, journal),
            _trades(agent, trades, journal),
            _positions(positions),
            _totals(agent, positions),
        ):
            audit.violations += [f"{name}: {violation}" for violation in violations]
    return audit


def _journal(agent: Agent, journal: list[JournalEntry]) -> Iterator[str]:
    """Violations of the journal: balances follow from amounts, amounts from causes, cash from the last balance."""
    opening = agent.cohort.methodology.starting_balance
    balance = ZERO
    for expected, entry in enumerate(journal, start=1):
        row = f"journal row {entry.pk} (no. {entry.sequence})"
        if entry.sequence != expected:
            yield f"{row} should be no. {expected}: a row is missing or doubled"
        cause = _cause(entry, opening)
        if entry.amount != cause:
            yield f"{row} moves {entry.amount}, its {entry.kind} says {cause}"
        if entry.balance != balance + entry.amount:
            yield f"{row} has the balance {entry.balance}, {balance} and {entry.amount} make {balance + entry.amount}"
        balance = entry.balance
    if not journal:
        yield f"no journal: cash of {agent.cash} comes from nowhere"
    elif journal[0].kind != JournalEntry.Kind.DEPOSIT:
        yield f"journal row {journal[0].pk} is a {journal[0].kind}, the first must be the deposit"
    if agent.cash != balance:
        yield f"cash is {agent.cash}, the last journal balance {balance}"


def _cause(entry: JournalEntry, opening: Decimal) -> Decimal | None:
    """The amount that follows from an entry's cause."""
    if entry.kind == JournalEntry.Kind.REVERSAL:
        reversal = getattr(entry, "reversal", None)
        return reversal.payout - reversal.previous_payout if reversal else None
    if entry.trade is not None:
        return -entry.trade.amount if entry.trade.kind == Trade.Kind.BUY else entry.trade.amount
    if entry.settlement is not None:
        return entry.settlement.payout
    return opening if entry.sequence == 1 else None


def _unbooked(trades: list[Trade], positions: list[Position], journal: list[JournalEntry]) -> Iterator[str]:
    """Trades and settlements that no journal entry names."""
    booked = {entry.trade_id for entry in journal}
    for trade in trades:
        if trade.pk not in booked:
            yield f"trade {trade.pk} over {trade.amount} is not in the journal"
    paid = {entry.settlement_id for entry in journal}
    for settlement in filter(None, map(_settlement_of, positions)):
        if settlement.pk not in paid:
            yield f"settlement {settlement.pk} over {settlement.payout} is not in the journal"


def _settlement_of(position: Position) -> Settlement | None:
    return getattr(position, "settlement", None)


def _trades(agent: Agent, trades: list[Trade], journal: list[JournalEntry]) -> Iterator[str]:
    """Violations of trades: shares, proceeds, cost and confidence follow from the methodology's formulas."""
    methodology = agent.cohort.methodology
    before = {entry.trade_id: entry.balance - entry.amount for entry in journal if entry.trade_id}
    for trade in trades:
        row = f"trade {trade.pk} ({trade.kind} at {trade.price:f})"
        if trade.kind == Trade.Kind.BUY:
            if trade.cost_basis != trade.amount:
                yield f"{row} adds {trade.cost_basis} to the cost basis but paid {trade.amount}"
            bought = to_microshares(trade.amount / trade.price)
            if trade.shares != bought:
                yield f"{row} has {trade.shares} shares, {trade.amount} buys {bought}"
            if cash := before.get(trade.pk):
                stated, implied = trade.implied_confidence, float(trade.amount / methodology.maximum_bet(cash))
                if abs((stated or 0) - min(implied, 1)) > 1e-9:
                    yield f"{row} states confidence {stated}, {trade.amount} of {cash} implies another"
        else:
            worth = to_cents(trade.shares * trade.price)
            if trade.amount != worth:
                yield f"{row} brought {trade.amount}, its shares make {worth}"
            gain = trade.amount - trade.cost_basis
            if trade.realized_pnl != gain:
                yield f"{row} realized {trade.realized_pnl}, proceeds less cost make {gain}"


def _positions(positions: list[Position]) -> Iterator[str]:
    """Violations of positions: shares and cost follow from trades and settlement."""
    for position in positions:
        shares = cost = realized = Decimal(0)
        for trade in position.trades.all():
            sign = 1 if trade.kind == Trade.Kind.BUY else -1
            shares, cost = shares + sign * trade.shares, cost + sign * trade.cost_basis
            realized += trade.realized_pnl
        settlement = _settlement_of(position)
        if settlement is not None:
            reversals = list(position.reversals.all())
            yield from _settlement(settlement, shares, cost, reversals)
            realized += settlement.realized_pnl + sum((r.payout - r.previous_payout for r in reversals), ZERO)
            shares = cost = Decimal(0)
        row = f"position {position.pk} ({position.status})"
        for name, have, due in (
            ("shares", position.shares, shares),
            ("a cost basis of", position.cost_basis, cost),
            ("a realized P/L of", position.realized_pnl, realized),
        ):
            if have != due:
                yield f"{row} has {name} {have}, its trades say {due}"
        settled = position.status in (Position.Status.SETTLED, Position.Status.CANCELLED)
        if settled != (settlement is not None):
            yield f"{row} has {'no' if settlement is None else 'a'} settlement over {position.cost_basis}"


def _settlement(settlement: Settlement, shares: Decimal, cost: Decimal, reversals: list[Reversal]) -> Iterator[str]:
    row = f"settlement {settlement.pk} ({settlement.kind})"
    if (settlement.shares, settlement.cost_basis) != (shares, cost):
        settled = f"{settlement.shares} shares at cost {settlement.cost_basis}"
        yield f"{row} ends {settled}, the trades left {shares} at {cost}"
    kind = _settlement_kind(settlement)
    if kind != (reversals[-1].kind if reversals else settlement.kind):
        yield f"{row} over {settlement.payout} should be {kind}: its market is {settlement.market.status}"
    due = settlement_payout(settlement.kind, shares, cost)
    if settlement.payout != due:
        yield f"{row} paid {settlement.payout}, due was {due}"
    gain = settlement.payout - settlement.cost_basis
    if settlement.realized_pnl != gain:
        yield f"{row} realized {settlement.realized_pnl}, payout less cost make {gain}"
    paid = settlement.payout
    for expected, reversal in enumerate(reversals, start=1):
        row = f"reversal {reversal.pk} (no. {reversal.sequence} of settlement {settlement.pk})"
        if reversal.sequence != expected:
            yield f"{row} should be no. {expected}: a row is missing"
        if reversal.previous_payout != paid:
            yield f"{row} takes back {reversal.previous_payout}, {paid} had been paid"
        due = settlement_payout(reversal.kind, shares, cost)
        if reversal.payout != due:
            yield f"{row} paid {reversal.payout}, due was {due}"
        paid = reversal.payout


def _settlement_kind(settlement: Settlement) -> Settlement.Kind | None:
    """The kind of settlement that follows from the market's outcome; None while the market is not final."""
    if settlement.market.status == Market.Status.CANCELLED:
        return Settlement.Kind.REFUNDED
    if settlement.market.status != Market.Status.RESOLVED:
        return None
    won = settlement.position.outcome_id == settlement.market.winning_outcome_id
    return Settlement.Kind.WON if won else Settlement.Kind.LOST


def _totals(agent: Agent, positions: list[Position]) -> Iterator[str]:
    """Violations of the total: realized P/L = value - starting balance, with open positions at cost on both sides."""
    opening = agent.cohort.methodology.starting_balance
    realized = sum((position.realized_pnl for position in positions), ZERO)
    cost = sum((position.cost_basis for position in positions if position.status == Position.Status.OPEN), ZERO)
    if (made := agent.cash + cost - opening) != realized:
        yield f"cash {agent.cash} and positions at cost {cost} less {opening} make {made}, realized P/L is {realized}"
    if agent.cash < 0:
        yield f"cash is negative: {agent.cash}"
