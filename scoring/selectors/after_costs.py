"""Figures after costs as pages and API read them: those of the stored trading leaderboard."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any, NamedTuple

from scoring.constants import ALL_METHODOLOGIES, TRADING
from scoring.models import Leaderboard

Entry = Mapping[str, Any]


class AgentAfterCosts(NamedTuple):
    """An agent's figures after costs; all None where none were computed."""

    return_after_costs: float | None = None
    liquidation_value: Decimal | None = None
    trades_without_book: int | None = None


def stored_after_costs() -> dict[int, AgentAfterCosts]:
    """The figures after costs of all agents that count, by id."""
    stored = Leaderboard.objects.filter(protocol=TRADING, methodology=ALL_METHODOLOGIES, arm="", category="")
    figures = {}
    for pk, row in (stored.values_list("report__after_costs", flat=True).first() or {}).items():
        value = row["liquidation_value"]
        row["liquidation_value"] = None if value is None else Decimal(value)
        figures[int(pk)] = AgentAfterCosts(**row)
    return figures


def entries_with_books(entries: Sequence[Entry]) -> list[Entry]:
    """The ranked entries of a leaderboard that have a return after costs, in the order of ranks."""
    costed = []
    for entry in entries:
        if entry["rank"] is not None and entry.get("return_after_costs") is not None:
            costed.append(entry)
    return sorted(costed, key=itemgetter("rank", "family"))
