"""What portfolios are worth: one function for pages, API, boards and admin."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from statistics import fmean

from django.db.models import OuterRef, Subquery

from agents.models import Agent, Position
from agents.models.ledger import marked_value
from markets.fields import bare, stored_unit
from markets.models import Outcome
from scoring.models import BrierScore, Snapshot

ZERO = Decimal("0.00")


@dataclass(frozen=True, slots=True)
class Valuation:
    """An agent's money: cash and positions at a set of prices, against its starting balance."""

    cash: Decimal
    positions_value: Decimal
    starting_balance: Decimal

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


def valuations(agents: Iterable[Agent], *, at: datetime | None = None) -> dict[int, Valuation]:
    """The value of each agent (its cohort's methodology loaded) at the last accepted prices, by agent id.

    With `at`, the value that its newest snapshot by then recorded; before its first it is the starting balance.
    """
    agents = list(agents)
    if at is not None:
        return _recorded(agents, at)
    held: dict[int, Decimal] = defaultdict(lambda: ZERO)
    positions = Position.objects.open().filter(agent__in=[a.pk for a in agents]).order_by()
    # Bare columns: a board looks at thousands of positions, and making decimals of each would be most of its time.
    unit = stored_unit(Position, "shares") * stored_unit(Outcome, "price")
    unpriced = False
    for agent, shares, price in bare(positions.values_list("agent", "shares", "outcome__price")):
        if price is None:
            unpriced = True
        else:
            # Multiplied as they are, whole numbers on SQLite: one decimal each, not two.
            held[agent] += marked_value(shares * price, ZERO, unit)
    if unpriced:
        for agent, cost_basis in positions.filter(outcome__price=None).values_list("agent", "cost_basis"):
            held[agent] += marked_value(ZERO, cost_basis, None)
    return {
        agent.pk: Valuation(agent.cash, held[agent.pk], agent.cohort.methodology.starting_balance) for agent in agents
    }


def _recorded(agents: Sequence[Agent], at: datetime) -> dict[int, Valuation]:
    newest = Snapshot.objects.filter(agent=OuterRef("pk"), taken_at__lte=at).order_by("-taken_at")
    rows = Agent.objects.filter(pk__in=[a.pk for a in agents]).order_by().annotate(
        cash_then=Subquery(newest.values("cash")[:1]), held_then=Subquery(newest.values("positions_value")[:1])
    )  # fmt: skip
    then = {pk: (cash, held) for pk, cash, held in rows.values_list("pk", "cash_then", "held_then")}
    worth = {}
    for agent in agents:
        start = agent.cohort.methodology.starting_balance
        cash, held = then[agent.pk]
        worth[agent.pk] = Valuation(start if cash is None else cash, ZERO if held is None else held, start)
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
