"""One family in one cohort: its portfolio, its positions, its decisions, and every trade."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from operator import attrgetter
from typing import Any, NamedTuple

from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from agents.letters import sealed_tasks
from agents.models import Agent, Decision, Instruction, ModelCall, Trade
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.portfolios import values_figure
from arena_site.pages.decision_trades import trades_by_decision
from arena_site.pages.filters import money, signed_percent
from arena_site.pages.freshness import weeks_over
from arena_site.pages.lists import ListColumn, ListPage
from arena_site.pages.positions import PositionRow, count_states, positions_of, side_result
from foundation.bulk import rows_by
from foundation.clock import present
from foundation.raw_sql import parse_timestamp, stored_unit
from scoring.selectors.after_costs import stored_after_costs
from scoring.selectors.competition import AgentSummary, CompetitionIndex, attach_competition, competition_index
from scoring.selectors.valuations import NO_RECORD, ZERO, Valuation, bet_records

POSITIONS_SHOWN = 6
"""Open and past positions that the page shows without `?all`."""
TRADE_COLUMNS = (
    *("market_id", "outcome_id", "decision_id", "kind", "shares", "price", "amount"),
    *("implied_confidence", "realized_pnl", "market__question", "market__status", "market__winning_outcome"),
    *("outcome__side", "decision__week", "brier_score__score"),
)
LIST_COLUMNS = (
    ListColumn("Market", "market", "market__question"),
    ListColumn("Trade", "trade", "kind"),
    ListColumn("Week", "week", "executed_at", descending=True),
    ListColumn("Shares", "shares", "shares", descending=True, number=True),
    ListColumn("Price", "price", "price", number=True),
    ListColumn("Amount", "amount", "amount", descending=True, number=True),
    ListColumn("Implied confidence", "confidence", "implied_confidence", descending=True, number=True),
    ListColumn("Realized P/L", "profit", "realized_pnl", descending=True, number=True),
    ListColumn("Outcome"),
    ListColumn("Bet-sizing score", "score", "brier_score__score", number=True),
)
REASONING_LENGTH = 400
"""Characters of a decision's reasoning that are read for the list of decisions."""


class DecisionRow(NamedTuple):
    """Columns of a decision, the sums over its calls, and the numbers of its trades and of rejected instructions."""

    pk: int
    week: int
    status: str
    action: str
    fallback: bool
    excerpt: str
    decided_at: datetime | None
    tokens_input: int
    tokens_output: int
    cost_usd: Decimal
    trades_count: int
    rejected_count: int


class LargestPosition(NamedTuple):
    """The position with the largest profit or loss, its share of the agent's, and the agent's return without it.

    The share is None for an agent without profit or loss.
    """

    position: PositionRow
    share: Decimal | None
    return_without: Decimal


@require_safe
def agent(request: HttpRequest, number: int, slug: str) -> HttpResponse:
    """An agent: its value, its positions by state and its decisions by week."""
    competition = competition_index()
    agent = _loaded_agent(competition, number, slug)
    balance = agent.cohort.methodology.starting_balance
    current, past = positions_of(agent)
    positions = [*current, *past]
    worth = Valuation(agent.cash, sum((position.value for position in current if position.value), ZERO), balance)
    decisions = _decisions(agent)
    limit = None if "all" in request.GET else POSITIONS_SHOWN
    return TemplateResponse(
        request,
        "agent.html",
        {
            "agent": agent,
            "family": agent.family,
            "cohort": agent.cohort,
            "worth": worth,
            "record": bet_records([agent]).get(agent.pk, NO_RECORD),
            "held": current[:limit],
            "past": past[:limit],
            "hidden": sum(max(0, len(rows) - limit) for rows in (current, past)) if limit else 0,
            "states": count_states(positions),
            "costed": stored_after_costs().get(agent.pk),
            "largest": _largest(positions, worth),
            "realized": sum(map(attrgetter("realized_pnl"), positions), ZERO),
            "unrealized": sum((position.unrealized_pnl or ZERO for position in current), ZERO),
            "decisions": _weeks(agent, decisions),
            "trades": trades_by_decision(filter(attrgetter("trades_count"), decisions)),
            "cost_usd": sum(map(attrgetter("cost_usd"), decisions), ZERO),
            "tokens_input": sum(map(attrgetter("tokens_input"), decisions)),
            "tokens_output": sum(map(attrgetter("tokens_output"), decisions)),
            "figure": _figure(agent),
        },
    )


def _loaded_agent(competition: CompetitionIndex, number: int, slug: str) -> Agent:
    """The agent with its family, cohort and methodology. Raises Http404 if there is none."""
    agents = Agent.objects.filter(pk=_agent(competition, number, slug).pk)
    columns = ("family", "cohort", "model_id", "status", "cash")
    (agent,) = attach_competition(agents.only(*columns), competition)
    return agent


