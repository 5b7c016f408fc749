"""The trading leaderboard, portfolio values over time, and the latest decisions."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.models import Decision
from arena_site.pages.charts.lines import Sparkline, sparkline
from arena_site.pages.charts.portfolio_values import performance_chart
from arena_site.pages.citations import citation
from arena_site.pages.freshness import next_decision_run, past_sundays, paused_since, requested_instant
from arena_site.pages.headlines import trading_headline
from arena_site.pages.selection import PageSelection, all_or_one
from scoring.competition import AgentSummary, CompetitionIndex, competition_index
from scoring.constants import ALL_METHODOLOGIES, FORECAST, TRADING
from scoring.leaderboard_entries import leaderboard_entries
from scoring.models import Leaderboard
from scoring.performance import RANGES, performances

LATEST_DECISIONS = 10
RANGE_LABELS = dict(zip(RANGES, ("10 min", "1 hour", "1 day", "1 week", "1 month", "3 months", "All"), strict=True))


@require_safe
def trading(request: HttpRequest) -> HttpResponse:
    """The ranking by return, values over time, and the latest decisions."""
    now = timezone.now()
    as_of = requested_instant(request, now)
    computed = dict(Leaderboard.objects.filter(protocol=TRADING).values_list("methodology", "computed_at"))
    versions = sorted(filter(None, computed))
    forecast_categories = Leaderboard.objects.filter(protocol=FORECAST).exclude(category="")
    categories = sorted(forecast_categories.values_list("category", flat=True).distinct())
    selection = PageSelection.from_request(
        request,
        {
            "methodology": [ALL_METHODOLOGIES, *versions],
            "category": ["", *categories],
            "range": sorted(RANGES, key="ALL".__ne__),
        },
    ).with_text("as_of", request.GET.get("as_of", ""))
    at = as_of or now
    competition = competition_index()
    families, methodology = competition.by_slug, competition.methodology
    entries = leaderboard_entries(
        TRADING, methodology=selection["methodology"], category=selection["category"], at=as_of
    )
    agents = [
        agent
        for agent in competition.agents
        if not agent.family.external and selection["methodology"] in ("", agent.cohort.methodology.version)
    ]
    span = RANGES[selection["range"]]
    values = performances(agents, spans={None, span}, at=at)
    whole = values[None]
    sparklines = _sparklines(whole.families, methodology.starting_balance)
    computed_at = as_of or computed.get(selection["methodology"])
    headline = trading_headline(entries, at=computed_at or now)
    return render(
        request,
        "trading.html",
        {
            "selection": selection,
            "as_of": as_of,
            "computed_at": computed_at,
            "headline": headline,
            "citation": citation(request, selection, "trading leaderboard", headline, computed_at),
            "rows": [
                {"entry": e, "family": families[e["family"]], "sparkline": sparklines.get(e["family"])} for e in entries
            ],
            "choices": [families[entry["family"]] for entry in entries],
            "has_external": any(entry["external"] for entry in entries),
            "most_cohorts": max((entry["cohorts"] for entry in entries), default=0),
            "filters": selection.filter_links(
                [
                    ("Methodology", "methodology", all_or_one("all versions", versions, minimum=2)),
                    ("Category", "category", all_or_one("all", categories)),
                    ("As of", "as_of", {"": "now", **past_sundays(competition, computed_at or now)}),
                ]
            ),
            "ranges": selection.links("range", RANGE_LABELS),
            "chart": performance_chart(values[span], families, methodology.starting_balance),
            "methodology": methodology,
            "cohorts": sum(cohort.started_at <= at for cohort in competition.cohorts.values()),
            "decisions": _latest_decisions(as_of, competition),
            "next_run": next_decision_run(now),
            "newest_snapshot": whole.as_of,
            "paused_since": None if as_of else paused_since(competition, now),
        },
    )


def _latest_decisions(at: datetime | None, competition: CompetitionIndex) -> list[tuple[Any, AgentSummary]]:
    """The latest completed decisions, up to an instant if one is given, each with its agent."""
    completed = Decision.objects.filter(status=Decision.Status.COMPLETED)
    if at is not None:
        completed = completed.filter(decided_at__lte=at)
    columns = ("pk", "agent", "week", "status", "action", "fallback", "reasoning", "decided_at")
    latest = completed.order_by("-decided_at", "-pk").values_list(*columns, named=True)[:LATEST_DECISIONS]
    agents = {agent.pk: agent for agent in competition.agents}
    return [(decision, agents[decision.agent]) for decision in latest if decision.agent in agents]


def _sparklines(values: Mapping[str, Sequence[Decimal | None]], baseline: Decimal) -> dict[str, Sparkline | None]:
    """A sparkline for each family, all on one scale."""
    shown = [baseline, *(value for curve in values.values() for value in curve if value is not None)]
    low, high = float(min(shown)), float(max(shown))
    return {slug: sparkline(curve, baseline, low, high) for slug, curve in values.items()}
