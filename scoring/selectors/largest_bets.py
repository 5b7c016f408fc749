"""The return of each family without its largest bet: how much of a result hangs on one position."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from django.db.models import Max, Min, QuerySet

from agents.models import Position
from agents.models.ledger import marked_value
from scoring.constants import ALL_METHODOLOGIES
from scoring.selectors.competition import AgentSummary, competition_index

Entry = Mapping[str, Any]


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
        points = largest.get(entry["family"])
        mean = entry["return_percent"]
        without = None if points is None or mean is None else mean - points / entry["cohorts"]
        completed.append({**entry, "return_without_largest_bet": without})
    return completed


def largest_bets(methodology: str = ALL_METHODOLOGIES, family: str = "") -> dict[str, float]:
    """The percentage points that the largest bet of each family, or of one, adds to its cohort's return, by slug."""
    positions = Position.objects.filter(agent__family__slug=family) if family else Position.objects.all()
    results: dict[int, Decimal] = {}
    for agent_id, pnl in [*_closed_extremes(positions), *_open_results(positions)]:
        if abs(pnl) > abs(results.get(agent_id, Decimal(0))):
            results[agent_id] = pnl
    largest: dict[str, float] = {}
    for agent in competition_index().counted_under(methodology):
        if agent.pk not in results:
            continue
        points, slug = _points(agent, results[agent.pk]), agent.family.slug
        if abs(points) > abs(largest.get(slug, 0.0)):
            largest[slug] = points
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
