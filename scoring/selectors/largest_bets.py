"""The return of each family without its largest bet: how much of a result hangs on one position."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import Max, Min, QuerySet

from agents.models import Position
from agents.models.ledger import marked_value
from scoring.constants import ALL_METHODOLOGIES
from scoring.selectors.competition import AgentSummary, competition_index

Entry = Mapping[str, Any]


class ReturnShare(NamedTuple):
    """Percentage points that a position adds to the mean return of its family."""

    points: float
    pnl: Decimal


def with_returns_without_largest_bet(
    entries: Iterable[Entry], methodology: str = ALL_METHODOLOGIES, *, current: bool = True, family: str = ""
) -> list[dict[str, Any]]:
    """The entries of a trading leaderboard with `return_without_largest_bet`.

    The largest bet is the position with the largest profit or loss of all cohorts, at the last accepted prices. It is
    None on past leaderboards, and for a family without any profit or loss. With `family` all entries are of that one.
    """
    largest = largest_bets(methodology, family) if current else {}
    completed = []
    for entry in entries:
        share = largest.get(entry["family"])
        mean = entry["return_percent"]
        without = None if share is None or mean is None else mean - share.points / entry["cohorts"]
        completed.append({**entry, "return_without_largest_bet": without})
    return completed


def largest_bets(methodology: str = ALL_METHODOLOGIES, family: str = "") -> dict[str, ReturnShare]:
    """The largest bet of each family or of one, by its slug; its points are those of its own cohort's return."""
    positions = Position.objects.filter(agent__family__slug=family) if family else Position.objects.all()
    results: dict[int, Decimal] = {}
    for agent_id, pnl in [*_closed_extremes(positions), *_open_results(positions)]:
        if abs(pnl) > abs(results.get(agent_id, Decimal(0))):
            results[agent_id] = pnl
    largest: dict[str, ReturnShare] = {}
    for agent in competition_index().counted_under(methodology):
        if agent.pk not in results:
            continue
        share = ReturnShare(_points(agent, results[agent.pk]), results[agent.pk])
        slug = agent.family.slug
        if slug not in largest or abs(share.points) > abs(largest[slug].points):
            largest[slug] = share
    return largest


def _points(agent: AgentSummary, pnl: Decimal) -> float:
    return float(pnl / agent.cohort.methodology.starting_balance * 100)


def _closed_extremes(positions: QuerySet[Position]) -> list[tuple[int, Decimal]]:
    """The largest profit and the largest loss of each agent's closed positions: one query, a row for each agent."""
    closed = positions.exclude(status=Position.Status.OPEN).order_by().values("agent")
    extremes = closed.annotate(highest=Max("realized_pnl"), lowest=Min("realized_pnl"))
    rows = extremes.values_list("agent", "highest", "lowest")
    results = []
    for agent, highest, lowest in rows:
        results += [(agent, highest), (agent, lowest)]
    return results


def _open_results(positions: QuerySet[Position]) -> list[tuple[int, Decimal]]:
    """The realized and unrealized profit or loss of each open position."""
    columns = ("agent", "shares", "cost_basis", "realized_pnl", "outcome__price")
    results = []
    rows = positions.filter(status=Position.Status.OPEN).order_by().values_list(*columns)
    for agent, shares, cost, realized, price in rows:
        results.append((agent, realized + marked_value(shares, cost, price) - cost))
    return results
