"""The return of each family without its largest bet: how much of a result hangs on one position."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import Max, Min

from agents.models import Position
from agents.models.ledger import marked_value
from scoring.competition import AgentSummary, competition_index
from scoring.constants import ALL_METHODOLOGIES

Entry = Mapping[str, Any]


class ReturnShare(NamedTuple):
    """Percentage points that a position adds to the mean return of its family."""

    points: float
    pnl: Decimal


def with_returns_without_largest_bet(
    entries: Iterable[Entry], *, methodology: str = ALL_METHODOLOGIES, current: bool = True
) -> list[dict[str, Any]]:
    """The entries of a trading leaderboard with `return_without_largest_bet`.

    The largest bet is the position with the largest profit or loss of all cohorts, at the last accepted prices. It is
    None on past leaderboards, and for a family without any profit or loss.
    """
    largest = largest_bets(methodology) if current else {}
    completed = []
    for entry in entries:
        share = largest.get(entry["family"])
        mean = entry["return_percent"]
        without = None if share is None or mean is None else mean - share.points / entry["cohorts"]
        completed.append({**entry, "return_without_largest_bet": without})
    return completed


def largest_bets(methodology: str = ALL_METHODOLOGIES) -> dict[str, ReturnShare]:
    """The largest bet of each family, by its slug; its points are those of its own cohort's return."""
    agents = {
        agent.pk: agent
        for agent in competition_index().counted
        if methodology in (ALL_METHODOLOGIES, agent.cohort.methodology.version)
    }
    largest: dict[str, ReturnShare] = {}
    for agent_id, pnl in [*_closed_extremes(), *_open_results()]:
        if agent_id not in agents or not pnl:
            continue
        agent = agents[agent_id]
        share = ReturnShare(_points(agent, pnl), pnl)
        family = agent.family.slug
        if family not in largest or abs(share.points) > abs(largest[family].points):
            largest[family] = share
    return largest


def _points(agent: AgentSummary, pnl: Decimal) -> float:
    return float(pnl / agent.cohort.methodology.starting_balance * 100)


def _closed_extremes() -> list[tuple[int, Decimal]]:
    """The largest profit and the largest loss of each agent's closed positions: one query, a row for each agent."""
    closed = Position.objects.exclude(status=Position.Status.OPEN).order_by().values("agent")
    extremes = closed.annotate(highest=Max("realized_pnl"), lowest=Min("realized_pnl"))
    rows = extremes.values_list("agent", "highest", "lowest")
    results = []
    for agent, highest, lowest in rows:
        results += [(agent, highest), (agent, lowest)]
    return results


def _open_results() -> list[tuple[int, Decimal]]:
    """The realized and unrealized profit or loss of each open position."""
    columns = ("agent", "shares", "cost_basis", "realized_pnl", "outcome__price")
    results = []
    for row in Position.objects.open().order_by().values_list(*columns, named=True):
        value = marked_value(row.shares, row.cost_basis, row.outcome__price)
        results.append((row.agent, row.realized_pnl + value - row.cost_basis))
    return results
