"""Making a wrong settlement good: its market gets the end it should have had, its positions what they were owed."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import transaction

from agents.models import Settlement
from agents.services import ledger
from agents.services.settlement import Cancelled, Won
from markets.failpoints import reached
from markets.models import Market

FINAL = (Market.Status.RESOLVED, Market.Status.CANCELLED)


class Overdrawn(Exception):
    """An agent has spent what it would have to give back: cash never falls below zero."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a reversal would move for one position."""

    settlement: Settlement
    kind: str
    taken_back: Decimal
    payout: Decimal

    @property
    def amount(self) -> Decimal:
        return self.payout - self.taken_back


def reversal_changes(market: Market, end: Won | Cancelled) -> list[Change]:
    """What each settlement of the market would become under another end. Raises Overdrawn where it can not be."""
    settled = Settlement.objects.filter(market=market).select_related("position__outcome", "agent__cohort")
    changes = []
    for settlement in settled.prefetch_related("position__reversals").order_by("agent_id", "pk"):
        kind = _kind(settlement, end)
        last = max(settlement.position.reversals.all(), key=lambda reversal: reversal.sequence, default=None)
        payout = ledger.payout_of(kind, settlement.shares, settlement.cost_basis)
        changes.append(Change(settlement, kind, last.payout if last else settlement.payout, payout))
    due: dict[int, Decimal] = defaultdict(Decimal)
    for change in changes:
        due[change.settlement.agent_id] += change.amount
    agents = {change.settlement.agent_id: change.settlement.agent for change in changes}
    short = [agent for pk, agent in agents.items() if agent.cash + due[pk] < 0]
    if short:
        names = "; ".join(f"{agent} has {agent.cash} and would give back {-due[agent.pk]}" for agent in short)
        raise Overdrawn(names)
    return changes


def settlement_reverse(market: Market, end: Won | Cancelled, *, by: str, reason: str, at: datetime) -> int | None:
    """Gives a final market another end and makes its positions good, in one transaction; returns how many.

    None where the market is not final, or has that end already. Raises Overdrawn, and changes nothing then.
    """
    won = end.outcome if isinstance(end, Won) else None
    status = Market.Status.RESOLVED if won else Market.Status.CANCELLED
    with transaction.atomic():
        final = Market.objects.filter(pk=market.pk, status__in=FINAL)
        other = final.exclude(status=status, winning_outcome=won)
        if not other.update(status=status, winning_outcome=won, resolved_at=at):
            return None
        agents = Settlement.objects.filter(market=market).values_list("agent_id", flat=True)
        locked = {agent_id: ledger.agent_lock(agent_id) for agent_id in sorted(set(agents))}
        # What comes in goes first, so that no balance on the way is below zero.
        changes = sorted(reversal_changes(market, end), key=lambda change: -change.amount)
        for change in changes:
            agent = locked[change.settlement.agent_id]
            ledger.reverse(agent, change.settlement, kind=change.kind, by=by, reason=reason, at=at)
        for agent in locked.values():
            ledger.declare_bankrupt_if_so(agent, agent.cohort.methodology)
        reached("reversal.paid")
    return len(changes)


def _kind(settlement: Settlement, end: Won | Cancelled) -> str:
    if isinstance(end, Cancelled):
        return Settlement.Kind.REFUNDED
    return Settlement.Kind.WON if settlement.position.outcome_id == end.outcome.pk else Settlement.Kind.LOST
