"""Cohorts: which there are, and one with its agents, its curves, and every decision by week."""

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from django.db.models import Count, QuerySet, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.models import Agent, ChainLink, Decision, ModelCall, Position, Trade
from cohorts.models import Cohort, MissedWeek
from cohorts.weeks import WEEK, week_start
from markets.models import Market, Universe
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
    agents = with_company(Agent.objects.all())
    worth = valuations(agents)
    for agent in agents:
        by_cohort[agent.cohort_id].append(agent)
    held = _held(Position.objects.open())
    rows = []
    for cohort in reversed(list(roster().cohorts.values())):
        played = by_cohort[cohort.pk]
        ranked = [agent for agent in played if not agent.family.external]
        leader = max(ranked, key=lambda agent: worth[agent.pk].pnl_percent, default=None)
        values = [worth[agent.pk].pnl_percent for agent in ranked]
        rows.append(
            {
                "cohort": cohort,
                "week": cohort.decision_week(now),
                "agents": len(played),
                "leader": leader,
                "worth": worth[leader.pk] if leader else None,
                "mean": sum(values) / len(values) if values else None,
                "held": sum(held.get(agent.pk, (0, 0))[0] for agent in played),
                "awaiting": sum(held.get(agent.pk, (0, 0))[1] for agent in played),
            }
        )
    context = {"rows": rows, "missed": MissedWeek.objects.all(), "next_start": week_start(now) + WEEK}
    return render(request, "scoring/cohorts.html", context)


@require_safe
def cohort(request: HttpRequest, number: int) -> HttpResponse:
    """One cohort: its agents by value, their curves, and every decision by week."""
    cohort = roster().cohort(number)
    if cohort is None:
        raise Http404(f"there is no cohort {number}")
    agents = with_company(cohort.agents.all())
    ranked = standings(agents)
    by_agent: dict[int, dict[int, Decision]] = defaultdict(dict)
    shown = ("agent", "week", "status", "action", "fallback")
    for decision in Decision.objects.filter(cohort=cohort).only(*shown):
        by_agent[decision.agent_id][decision.week] = decision
    weeks = range(1, cohort.methodology.decision_weeks + 1)
    costs = _costs(cohort)
    held = _held(Position.objects.open().filter(agent__in=[agent.pk for agent in agents]))
    universes = _universes(cohort)
    curves = agent_curves(agents)
    return render(
        request,
        "scoring/cohort.html",
        {
            "cohort": cohort,
            "rows": [
                {"standing": row, "cost": costs.get(row.agent.pk, NOTHING), "held": held.get(row.agent.pk, (0, 0))}
                for row in ranked
            ],
            "weeks": [(week, universes.get(week)) for week in weeks],
            "week_now": cohort.decision_week(timezone.now()),
            "grid": [
                {"agent": row.agent, "decisions": [by_agent[row.agent.pk].get(week) for week in weeks]}
                for row in ranked
            ],
            "made": sum(len(made) for made in by_agent.values()),
            "cost": sum(costs.values(), NOTHING),
            "trades": Trade.objects.filter(agent__cohort=cohort).count(),
            "held": sum(open_ for open_, _ in held.values()),
            "awaiting": sum(awaiting for _, awaiting in held.values()),
            "link": ChainLink.objects.filter(decision__cohort=cohort).order_by("-sequence").first(),
            "curves": curves,
            "chart": curves.chart(cohort.methodology.starting_balance),
        },
    )


def _held(positions: QuerySet[Position]) -> dict[int, tuple[int, int]]:
    """How many positions each agent holds, and how many of these await their market's resolution."""
    counted = positions.order_by().values_list("agent").annotate(number=Count("pk"))
    # By themselves: joined, the market of every position would be looked up.
    closed = Market.objects.filter(status=Market.Status.CLOSED, followed=True)
    awaiting: dict[int, int] = dict(counted.filter(market__in=closed.values("pk")))
    return {agent: (number, awaiting.get(agent, 0)) for agent, number in counted}


def _costs(cohort: Cohort) -> dict[int, Any]:
    """What each agent's calls cost, by agent."""
    calls = ModelCall.objects.filter(decision__cohort=cohort).order_by().values_list("decision__agent")
    return dict(calls.annotate(cost=Sum("cost_usd")))


def _universes(cohort: Cohort) -> dict[int, Universe]:
    """The universe of each decision week, as far as there are such."""
    last = cohort.deciding_ends_at
    found: Iterable[Universe] = Universe.objects.filter(
        methodology=cohort.methodology.version, week_start__gte=cohort.week_start, week_start__lt=last
    ).defer("market_block")
    return {cohort.decision_week(universe.week_start): universe for universe in found}
