"""Cohorts: which there are, and one with its agents, its curves, and every decision by week."""

from collections import defaultdict
from decimal import Decimal
from operator import attrgetter
from typing import Any

from django.db.models import Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.models import Agent, Decision, ModelCall, Trade
from cohorts.models import Cohort, MissedWeek
from cohorts.weeks import WEEK, week_start
from markets.models import Universe
from scoring.roster import roster, with_company
from scoring.valuations import valuations
from scoring.views.curves import agent_curves
from scoring.views.standings import standings

NOTHING = Decimal(0)


@require_safe
def cohorts(request: HttpRequest) -> HttpResponse:
    """Every cohort with its state and who leads in it, and the weeks that were missed."""
    now = timezone.now()
    by_cohort: dict[int, list[Agent]] = defaultdict(list)
    known = roster()
    agents = with_company(Agent.objects.all(), known)
    worth = valuations(agents, awaiting=True)
    for agent in agents:
        by_cohort[agent.cohort_id].append(agent)
    rows = []
    for cohort in reversed(list(known.cohorts.values())):
        played = by_cohort[cohort.pk]
        ranked = [agent for agent in played if not agent.family.external]
        values = [worth[agent.pk].pnl_percent for agent in ranked]
        leader = ranked[values.index(max(values))] if values else None
        rows.append(
            {
                "cohort": cohort,
                "week": cohort.decision_week(now),
                "agents": len(played),
                "leader": leader,
                "worth": worth[leader.pk] if leader else None,
                "mean": sum(values) / len(values) if values else None,
                "held": sum(worth[agent.pk].open_positions for agent in played),
                "awaiting": sum(worth[agent.pk].awaiting for agent in played),
            }
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
    agents = with_company(cohort.agents.all(), known)
    ranked = standings(agents, awaiting=True)
    by_agent: dict[int, dict[int, Any]] = defaultdict(dict)
    decisions = _decisions(cohort)
    for decision in decisions:
        by_agent[decision.agent][decision.week] = decision
    linked = [decision for decision in decisions if decision.link__sequence is not None]
    weeks = range(1, cohort.methodology.decision_weeks + 1)
    costs = _costs(cohort)
    universes = _universes(cohort)
    curves = agent_curves(agents)
    return render(
        request,
        "scoring/cohort.html",
        {
            "cohort": cohort,
            "rows": [{"standing": row, "cost": costs.get(row.agent.pk, NOTHING)} for row in ranked],
            "weeks": [(week, universes.get(week)) for week in weeks],
            "week_now": cohort.decision_week(timezone.now()),
            "grid": [
                {"agent": row.agent, "decisions": [by_agent[row.agent.pk].get(week) for week in weeks]}
                for row in ranked
            ],
            "made": len(decisions),
            "cost": sum(costs.values(), NOTHING),
            "trades": Trade.objects.filter(agent__cohort=cohort).count(),
            "held": sum(row.worth.open_positions for row in ranked),
            "awaiting": sum(row.worth.awaiting for row in ranked),
            "newest": max(linked, key=attrgetter("link__sequence"), default=None),
            "curves": curves,
            "chart": curves.chart(cohort.methodology.starting_balance),
        },
    )


def _decisions(cohort: Cohort) -> list[Any]:
    """What the grid shows of each decision, and its link of the chain."""
    shown = ("pk", "agent", "week", "status", "action", "fallback", "link__sequence", "link__sha256")
    return list(Decision.objects.filter(cohort=cohort).order_by().values_list(*shown, named=True))


def _costs(cohort: Cohort) -> dict[int, Any]:
    """What each agent's calls cost, by agent."""
    calls = ModelCall.objects.filter(decision__cohort=cohort).order_by().values_list("decision__agent")
    return dict(calls.annotate(cost=Sum("cost_usd")))


def _universes(cohort: Cohort) -> dict[int, int]:
    """The universe's id of each decision week, as far as there are such."""
    found = Universe.objects.filter(
        methodology=cohort.methodology.version,
        week_start__gte=cohort.week_start,
        week_start__lt=cohort.deciding_ends_at,
    )
    return {cohort.decision_week(start): pk for pk, start in found.order_by().values_list("pk", "week_start")}
