"""One family in one cohort: what it is worth, what it holds and held, what it decided, and every trade."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Left
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from agents.models import Agent, Decision, Instruction, Position, Trade
from scoring.valuations import NO_RECORD, records
from scoring.views.curves import agent_curves
from scoring.views.holdings import STATES, Holding, fate_of_trade, holdings
from scoring.views.standings import standings

SHOWN = 40
"""Positions of each kind that the page shows unless all are asked for."""
TRADES_PER_PAGE = 50
POSITION = (
    *("agent", "status", "shares", "cost_basis", "realized_pnl", "opened_at", "closed_at"),
    *("market__question", "market__status", "market__winning_outcome"),
    *("outcome__side", "outcome__price", "outcome__price_stale"),
)
"""What the page shows of a position."""
REASONING = 400
"""Characters of a decision's reasoning that are read for a list."""


@dataclass(frozen=True, slots=True)
class Largest:
    """The position that brought or cost the most, and which part of the agent's profit or loss that is."""

    holding: Holding
    share: Decimal | None


@require_safe
def agent(request: HttpRequest, number: int, slug: str) -> HttpResponse:
    """One family in one cohort: its value, its positions by state and its decisions by week."""
    agent = _agent(number, slug)
    standing = standings([agent])[0]
    positions = Position.objects.filter(agent=agent).select_related("market", "outcome")
    positions = positions.only(*POSITION).order_by("opened_at", "pk")
    held, past = holdings(positions)
    states = Counter(each.fate for each in (*held, *past))
    decisions: list[Any] = list(_decisions(agent))
    shown = None if "all" in request.GET else SHOWN
    curves = agent_curves([agent])
    return render(
        request,
        "scoring/agent.html",
        {
            "agent": agent,
            "family": agent.family,
            "cohort": agent.cohort,
            "standing": standing,
            "held": held[:shown],
            "past": past[:shown],
            "hidden": 0 if shown is None else max(0, len(held) - shown) + max(0, len(past) - shown),
            "states": [(name, states[name]) for name in STATES if states[name]],
            "largest": _largest([*held, *past], standing.worth.pnl),
            "realized": sum((each.position.realized_pnl for each in (*held, *past)), Decimal(0)),
            "unrealized": sum((each.unrealized for each in held if each.unrealized is not None), Decimal(0)),
            "decisions": decisions,
            "cost_usd": sum((decision.cost_usd or Decimal(0) for decision in decisions), Decimal(0)),
            "tokens_input": sum(decision.tokens_input or 0 for decision in decisions),
            "tokens_output": sum(decision.tokens_output or 0 for decision in decisions),
            "curves": curves,
            "chart": curves.chart(agent.cohort.methodology.starting_balance, height=260),
        },
    )


@require_safe
def trades(request: HttpRequest, number: int, slug: str) -> HttpResponse:
    """Every trade of an agent, newest first, with its price, its decision and what it scored."""
    agent = _agent(number, slug)
    rows = Trade.objects.filter(agent=agent).select_related("market", "outcome", "brier_score", "decision")
    rows = rows.defer("market__description", "decision__reasoning").order_by("-executed_at", "-pk")
    page = Paginator(rows, TRADES_PER_PAGE).get_page(request.GET.get("page"))
    return render(
        request,
        "scoring/trades.html",
        {
            "agent": agent,
            "family": agent.family,
            "cohort": agent.cohort,
            "record": records([agent.pk]).get(agent.pk, NO_RECORD),
            "page": page,
            "rows": [{"trade": trade, "fate": fate_of_trade(trade)} for trade in page],
        },
    )


def _agent(number: int, slug: str) -> Agent:
    agents = Agent.objects.select_related("family", "release", "cohort__methodology")
    return get_object_or_404(agents, cohort__number=number, family__slug=slug)


def _decisions(agent: Agent) -> QuerySet[Decision]:
    """The agent's decisions with what they cost, traded and had refused; of the reasoning the beginning."""

    def counted(rows: QuerySet[Any], of: str) -> Coalesce:
        number = rows.order_by().values(of).annotate(number=Count("pk")).values("number")
        return Coalesce(Subquery(number), 0)

    decisions: QuerySet[Decision] = Decision.objects.filter(agent=agent).with_costs().order_by("week")
    refused = Instruction.objects.filter(call__decision=OuterRef("pk"), executed=False)
    return decisions.defer("reasoning").annotate(
        beginning=Left("reasoning", REASONING),
        traded=counted(Trade.objects.filter(decision=OuterRef("pk")), "decision"),
        refused=counted(refused.filter(~Q(reason="")), "call__decision"),
    )


def _largest(positions: Sequence[Holding], pnl: Decimal) -> Largest | None:
    largest = max(positions, key=lambda each: abs(each.pnl), default=None)
    if largest is None or not largest.pnl:
        return None
    return Largest(largest, largest.pnl / pnl if pnl else None)
