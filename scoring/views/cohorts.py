"""Cohorts, the agents that play in them, and what a family did in all of them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.models import Agent, Decision, Family, ModelCall, Position
from cohorts.models import Cohort, MissedWeek
from scoring.models import Leaderboard
from scoring.services.boards import ALL_METHODOLOGIES, TRADING
from scoring.valuations import NO_RECORD, Record, Valuation, records, valuations
from scoring.views.curves import agent_curves
from scoring.views.holdings import holdings


@dataclass(frozen=True, slots=True)
class Standing:
    """An agent with its worth and its record; `rank` is among those it stands with."""

    agent: Agent
    worth: Valuation
    record: Record
    rank: int = 0


def standings(agents: Iterable[Agent]) -> list[Standing]:
    """The agents (family and the cohort's methodology loaded) by value; equal values share a rank."""
    agents = list(agents)
    worth = valuations(agents)
    scores = records([agent.pk for agent in agents])
    ordered = sorted(agents, key=lambda agent: (-worth[agent.pk].pnl_percent, agent.family_id))
    return [
        Standing(
            agent,
            worth[agent.pk],
            scores.get(agent.pk, NO_RECORD),
            1 + sum(worth[other.pk].pnl_percent > worth[agent.pk].pnl_percent for other in ordered),
        )
        for agent in ordered
    ]


@require_safe
def cohorts(request: HttpRequest) -> HttpResponse:
    """Every cohort with its state and who leads in it, and the weeks that were missed."""
    now = timezone.now()
    by_cohort: dict[int, list[Agent]] = defaultdict(list)
    agents = list(Agent.objects.select_related("family", "cohort__methodology"))
    worth = valuations(agents)
    for agent in agents:
        by_cohort[agent.cohort_id].append(agent)
    rows = []
    for cohort in Cohort.objects.select_related("methodology"):
        played = by_cohort[cohort.pk]
        leader = max(played, key=lambda agent: worth[agent.pk].pnl_percent, default=None)
        rows.append(
            {
                "cohort": cohort,
                "week": cohort.decision_week(now),
                "agents": len(played),
                "leader": leader,
                "worth": worth[leader.pk] if leader else None,
            }
        )
    return render(request, "scoring/cohorts.html", {"rows": rows, "missed": MissedWeek.objects.all()})


@require_safe
def cohort(request: HttpRequest, number: int) -> HttpResponse:
    """One cohort: its agents by value, their curves, and every decision by week."""
    cohort = get_object_or_404(Cohort.objects.select_related("methodology"), number=number)
    agents = list(cohort.agents.select_related("family", "cohort__methodology"))
    ranked = standings(agents)
    by_agent: dict[int, dict[int, Decision]] = defaultdict(dict)
    for decision in Decision.objects.filter(cohort=cohort).with_costs():
        by_agent[decision.agent_id][decision.week] = decision
    weeks = range(1, cohort.methodology.decision_weeks + 1)
    curves = agent_curves(agents)
    return render(
        request,
        "scoring/cohort.html",
        {
            "cohort": cohort,
            "standings": ranked,
            "weeks": weeks,
            "week_now": cohort.decision_week(timezone.now()),
            "grid": [
                {"agent": row.agent, "decisions": [by_agent[row.agent.pk].get(week) for week in weeks]}
                for row in ranked
            ],
            "curves": curves,
            "chart": curves.chart(cohort.methodology.starting_balance),
        },
    )


@require_safe
def agent(request: HttpRequest, number: int, slug: str) -> HttpResponse:
    """One family in one cohort: its value, its positions and its decisions."""
    agent = get_object_or_404(
        Agent.objects.select_related("family", "release", "cohort__methodology"),
        cohort__number=number,
        family__slug=slug,
    )
    positions = (
        Position.objects.filter(agent=agent)
        .select_related("market", "outcome", "settlement")
        .order_by("opened_at", "pk")
    )
    held, past = holdings(positions)
    decisions = list(Decision.objects.filter(agent=agent).with_costs().order_by("week"))
    curves = agent_curves([agent])
    return render(
        request,
        "scoring/agent.html",
        {
            "agent": agent,
            "family": agent.family,
            "cohort": agent.cohort,
            "standing": standings([agent])[0],
            "held": held,
            "past": past,
            "largest": max((*held, *past), key=lambda held: abs(held.pnl), default=None),
            "decisions": decisions,
            "cost_usd": _cost(decisions),
            "curves": curves,
            "chart": curves.chart(agent.cohort.methodology.starting_balance, height=220),
        },
    )


@require_safe
def family(request: HttpRequest, slug: str) -> HttpResponse:
    """One family: its line on the board, its result in each cohort, and the releases behind it."""
    family = get_object_or_404(Family, slug=slug)
    agents = Agent.objects.filter(family=family).select_related("family", "cohort__methodology")
    played = sorted(standings(agents), key=lambda row: row.agent.cohort.number, reverse=True)
    costs = ModelCall.objects.filter(decision__agent__family=family).order_by().values("decision__agent")
    return render(
        request,
        "scoring/family.html",
        {
            "family": family,
            "entry": _entry(slug),
            "standings": played,
            "costs": {row["decision__agent"]: row["cost"] for row in costs.annotate(cost=Sum("cost_usd"))},
            "releases": family.releases.all(),
        },
    )


def _entry(slug: str) -> dict[str, Any] | None:
    board = Leaderboard.objects.filter(protocol=TRADING, methodology=ALL_METHODOLOGIES).first()
    return next((entry for entry in (board.entries if board else []) if entry["family"] == slug), None)


def _cost(decisions: Sequence[Any]) -> Any:
    """The sum of what decisions cost; None where nothing was called."""
    costs = [decision.cost_usd for decision in decisions if decision.cost_usd is not None]
    return sum(costs) if costs else None
