"""Reversals: a market that was settled wrongly gets another resolution, and its positions the right payouts."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import transaction

from agents.models import Settlement
from agents.services import ledger
from agents.services.envelopes import require_opened
from agents.services.resolutions import Resolution
from foundation.failpoints import failpoint
from markets.models import Market

FINAL = (Market.Status.RESOLVED, Market.Status.CANCELLED)


class InsufficientCash(Exception):
    """An agent has spent what it would have to pay back, and cash never falls below zero."""


@dataclass(frozen=True, slots=True)
class ReversalChange:
    """The effect of a reversal on one settled position."""

    settlement: Settlement
    kind: str
    previous_payout: Decimal
    payout: Decimal

    @property
    def amount(self) -> Decimal:
        return self.payout - self.previous_payout


def reversal_changes(market: Market, resolution: Resolution) -> list[ReversalChange]:
    """The effects of another resolution on each settled position of a market. Raises InsufficientCash."""
    settlements = Settlement.objects.filter(market=market).select_related("position__outcome", "agent__cohort")
    changes = []
    for settlement in settlements.prefetch_related("position__reversals").order_by("agent_id", "pk"):
        kind = resolution.settlement_kind(settlement.position.outcome_id)
        payout = ledger.settlement_payout(kind, settlement.shares, settlement.cost_basis)
        changes.append(ReversalChange(settlement, kind, settlement.standing_payout, payout))
    totals: dict[int, Decimal] = defaultdict(Decimal)
    for change in changes:
        totals[change.settlement.agent_id] += change.amount
    agents = {change.settlement.agent_id: change.settlement.agent for change in changes}
    faults = []
    for pk, agent in agents.items():
        if agent.cash + totals[pk] < 0:
            faults.append(f"{agent} has {agent.cash} and would give back {-totals[pk]}")
    if faults:
        raise InsufficientCash("; ".join(faults))
    return changes


def reverse_settlement(market: Market, resolution: Resolution, *, by: str, reason: str, at: datetime) -> int | None:
    """Gives a final market another resolution and corrects its positions, in one transaction.

    Returns the number of positions, or None if the market is not final or has that resolution already. Raises
    InsufficientCash or AnswerWaits, and changes nothing then.
    """
    status, winner = resolution.market_status, resolution.winner
    with transaction.atomic():
        # Agents before the market, as a purchase locks them.
        owners = Settlement.objects.filter(market=market).order_by().values_list("agent_id", flat=True)
        agents = ledger.lock_agents(owners)
        require_opened(market)
        at = ledger.following_instant(agents.values(), at, same=True)
        final = Market.objects.filter(pk=market.pk, status__in=FINAL)
        reversible = final.exclude(status=status, winning_outcome=winner)
        if not reversible.update(status=status, winning_outcome=winner, resolved_at=at):
            return None
        # Credits before debits, so that no balance on the way falls below zero.
        changes = sorted(reversal_changes(market, resolution), key=lambda change: -change.amount)
        for change in changes:
            agent = agents[change.settlement.agent_id]
            ledger.reverse(agent, change.settlement, kind=change.kind, by=by, reason=reason, at=at)
        for agent in agents.values():
            ledger.declare_bankruptcy_if_due(agent, agent.cohort.methodology)
        failpoint("reversal.paid")
    return len(changes)
