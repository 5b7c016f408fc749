"""One family in one cohort: what it is worth, what it holds and held, what it decided, and every trade."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.core.paginator import Paginator
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents.models import Agent, Decision, Instruction, ModelCall, Trade
from markets.fields import instant, stored_unit
from scoring.roster import Player, Roster, roster, with_company
from scoring.valuations import NO_RECORD, ZERO, Valuation, records
from scoring.views.curves import agent_curves
from scoring.views.holdings import STATES, Holding, fate_of_side, holdings, listed

SHOWN = 40
"""Positions of each kind that the page shows unless all are asked for."""
TRADES_PER_PAGE = 50
TRADE = (
    *("market_id", "outcome_id", "decision_id", "kind", "shares", "price", "amount"),
    *("implied_confidence", "realized_pnl", "market__question", "market__status", "market__winning_outcome"),
    *("outcome__side", "decision__week", "brier_score__score"),
)
"""What the page shows of a trade."""
REASONING = 400
"""Characters of a decision's reasoning that are read for a list."""


@dataclass(frozen=True, slots=True)
class Largest:
    """The position that brought or cost the most, and which part of the agent's profit or loss that is."""

    holding: Holding
    share: Decimal | None


class Decided(NamedTuple):
    """A decision with what it cost, traded and had refused; of the reasoning the beginning."""

    pk: int
    week: int
    status: str
    action: str | None
    fallback: bool
    beginning: str
    decided_at: datetime | None
    tokens_input: int
    tokens_output: int
    cost_usd: Decimal
    traded: int
    refused: int


@require_safe
def agent(request: HttpRequest, number: int, slug: str) -> HttpResponse:
    """One family in one cohort: its value, its positions by state and its decisions by week."""
    known = roster()
    found = Agent.objects.only("family", "cohort", "model_id", "status", "cash").get(pk=_player(known, number, slug).pk)
    (agent,) = with_company([found], known)
    balance = agent.cohort.methodology.starting_balance
    held, past = holdings(listed(agent))
    states = Counter(each.fate for each in (*held, *past))
    worth = Valuation(agent.cash, sum((each.value for each in held if each.value is not None), ZERO), balance)
    decisions = _decisions(agent)
    shown = None if "all" in request.GET else SHOWN
    curves = agent_curves([agent])
    return render(
        request,
        "scoring/agent.html",
        {
            "agent": agent,
            "family": agent.family,
            "cohort": agent.cohort,
            "worth": worth,
            "record": records([agent.pk]).get(agent.pk, NO_RECORD),
            "held": held[:shown],
            "past": past[:shown],
            "hidden": 0 if shown is None else max(0, len(held) - shown) + max(0, len(past) - shown),
            "states": [(name, states[name]) for name in STATES if states[name]],
            "largest": _largest([*held, *past], worth.pnl),
            "realized": sum((each.position.realized_pnl for each in (*held, *past)), Decimal(0)),
            "unrealized": sum((each.unrealized for each in held if each.unrealized is not None), Decimal(0)),
            "decisions": decisions,
            "cost_usd": sum((decision.cost_usd for decision in decisions), Decimal(0)),
            "tokens_input": sum(decision.tokens_input for decision in decisions),
            "tokens_output": sum(decision.tokens_output for decision in decisions),
            "curves": curves,
            "chart": curves.chart(balance, height=260),
        },
    )


@require_safe
def trades(request: HttpRequest, number: int, slug: str) -> HttpResponse:
    """Every trade of an agent, newest first, with its price, its decision and what it scored."""
    player = _player(roster(), number, slug)
    made = Trade.objects.filter(agent=player.pk).order_by("-executed_at", "-pk")
    page = Paginator(made, TRADES_PER_PAGE).get_page(request.GET.get("page"))
    shown: Any = page.object_list  # joined only now: counted are trades alone
    return render(
        request,
        "scoring/trades.html",
        {
            "agent": player,
            "family": player.family,
            "cohort": player.cohort,
            "record": records([player.pk]).get(player.pk, NO_RECORD),
            "page": page,
            "rows": [
                (trade, fate_of_side(trade.market__status, won=trade.market__winning_outcome == trade.outcome_id))
                for trade in shown.values_list(*TRADE, named=True)
            ],
        },
    )


def _player(known: Roster, number: int, slug: str) -> Player:
    """The family's agent in the cohort. Raises Http404 where there is none."""
    for player in known.players:
        if player.cohort.number == number and player.family.slug == slug:
            return player
    raise Http404("No Agent matches the given query.")


def _decisions(agent: Agent) -> list[Decided]:
    """The agent's decisions by week. By hand: the ORM takes longer to write five subqueries than they take to run."""
    decision, call, trade, instruction = (m._meta.db_table for m in (Decision, ModelCall, Trade, Instruction))
    sql = (
        f"SELECT {decision}.id, week, status, action, fallback, SUBSTR(reasoning, 1, {REASONING}), "  # noqa: S608
        "decided_at, COALESCE(SUM(tokens_input), 0), COALESCE(SUM(tokens_output), 0), COALESCE(SUM(cost_usd), 0), "
        f"(SELECT COUNT(*) FROM {trade} WHERE decision_id = {decision}.id), "
        f"(SELECT COUNT(*) FROM {instruction} JOIN {call} asked ON asked.id = call_id "
        f"WHERE asked.decision_id = {decision}.id AND NOT executed) "
        f"FROM {decision} LEFT JOIN {call} ON {call}.decision_id = {decision}.id "
        f"WHERE agent_id = %s GROUP BY {decision}.id ORDER BY week"
    )
    unit = stored_unit(ModelCall, "cost_usd")
    with connection.cursor() as cursor:
        cursor.execute(sql, [agent.pk])
        rows = cursor.fetchall()
    return [Decided._make((*row[:6], instant(row[6]), *row[7:9], row[9] * unit, *row[10:])) for row in rows]


def _largest(positions: Sequence[Holding], pnl: Decimal) -> Largest | None:
    largest = max(positions, key=lambda each: abs(each.pnl), default=None)
    if largest is None or not largest.pnl:
        return None
    return Largest(largest, largest.pnl / pnl if pnl else None)
