"""What portfolios are worth: one function for pages, API, boards and admin."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from statistics import fmean

from django.db import connection

from agents.models import Agent, Position
from agents.models.ledger import CENT, marked_value
from markets.fields import stored_unit
from markets.models import Market, Outcome
from scoring.models import BrierScore, Snapshot
from scoring.roster import Player

ZERO = Decimal("0.00")
MOST_SHARES = 900_000_000
"""Of one position that the database values: more of them, at up to a dollar, it may have no exact number for."""


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


def valuations(agents: Iterable[Agent | Player], *, awaiting: bool = False) -> dict[int, Valuation]:
    """The value of each agent (its cohort's methodology loaded) at the last accepted prices, by agent id.

    How many positions await their market's resolution is counted for `awaiting` alone: it has to be looked up.
    Summed by the database: a board looks at thousands of positions, and to fetch each would be most of its time.
    """
    agents = list(agents)
    if not agents:
        return {}
    position, outcome, market = (model._meta.db_table for model in (Position, Outcome, Market))
    # By the outcome, which is joined anyway: the index that tells the rest does not know a position's market.
    closed = f"SELECT id FROM {market} WHERE followed AND status = '{Market.Status.CLOSED.value}'"  # noqa: S608
    awaits = f"COUNT(*) FILTER (WHERE {outcome}.market_id IN ({closed}))" if awaiting else "0"
    rounded, even = _rounded()
    sql = (
        f"SELECT agent_id, COUNT(*), {awaits}, COUNT(price), MAX(shares), SUM({rounded}), "  # noqa: S608 - our own names
        f"COUNT(*) FILTER (WHERE {even}) FROM {position} JOIN {outcome} ON {outcome}.id = outcome_id "
        f"WHERE {position}.status = '{Position.Status.OPEN.value}' "
        f"AND agent_id IN ({', '.join([str(agent.pk) for agent in agents])}) GROUP BY agent_id"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql)
        rows = cursor.fetchall()
    share, cent = stored_unit(Position, "shares"), stored_unit(Position, "cost_basis")
    held: dict[int, tuple[int, int]] = {}
    value: dict[int, Decimal] = {}
    for holder, number, awaited, priced, most, total, halves in rows:
        held[holder] = (number, awaited)
        # A position without a price counts at cost, and one of a billion shares is beyond SQLite's whole numbers.
        if priced == number and most * share <= MOST_SHARES:
            value[holder] = total * cent - halves * CENT
    if by_position := held.keys() - value.keys():
        value |= dict.fromkeys(by_position, ZERO)
        positions = Position.objects.open().filter(agent__in=by_position).order_by()
        for holder, shares, cost, price in positions.values_list("agent", "shares", "cost_basis", "outcome__price"):
            value[holder] += marked_value(shares, cost, price)
    return {
        agent.pk: Valuation(
            agent.cash,
            value.get(agent.pk, ZERO),
            agent.cohort.methodology.starting_balance,
            *held.get(agent.pk, (0, 0)),
        )
        for agent in agents
    }


def _rounded() -> tuple[str, str]:
    """SQL for what a position is worth at its outcome's price, to the cent, and for when that is a cent too much.

    `marked_value` rounds a half to the even cent, the SQL away from zero: too far where the half follows an even cent.
    """
    if connection.vendor == "postgresql":
        value = "shares * price"
        return f"ROUND({value}, 2)", f"MIN_SCALE({value}) = 3 AND MOD({value}, 0.02) = 0.005"
    # Whole numbers of millionths of a share and ten-billionths of a dollar. Whole shares and the rest of one apart:
    # the product of both numbers would have more than 64 bits.
    value, left = (
        "(shares / 1000000 * price + shares % 1000000 * price / 1000000)",
        "shares % 1000000 * price % 1000000",
    )
    return f"({value} + 50000000) / 100000000", f"{value} % 200000000 = 50000000 AND {left} = 0"


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
    played, snapshot = Agent._meta.db_table, Snapshot._meta.db_table
    # Whoever played then has a snapshot of the last pass, and these lie side by side; for the others each is looked up.
    of_pass = f"FROM {snapshot} WHERE taken_at = (SELECT MAX(taken_at) FROM {snapshot} WHERE taken_at <= %s)"  # noqa: S608
    newest = f"SELECT id FROM {snapshot} WHERE agent_id = {played}.id AND taken_at <= %s ORDER BY taken_at DESC LIMIT 1"  # noqa: S608
    sql = (
        f"SELECT agent_id, cash, positions_value {of_pass} UNION ALL "  # noqa: S608 - our own names
        f"SELECT own.agent_id, own.cash, own.positions_value FROM {played} JOIN {snapshot} own ON own.id = ({newest}) "
        f"WHERE {played}.id IN ({', '.join(map(str, worth))}) AND {played}.id NOT IN (SELECT agent_id {of_pass})"
    )
    unit = stored_unit(Snapshot, "cash")
    with connection.cursor() as cursor:
        cursor.execute(sql, [connection.ops.adapt_datetimefield_value(at)] * 3)
        for holder, cash, held in cursor.fetchall():
            if holder in worth:
                worth[holder] = Valuation(cash * unit, held * unit, worth[holder].starting_balance)
    return worth


def records(agents: Iterable[int], *, at: datetime | None = None) -> dict[int, Record]:
    """The record of each agent id, from scores of markets resolved by `at` (default: all)."""
    listed = ", ".join([str(int(agent)) for agent in agents])
    if not listed:
        return {}
    sql = f"SELECT agent_id, score, outcome FROM {BrierScore._meta.db_table} WHERE agent_id IN ({listed})"  # noqa: S608
    scores: dict[int, list[float]] = defaultdict(list)
    outcomes: dict[int, list[bool]] = defaultdict(list)
    with connection.cursor() as cursor:
        if at is None:
            cursor.execute(sql)
        else:
            cursor.execute(f"{sql} AND resolved_at <= %s", [connection.ops.adapt_datetimefield_value(at)])
        for agent, score, won in cursor.fetchall():
            scores[agent].append(score)
            outcomes[agent].append(won)
    return {agent: Record(mean_score(made), len(made), win_rate(outcomes[agent])) for agent, made in scores.items()}


def mean_score(scores: Sequence[float]) -> float:
    """The mean Brier score of bets, to the last digit the same in whatever order a database gives them."""
    return fmean(scores)


def win_rate(won: Sequence[bool]) -> float:
    """The share of bets whose side won."""
    return sum(won) / len(won)
