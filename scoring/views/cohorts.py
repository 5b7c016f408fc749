"""Cohorts: which there are, and one with its agents, its curves, and every decision by week."""

from collections import defaultdict
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.models import Agent, ChainLink, Decision, ModelCall, Trade
from cohorts.models import Cohort, MissedWeek
from cohorts.weeks import WEEK, week_start
from markets.fields import stored_unit
from markets.models import Universe
from scoring.roster import Player, roster, with_company
from scoring.templatetags.arena import badge, path
from scoring.valuations import valuations
from scoring.views.curves import agent_curves
from scoring.views.standings import standings

SHOWN_OF_AGENT = ("family", "cohort", "model_id", "status", "cash")


class Row(NamedTuple):
    """A cohort among the others: its decision week, who leads in it by how much, and how many positions it holds."""

    cohort: Cohort
    week: int
    agents: int
    leader: Player | None
    percent: Decimal | None
    mean: Decimal | None
    held: int
    awaiting: int


class Made(NamedTuple):
    """What an agent did, and what it cost."""

    cost: Decimal
    trades: int


@require_safe
def cohorts(request: HttpRequest) -> HttpResponse:
    """Every cohort with its state and who leads in it, and the weeks that were missed."""
    now = timezone.now()
    by_cohort: dict[int, list[Player]] = defaultdict(list)
    known = roster()
    cash = dict(Agent.objects.order_by().values_list("pk", "cash"))
    players = [replace(player, cash=cash[player.pk]) for player in known.players if player.pk in cash]
    worth = valuations(players, awaiting=True)
    for player in players:
        by_cohort[player.cohort.pk].append(player)
    rows = []
    for cohort in reversed(list(known.cohorts.values())):
        played = by_cohort[cohort.pk]
        ranked = [agent for agent in played if not agent.family.external]
        values = [worth[agent.pk].pnl_percent for agent in ranked]
        leader = ranked[values.index(max(values))] if values else None
        rows.append(
            Row(
                cohort,
                week=cohort.decision_week(now),
                agents=len(played),
                leader=leader,
                percent=max(values, default=None),
                mean=sum(values, Decimal(0)) / len(values) if values else None,
                held=sum([worth[agent.pk].open_positions for agent in played]),
                awaiting=sum([worth[agent.pk].awaiting for agent in played]),
            )
        )
    context = {"rows": rows, "missed": MissedWeek.objects.all(), "next_start": week_start(now) + WEEK}
    return render(request, "scoring/cohorts.html", context)


@require_safe
def cohort(request: HttpRequest, number: int) -> HttpResponse:
    """One cohort: its agents by value, their curves, and every decision by week."""
    known = roster()
    cohort = known.cohort(number)
    if cohort is None:
        raise Http404(f"there is no cohort {number}")
    agents = with_company(cohort.agents.only(*SHOWN_OF_AGENT), known)
    ranked = standings(agents, awaiting=True)
    by_agent: dict[int, dict[int, tuple[str, str]]] = defaultdict(dict)
    decisions = _decisions(cohort)
    for decision in decisions:
        by_agent[decision.agent][decision.week] = (path("decision", decision.pk), badge(decision))
    weeks = range(1, cohort.methodology.decision_weeks + 1)
    made_of = _made_of(cohort)
    universes = _universes(cohort)
    curves = agent_curves(agents)
    return render(
        request,
        "scoring/cohort.html",
        {
            "cohort": cohort,
            "rows": [(row, made_of[row.agent.pk].cost) for row in ranked],
            "weeks": [(week, universes.get(week)) for week in weeks],
            "week_now": cohort.decision_week(timezone.now()),
            "grid": [(row.agent.family, [by_agent[row.agent.pk].get(week) for week in weeks]) for row in ranked],
            "made": len(decisions),
            "cost": sum((each.cost for each in made_of.values()), Decimal(0)),
            "trades": sum(each.trades for each in made_of.values()),
            "held": sum(row.worth.open_positions for row in ranked),
            "awaiting": sum(row.worth.awaiting for row in ranked),
            "newest": _newest_link(cohort),
            "curves": curves,
            "chart": curves.chart(cohort.methodology.starting_balance),
        },
    )


def _decisions(cohort: Cohort) -> list[Any]:
    """What the grid shows of each decision."""
    shown = ("pk", "agent", "week", "status", "action", "fallback")
    return list(Decision.objects.filter(cohort=cohort).order_by().values_list(*shown, named=True))


def _newest_link(cohort: Cohort) -> tuple[int, str] | None:
    """The place in the chain of the cohort's newest decision, and that link's hash.

    By hand: each decision's link is looked up, where PostgreSQL would rather go through the whole chain.
    """
    link, decision = ChainLink._meta.db_table, Decision._meta.db_table
    sequence = f"(SELECT sequence FROM {link} WHERE decision_id = {decision}.id)"  # noqa: S608 - our own names
    sql = (
        f"SELECT sequence, sha256 FROM {link} WHERE protocol = %s AND sequence = "  # noqa: S608 - see above
        f"(SELECT MAX({sequence}) FROM {decision} WHERE cohort_id = %s)"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [Decision.PROTOCOL, cohort.pk])
        found: tuple[int, str] | None = cursor.fetchone()
    return found


def _made_of(cohort: Cohort) -> dict[int, Made]:
    """What each agent's calls cost and how often it traded, by agent."""
    agent, decision, call, trade = (model._meta.db_table for model in (Agent, Decision, ModelCall, Trade))
    sql = (
        f"SELECT id, (SELECT COALESCE(SUM(cost_usd), 0) FROM {decision} JOIN {call} ON decision_id = {decision}.id "  # noqa: S608
        f"WHERE agent_id = {agent}.id), (SELECT COUNT(*) FROM {trade} WHERE agent_id = {agent}.id) "
        f"FROM {agent} WHERE cohort_id = %s"
    )
    unit = stored_unit(ModelCall, "cost_usd")
    with connection.cursor() as cursor:
        cursor.execute(sql, [cohort.pk])
        return {pk: Made(cost * unit, trades) for pk, cost, trades in cursor.fetchall()}


def _universes(cohort: Cohort) -> dict[int, int]:
    """The universe's id of each decision week, as far as there are such."""
    found = Universe.objects.filter(
        methodology=cohort.methodology.version,
        week_start__gte=cohort.week_start,
        week_start__lt=cohort.deciding_ends_at,
    )
    return {cohort.decision_week(start): pk for pk, start in found.order_by().values_list("pk", "week_start")}