def _figure(agent: Agent) -> Figure | None:
    """The agent's value over time."""

    def title(newest: Sequence[tuple[Agent, Decimal]]) -> str:
        ((_, value),) = newest
        gain = (value / agent.cohort.methodology.starting_balance - 1) * 100
        name = agent.family.display_name
        worth = f"{money(value)}, a return of {signed_percent(gain)}"
        return f"{name}’s portfolio in cohort {agent.cohort.number} is worth {worth}."

    return values_figure([agent], name="value", title=title, height=320)


@require_safe
def trades(request: HttpRequest, number: int, slug: str) -> HttpResponse:
    """The trades of an agent with their scores, the newest first unless they are sorted."""
    agent = _agent(competition_index(), number, slug)
    listing = ListPage(request, LIST_COLUMNS, "-week")
    page = listing.page(Trade.objects.filter(agent=agent.pk))
    trades: Any = page.object_list  # joins other tables only now: the count needs none
    rows = []
    for trade in trades.values_list(*TRADE_COLUMNS, named=True):
        won = trade.market__winning_outcome == trade.outcome_id
        rows.append((trade, side_result(trade.market__status, won=won)))
    return render(
        request,
        "trades.html",
        {
            "agent": agent,
            "family": agent.family,
            "cohort": agent.cohort,
            "record": bet_records([agent]).get(agent.pk, NO_RECORD),
            "page": page,
            "listing": listing,
            "rows": rows,
        },
    )


def _agent(competition: CompetitionIndex, number: int, slug: str) -> AgentSummary:
    """The family's agent in the cohort. Raises Http404 if there is none."""
    for agent in competition.agents:
        if agent.cohort.number == number and agent.family.slug == slug:
            return agent
    raise Http404(f"cohort {number} has no agent of {slug}")


def _weeks(agent: Agent, decisions: Sequence[DecisionRow]) -> list[tuple[int, DecisionRow | None]]:
    """The weeks that are over or decided, each with its decision: none if it was missed, and none if bankrupt."""
    by_week = rows_by("week", decisions)
    over = weeks_over(agent.cohort, present()) if agent.status != Agent.Status.BANKRUPT else 0
    return [(week, by_week.get(week)) for week in sorted(by_week.keys() | set(range(1, over + 1)))]


def _decisions(agent: Agent) -> list[DecisionRow]:
    """The agent's published decisions by week.

    SQL takes 0.5 ms; the ORM, which first has to write the statement, takes 4.8.
    """
    decision, call = Decision._meta.db_table, ModelCall._meta.db_table
    trade, instruction = Trade._meta.db_table, Instruction._meta.db_table
    sealed = ", ".join(map(str, sealed_tasks(Decision).filter(agent=agent.pk).values_list("pk", flat=True)))
    sql = (
        f"SELECT {decision}.id, week, status, action, fallback, SUBSTR(reasoning, 1, {REASONING_LENGTH}), "  # noqa: S608 - our own names
        "decided_at, COALESCE(SUM(tokens_input), 0), COALESCE(SUM(tokens_output), 0), COALESCE(SUM(cost_usd), 0), "
        f"(SELECT COUNT(*) FROM {trade} WHERE decision_id = {decision}.id), "
        f"(SELECT COUNT(*) FROM {instruction} JOIN {call} asked ON asked.id = call_id "
        f"WHERE asked.decision_id = {decision}.id AND NOT executed) "
        f"FROM {decision} LEFT JOIN {call} ON {call}.decision_id = {decision}.id "
        f"WHERE agent_id = %s AND {decision}.id NOT IN ({sealed or 0}) GROUP BY {decision}.id ORDER BY week"
    )
    unit = stored_unit(ModelCall, "cost_usd")
    decisions = []
    with connection.cursor() as cursor:
        cursor.execute(sql, [agent.pk])
        for values in cursor.fetchall():
            row = DecisionRow._make(values)
            decided_at = parse_timestamp(row.decided_at)
            decisions.append(row._replace(decided_at=decided_at, cost_usd=row.cost_usd * unit))
    return decisions


def _largest(positions: Sequence[PositionRow], worth: Valuation) -> LargestPosition | None:
    largest = max(positions, key=lambda position: abs(position.pnl), default=None)
    if largest is None or not largest.pnl:
        return None
    pnl = worth.pnl
    without = (pnl - largest.pnl) / worth.starting_balance * 100
    return LargestPosition(largest, largest.pnl / pnl if pnl else None, without)
