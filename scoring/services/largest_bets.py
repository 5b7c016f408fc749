"""The return of each family without its largest bet: how much of a result hangs on one position."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from django.db.models import Max, Min

from agents.models import Position
from agents.models.ledger import marked_value
from foundation.bulk import rows_by
from scoring.selectors.competition import competition_index


def add_returns_without_largest_bet(entries: Iterable[dict[str, Any]], methodology: str) -> None:
    """Adds `return_without_largest_bet` to the entries of a trading leaderboard.

    The largest bet is the position with the largest profit or loss of all cohorts, at the last accepted prices; None
    for a family without any profit or loss.
    """
    largest = _largest_bets(methodology)
    for entry in entries:
        points = largest.get(entry["family"])
        without = None if points is None else entry["return_percent"] - points / entry["cohorts"]
        entry["return_without_largest_bet"] = without


def _largest_bets(methodology: str) -> dict[str, float]:
    """The percentage points that the largest bet of each family, by its slug, adds to the return of its cohort."""
    agents = rows_by("pk", competition_index().counted_under(methodology))
    largest: dict[str, float] = {}
    for pk, pnl in [*_closed_extremes(), *_open_results()]:
        if pk in agents and pnl:
            points = float(pnl / agents[pk].cohort.methodology.starting_balance * 100)
            slug = agents[pk].family.slug
            largest[slug] = max(largest.get(slug, points), points, key=abs)
    return largest


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
