"""The list of cohorts, and a cohort with its agents, their curves and every decision by week."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from operator import attrgetter
from typing import Any, NamedTuple

from django.core.paginator import Paginator
from django.db.models import Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from agents.letters import published
from agents.models import Agent, Decision, ModelCall, Trade
from arena_site.pages.agent_ranking import AGENT_COLUMNS, rank_agents
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.portfolios import values_figure
from arena_site.pages.filters import decision_badge, money, page_url
from arena_site.pages.freshness import current_pause, weeks_over
from arena_site.pages.lists import PER_PAGE
from arena_site.pages.selection import PageSelection
from cohorts.models import Cohort, MissedWeek
from cohorts.weeks import WEEK, week_start
from foundation.clock import present
from markets.models import Universe
from scoring.selectors.competition import AgentSummary, attach_competition, competition_index
from scoring.selectors.performance import RANGES
from scoring.selectors.valuations import valuations

RANGE_LABELS = dict(zip(RANGES, ("10 min", "1 hour", "1 day", "1 week", "1 month", "3 months", "All"), strict=True))
MISSED = decision_badge(Decision(status=Decision.Status.MISSED))
"""The badge of a week that nobody ran: it has no decision."""


class CohortRow(NamedTuple):
    """A cohort in the list: its decision week, its leader with the return, the mean return, and its open positions."""

    cohort: Cohort
    week: int
    agents: int
    leader: AgentSummary | None
    leader_return: Decimal | None
    mean_return: Decimal | None
    open_positions: int
    awaiting: int


@require_safe
def cohorts(request: HttpRequest) -> HttpResponse:
    """Cohorts with their status and leader, the newest first, and the missed weeks."""
    now = present()
    by_cohort: dict[int, list[AgentSummary]] = defaultdict(list)
    competition = competition_index()
    newest_first = list(competition.cohorts.values())[::-1]
    page = Paginator(newest_first, PER_PAGE).get_page(request.GET.get("page"))
    cash = dict(Agent.objects.filter(cohort__in=list(page)).order_by().values_list("pk", "cash"))
    agents = [replace(agent, cash=cash[agent.pk]) for agent in competition.agents if agent.pk in cash]
    worth = valuations(agents, awaiting=True)
    for agent in agents:
        by_cohort[agent.cohort.pk].append(agent)
    rows = []
    for cohort in page:
        members = by_cohort[cohort.pk]
        values, ranked, returns = [], [], []
        for agent in members:
            values.append(worth[agent.pk])
            if not agent.family.external:
                ranked.append(agent)
                returns.append(worth[agent.pk].pnl_percent)
        rows.append(
            CohortRow(
                cohort,
                week=cohort.decision_week(now),
                agents=len(members),
                leader=ranked[returns.index(max(returns))] if returns else None,
                leader_return=max(returns, default=None),
                mean_return=sum(returns, Decimal(0)) / len(returns) if returns else None,
                open_positions=sum(map(attrgetter("open_positions"), values)),
                awaiting=sum(map(attrgetter("awaiting"), values)),
            )
        )
    context = {
        "rows": rows,
        "page": page,
        "missed": MissedWeek.objects.all(),
        "next_start": week_start(now) + WEEK,
        "pause": current_pause(competition.cohorts.values(), now),
    }
    return render(request, "cohorts.html", context)


@require_safe
def cohort(request: HttpRequest, number: int) -> HttpResponse:
    """One cohort: its agents by value, their curves, and every decision by week."""
    cohort, agents = _cohort_and_agents(number)
    selection = _range_selection(request)
    ranked = rank_agents(agents, awaiting=True)
    by_agent: dict[int, dict[int, tuple[str, str]]] = defaultdict(dict)
    decisions = _decisions(cohort)
    for decision in decisions:
        by_agent[decision.agent][decision.week] = (page_url("decision", decision.pk), decision_badge(decision))
    now = present()
    over = weeks_over(cohort, now)
    bankrupt = {agent.pk for agent in agents if agent.status == Agent.Status.BANKRUPT}  # and no longer asked
    for agent in agents:
        if agent.pk not in bankrupt:
            for week in range(1, over + 1):
                by_agent[agent.pk].setdefault(week, ("", MISSED))
    weeks = range(1, cohort.methodology.decision_weeks + 1)
    costs = _costs(cohort)
    universes = _universes(cohort)
    return TemplateResponse(
        request,
        "cohort.html",
        {
            "cohort": cohort,
            "rows": [(row, costs.get(row.agent.pk, 0)) for row in ranked],
            "weeks": [(week, universes.get(week)) for week in weeks],
            "current_week": cohort.decision_week(now),
            "pause": current_pause([cohort], now),
            "grid": [(row.agent.family, list(map(by_agent[row.agent.pk].get, weeks))) for row in ranked],
            "decision_count": len(decisions),
            "cost": sum(costs.values(), Decimal(0)),
            "trade_count": Trade.objects.filter(agent__cohort=cohort).count(),
            "held": sum(map(attrgetter("worth.open_positions"), ranked)),
            "awaiting": sum(map(attrgetter("worth.awaiting"), ranked)),
            "newest_link": max(
                filter(attrgetter("link__sequence"), decisions), key=attrgetter("link__sequence"), default=None
            ),
            "figure": _figure(cohort, agents, selection),
            "selection": selection,
            "ranges": selection.links("range", RANGE_LABELS),
        },
    )


def _cohort_and_agents(number: int) -> tuple[Cohort, list[Agent]]:
    """The cohort with its agents. Raises Http404 if there is none."""
    competition = competition_index()
    cohort = competition.cohort(number)
    if cohort is None:
        raise Http404(f"there is no cohort {number}")
    return cohort, attach_competition(cohort.agents.only(*AGENT_COLUMNS), competition)


def _range_selection(request: HttpRequest) -> PageSelection:
    return PageSelection.from_request(request, {"range": sorted(RANGES, key="ALL".__ne__)})


def _figure(cohort: Cohort, agents: list[Agent], selection: PageSelection) -> Figure | None:
    """The values of the cohort's agents over time."""

    def title(newest: Sequence[tuple[Agent, Decimal]]) -> str:
        (leader, value), *_ = newest
        return f"{leader.family.display_name} has the largest portfolio of cohort {cohort.number}: {money(value)}."

    span = RANGES[selection["range"]]
    return values_figure(agents, name="values", title=title, span=span, query=selection.suffix)


def _decisions(cohort: Cohort) -> list[Any]:
    """The cohort's decisions with their links of the hash chain."""
    columns = ("pk", "agent", "week", "status", "action", "fallback", "link__sequence", "link__sha256")
    return list(Decision.objects.filter(cohort=cohort).order_by().values_list(*columns, named=True))


def _costs(cohort: Cohort) -> dict[int, Decimal]:
    """The cost of each agent's published calls."""
    calls = published(ModelCall.objects.filter(decision__cohort=cohort)).order_by().values_list("decision__agent")
    return {agent: cost or Decimal(0) for agent, cost in calls.annotate(Sum("cost_usd"))}


def _universes(cohort: Cohort) -> dict[int, int]:
    """The id of each decision week's universe."""
    universes = Universe.objects.filter(
        methodology=cohort.methodology.version,
        week_start__gte=cohort.week_start,
        week_start__lt=cohort.decisions_end_at,
    )
    return {cohort.decision_week(start): pk for pk, start in universes.order_by().values_list("pk", "week_start")}
