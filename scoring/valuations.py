"""What portfolios are worth: one function for pages, API, boards and admin."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Avg, Count, Q

from agents.models import Agent, Position
from agents.models.ledger import marked_value
from scoring.models import BrierScore

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


def valuations(agents: Iterable[Agent]) -> dict[int, Valuation]:
    """The value of each agent (its cohort's methodology loaded) at the last accepted prices, by agent id."""
    agents = list(agents)
    held: dict[int, Decimal] = defaultdict(lambda: ZERO)
    rows = Position.objects.open().filter(agent__in=[a.pk for a in agents]).order_by()
    # Bare columns: a board looks at thousands of positions, and building a model for each would be most of its time.
    for agent, shares, cost_basis, price in rows.values_list("agent", "shares", "cost_basis", "outcome__price"):
        held[agent] += marked_value(shares, cost_basis, price)
    return {
        agent.pk: Valuation(agent.cash, held[agent.pk], agent.cohort.methodology.starting_balance) for agent in agents
    }


def records(agents: Iterable[int], *, at: object = None) -> dict[int, Record]:
    """The record of each agent id, from scores of markets resolved by `at` (default: all)."""
    scores = BrierScore.objects.filter(agent__in=list(agents))
    if at is not None:
        scores = scores.filter(resolved_at__lte=at)
    rows = (
        scores.order_by()
        .values("agent")
        .annotate(brier=Avg("score"), bets=Count("pk"), won=Count("pk", filter=Q(outcome=True)))
    )
    return {row["agent"]: Record(row["brier"], row["bets"], row["won"] / row["bets"]) for row in rows}
