"""Portfolio values and bet records of agents, for pages, API, leaderboards and admin."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from operator import attrgetter
from statistics import fmean

from django.db import connection
from django.db.models import OuterRef, Subquery

from agents.models import Agent, Position
from agents.models.ledger import CENT, marked_value
from foundation.raw_sql import stored_unit
from markets.models import Market, Outcome
from scoring.models import BrierScore, Snapshot
from scoring.selectors.competition import AgentSummary

ZERO = Decimal("0.00")
MAX_SHARES_IN_SQL = 900_000_000
"""The most shares, at up to a dollar each, whose value SQLite can compute in 64 bits."""


@dataclass(frozen=True, slots=True)
class Valuation:
    """An agent's cash, and the value of its positions at some prices."""

    cash: Decimal
    positions_value: Decimal
    starting_balance: Decimal
    open_positions: int = 0
    awaiting: int = 0
    """Open positions on closed markets without a resolution; counted only by `valuations(awaiting=True)`."""

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
class BetRecord:
    """Results of an agent's resolved bets; `brier` is the mean bet-sizing score, `win_rate` the share won."""

    brier: float | None
    resolved_bets: int
    win_rate: float | None


NO_RECORD = BetRecord(None, 0, None)


def valuations(agents: Iterable[Agent | AgentSummary], *, awaiting: bool = False) -> dict[int, Valuation]:
    """The value of each agent (its cohort's methodology loaded) at the last accepted prices, by agent id.

    `awaiting` counts the positions that await their market's resolution, at one lookup each. Hand-written SQL, since
    the ORM can not express the rounding.
    """
    agents = list(agents)
    if not agents:
        return {}
    position, outcome, market = (model._meta.db_table for model in (Position, Outcome, Market))
    # Joined through the outcome: the covering index of positions has no market.
    closed = f"SELECT id FROM {market} WHERE traded AND status = '{Market.Status.CLOSED.value}'"  # noqa: S608
    awaiting_count = f"COUNT(*) FILTER (WHERE {outcome}.market_id IN ({closed}))" if awaiting else "0"
    rounded, even = _rounding_sql()
    sql = (
        f"SELECT agent_id, COUNT(*), {awaiting_count}, COUNT(price), MAX(shares), SUM({rounded}), "  # noqa: S608 - our own names
        f"COUNT(*) FILTER (WHERE {even}) FROM {position} JOIN {outcome} ON {outcome}.id = outcome_id "
        f"WHERE {position}.status = '{Position.Status.OPEN.value}' "
        f"AND agent_id IN ({', '.join([str(agent.pk) for agent in agents])}) GROUP BY agent_id"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql)
        rows = cursor.fetchall()
    share, cent = stored_unit(Position, "shares"), stored_unit(Position, "cost_basis")
    counts: dict[int, tuple[int, int]] = {}
    value: dict[int, Decimal] = {}
    for agent_id, *figures in rows:
        (number, awaited, priced), (shares, total, halves) = figures[:3], figures[3:]
        counts[agent_id] = (number, awaited)
        # A position without a price counts at cost, and one of a billion shares is beyond SQLite's integers.
        if priced == number and shares * share <= MAX_SHARES_IN_SQL:
            value[agent_id] = total * cent - halves * CENT
    if by_position := counts.keys() - value.keys():
        value |= dict.fromkeys(by_position, ZERO)
        positions = Position.objects.open().filter(agent__in=by_position).order_by()
        columns = ("agent", "shares", "cost_basis", "outcome__price")
        for row in positions.values_list(*columns, named=True):
            value[row.agent] += marked_value(row.shares, row.cost_basis, row.outcome__price)
    valuations = {}
    for agent in agents:
        opening, numbers = agent.cohort.methodology.starting_balance, counts.get(agent.pk, (0, 0))
        valuations[agent.pk] = Valuation(agent.cash, value.get(agent.pk, ZERO), opening, *numbers)
    return valuations


def _rounding_sql() -> tuple[str, str]:
    """SQL for a position's value at its price, rounded to the cent, and when that is a cent too high.

    `marked_value` rounds a half to the even cent, SQL away from zero: too far where the half follows an even cent.
    """
    if connection.vendor == "postgresql":
        value = "shares * price"
        return f"ROUND({value}, 2)", f"MIN_SCALE({value}) = 3 AND MOD({value}, 0.02) = 0.005"
    # Integers of millionths of a share and ten-billionths of a dollar. Whole shares and fractions separately, since the
    # product of both numbers could exceed 64 bits.
    value, remainder = (
        "(shares / 1000000 * price + shares % 1000000 * price / 1000000)",
        "shares % 1000000 * price % 1000000",
    )
    return f"({value} + 50000000) / 100000000", f"{value} % 200000000 = 50000000 AND {remainder} = 0"


def snapshot_valuations(agents: Iterable[Agent | AgentSummary], at: datetime) -> dict[int, Valuation]:
    """The value of each agent (its cohort's methodology loaded) in its newest snapshot by an instant, by agent id.

    Before its first snapshot that is the starting balance.
    """
    values = {}
    for agent in agents:
        start = agent.cohort.methodology.starting_balance
        values[agent.pk] = Valuation(start, ZERO, start)
    newest = Snapshot.objects.filter(agent=OuterRef("pk"), taken_at__lte=at).order_by("-taken_at").values("pk")[:1]
    of_agents = Agent.objects.filter(pk__in=list(values)).order_by().values_list(Subquery(newest))
    rows = Snapshot.objects.filter(pk__in=of_agents).order_by()
    for agent_id, cash, positions_value in rows.values_list("agent", "cash", "positions_value"):
        values[agent_id] = Valuation(cash, positions_value, values[agent_id].starting_balance)
    return values


def bet_records(agents: Iterable[Agent | AgentSummary], *, at: datetime | None = None) -> dict[int, BetRecord]:
    """The record of each agent by its id, from scores of markets resolved by `at` (default: all)."""
    rows = BrierScore.objects.filter(agent__in=list(map(attrgetter("pk"), agents))).order_by()
    if at is not None:
        rows = rows.filter(resolved_at__lte=at)
    scores: dict[int, list[float]] = defaultdict(list)
    won: dict[int, list[bool]] = defaultdict(list)
    for agent, score, outcome in rows.values_list("agent", "score", "outcome"):
        scores[agent].append(score)
        won[agent].append(outcome)
    records = {}
    for agent, agent_scores in scores.items():
        records[agent] = BetRecord(fmean(agent_scores), len(agent_scores), win_rate(won[agent]))
    return records


def win_rate(won: Sequence[bool]) -> float:
    """The share of bets whose side won."""
    return sum(won) / len(won)
