"""What portfolios are worth: one function for pages, API, boards and admin."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from statistics import fmean
from typing import Any

from django.db import connection
from django.db.models import Q

from agents.models import Agent, Position
from agents.models.ledger import marked_value
from markets.fields import bare, stored_unit
from markets.models import Market, Outcome
from scoring.models import BrierScore, Snapshot
from scoring.roster import Player

ZERO = Decimal("0.00")


@dataclass(frozen=True, slots=True)
class Valuation:
    """An agent's money: cash and positions at a set of prices, against its starting balance."""

    cash: Decimal
    positions_value: Decimal
    starting_balance: Decimal
    open_positions: int = 0
    awaiting: int = 0
    """How many of these await their market's resolution, for who asks `valuations` for it."""

    @property
    def total(self) -> Decimal:
        return self.cash + self.positions_value

    @property
    def pnl(self) -> Decimal:
        return self.total - self.starting_balance

    @property
    def pnl_percent(self) -> Decimal:
        return (self.pnl / self.starting_balance * 100).quantize(Decimal("0.0001"))

    @property
    def return_percent(self) -> float:
        return float(self.pnl / self.starting_balance * 100)


@dataclass(frozen=True, slots=True)
class Record:
    """An agent's bets so far: mean bet-implied Brier, how many resolved, the share won."""

    brier: float | None
    resolved_bets: int
    win_rate: float | None


NO_RECORD = Record(None, 0, None)


def valuations(agents: Iterable[Agent], *, awaiting: bool = False) -> dict[int, Valuation]:
    """The value of each agent (its cohort's methodology loaded) at the last accepted prices, by agent id.

    How many positions await their market's resolution is counted for `awaiting` alone: it has to be looked up.
    """
    agents = list(agents)
    positions = Position.objects.open().filter(agent__in=[a.pk for a in agents]).order_by()
    told = ["agent", "shares", "outcome__price"]
    if awaiting:
        # By the outcome, which is joined anyway: the index that tells the rest does not know a position's market.
        closed = Market.objects.filter(status=Market.Status.CLOSED, followed=True)
        positions = positions.annotate(awaits=Q(outcome__market__in=closed.values("pk")))
        told.append("awaits")
    held: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    # Bare columns: a board looks at thousands of positions, and making decimals of each would be most of its time.
    for row in bare(positions.values_list(*told)):
        held[row[0]].append(row)
    unit = stored_unit(Position, "shares") * stored_unit(Outcome, "price")
    value: dict[int, Decimal] = {}
    unpriced = False
    for agent, rows in held.items():
        # Multiplied as they are, whole numbers on SQLite: one decimal each, not two.
        products = [row[1] * row[2] for row in rows if row[2] is not None]
        value[agent] = sum([marked_value(product, ZERO, unit) for product in products], ZERO)
        unpriced = unpriced or len(products) < len(rows)
    if unpriced:
        for agent, cost_basis in positions.filter(outcome__price=None).values_list("agent", "cost_basis"):
            value[agent] += marked_value(ZERO, cost_basis, None)
    return {
        agent.pk: Valuation(
            cash=agent.cash,
            positions_value=value.get(agent.pk, ZERO),
            starting_balance=agent.cohort.methodology.starting_balance,
            open_positions=len(held[agent.pk]),
            awaiting=sum(row[3] for row in held[agent.pk]) if awaiting else 0,
        )
        for agent in agents
    }


def recorded(agents: Iterable[Agent | Player], at: datetime) -> dict[int, Valuation]:
    """What the newest snapshot by an instant says of each agent (its cohort's methodology loaded), by agent id.

    Before its first that is the starting balance. By hand: the ORM would look up each column by itself.
    """
    worth = {}
    for agent in agents:
        start = agent.cohort.methodology.starting_balance
        worth[agent.pk] = Valuation(start, ZERO, start)
    if not worth:
        return worth
    snapshot = Snapshot._meta.db_table
    sql = (
        f"SELECT newest.agent_id, newest.cash, newest.positions_value FROM {Agent._meta.db_table} played "  # noqa: S608
        f"JOIN {snapshot} newest ON newest.id = (SELECT id FROM {snapshot} WHERE agent_id = played.id "
        f"AND taken_at <= %s ORDER BY taken_at DESC LIMIT 1) WHERE played.id IN ({', '.join(map(str, worth))})"
    )
    unit = stored_unit(Snapshot, "cash")
    with connection.cursor() as cursor:
        cursor.execute(sql, [connection.ops.adapt_datetimefield_value(at)])
        for holder, cash, held in cursor.fetchall():
            worth[holder] = Valuation(cash * unit, held * unit, worth[holder].starting_balance)
    return worth


def records(agents: Iterable[int], *, at: object = None) -> dict[int, Record]:
    """The record of each agent id, from scores of markets resolved by `at` (default: all)."""
    scores = BrierScore.objects.filter(agent__in=list(agents))
    if at is not None:
        scores = scores.filter(resolved_at__lte=at)
    bets: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for agent, score, won in bare(scores.order_by().values_list("agent", "score", "outcome")):
        bets[agent].append((score, won))
    return {
        agent: Record(mean_score([score for score, _ in made]), len(made), win_rate([won for _, won in made]))
        for agent, made in bets.items()
    }


def mean_score(scores: Sequence[float]) -> float:
    """The mean Brier score of bets, to the last digit the same in whatever order a database gives them."""
    return fmean(scores)


def win_rate(won: Sequence[bool]) -> float:
    """The share of bets whose side won."""
    return sum(won) / len(won)
