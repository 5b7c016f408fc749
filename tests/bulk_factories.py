"""Cohorts, agents and positions in bulk, with a ledger that balances."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import transaction

from agents.models import Agent, Decision, JournalEntry, Position, Trade
from agents.services.cohort_start import start_cohort
from markets.models import Market, Outcome
from tests.factories import WEEK

STAKE, PRICE, SHARES = Decimal("50.00"), Decimal("0.40"), Decimal("125.000000")


@dataclass(frozen=True)
class Portfolios:
    agents: int
    positions: int
    markets: int
    at: datetime
    """An instant after every row."""


@transaction.atomic
def create_portfolios(*, cohorts: int, positions: int, markets: int = 350) -> Portfolios:
    """`cohorts` weeks of seven agents, each holding YES of `positions` out of `markets` open markets."""
    for week in range(cohorts):
        start_cohort(at=WEEK + week * timedelta(weeks=1))
    last_seen_at = WEEK - timedelta(days=1)
    listed = Market.objects.bulk_create(
        Market(
            external_id=str(700_000 + n),
            source="polymarket",
            question=f"Question {n}?",
            kind="binary",
            event_id=f"event-{n // 3}",
            volume=1_000_000 - n,
            traded=True,
            first_seen_at=last_seen_at,
            listed_at=last_seen_at,
            refreshed_at=last_seen_at,
        )
        for n in range(markets)
    )
    sides = Outcome.objects.bulk_create(
        Outcome(
            market=market,
            index=index,
            name=side.title(),
            side=side,
            token_id=f"{market.external_id}{index}",
            quote=price,
            quote_at=last_seen_at,
            price=price,
            price_at=last_seen_at,
            price_source="gamma",
        )
        for market in listed
        for index, (side, price) in enumerate((("YES", PRICE), ("NO", 1 - PRICE)))
    )
    yes = [outcome for outcome in sides if outcome.side == "YES"]
    agents = list(Agent.objects.select_related("cohort__methodology"))
    decisions = Decision.objects.bulk_create(
        Decision(agent=a, cohort=a.cohort, week=1, status="completed", action="BET", decided_at=a.cohort.week_start)
        for a in agents
    )
    open_positions = Position.objects.bulk_create(
        Position(
            agent=agent,
            market_id=outcome.market_id,
            outcome=outcome,
            shares=SHARES,
            cost_basis=STAKE,
            opened_at=agent.cohort.week_start,
        )
        for index, agent in enumerate(agents)
        for outcome in (yes[(index * 7 + k) % len(yes)] for k in range(positions))
    )
    _create_trades(agents, decisions, open_positions)
    return Portfolios(len(agents), len(open_positions), len(listed), WEEK + cohorts * timedelta(weeks=1))


def _create_trades(agents: list[Agent], decisions: list[Decision], positions: list[Position]) -> None:
    """Creates the trades and journal entries behind the positions."""
    decided = {decision.agent_id: decision for decision in decisions}
    by_agent = {agent.pk: agent for agent in agents}
    trades, cash = [], {agent.pk: agent.cash for agent in agents}
    sequence = dict.fromkeys(cash, 0)
    for position in positions:
        agent = by_agent[position.agent_id]
        sequence[agent.pk] += 1
        maximum = agent.cohort.methodology.maximum_bet(cash[agent.pk])
        trades.append(
            Trade(
                decision=decided[agent.pk],
                sequence=sequence[agent.pk],
                agent=agent,
                position=position,
                market_id=position.market_id,
                outcome_id=position.outcome_id,
                kind="BUY",
                shares=SHARES,
                price=PRICE,
                amount=STAKE,
                cost_basis=STAKE,
                implied_confidence=float(STAKE / maximum),
                executed_at=position.opened_at,
            )
        )
        cash[agent.pk] -= STAKE
    balance = {agent.pk: agent.cash for agent in agents}
    entries = []
    for trade in Trade.objects.bulk_create(trades):
        balance[trade.agent_id] -= STAKE
        entries.append(
            JournalEntry(
                agent_id=trade.agent_id,
                sequence=trade.sequence + 1,
                kind="buy",
                amount=-STAKE,
                balance=balance[trade.agent_id],
                trade=trade,
                occurred_at=trade.executed_at,
            )
        )
    JournalEntry.objects.bulk_create(entries)
    for agent in agents:
        agent.cash, agent.journal_length = cash[agent.pk], sequence[agent.pk] + 1
    Agent.objects.bulk_update(agents, ["cash", "journal_length"])
