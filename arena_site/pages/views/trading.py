"""The trading leaderboard, returns by weeks since a cohort's start, and the latest decisions."""

from datetime import datetime
from operator import attrgetter, itemgetter
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.models import Decision
from arena_site.pages.board_order import TRADING_COLUMNS, BoardOrder
from arena_site.pages.charts.after_costs import costs_figure, costs_sentence
from arena_site.pages.charts.portfolios import RETURNS_TITLE, returns_figure
from arena_site.pages.charts.sparklines import Sparkline, sparkline
from arena_site.pages.citations import citation
from arena_site.pages.decision_trades import trades_by_decision
from arena_site.pages.filters import exact_iso
from arena_site.pages.freshness import current_pause, instants, next_decision_run, requested_instant
from arena_site.pages.headlines import trading_headline
from arena_site.pages.selection import PageSelection, all_or_one
from arena_site.pages.stored_boards import stored_boards
from scoring.constants import ALL_METHODOLOGIES, FORECAST, TRADING
from scoring.models import Leaderboard
from scoring.selectors.after_costs import entries_after_costs, entries_with_books
from scoring.selectors.cohort_returns import CohortReturns, cohort_returns
from scoring.selectors.competition import AgentSummary, CompetitionIndex, competition_index
from scoring.selectors.leaderboard_entries import trading_board

LATEST_DECISIONS = 10


@require_safe
def trading(request: HttpRequest) -> HttpResponse:
    """The ranking by return, returns by weeks since a cohort's start, and the latest decisions."""
    order = BoardOrder.from_request(request, TRADING_COLUMNS)
    now = timezone.now()
    as_of = requested_instant(request, now)
    computed = dict(Leaderboard.objects.filter(protocol=TRADING).values_list("methodology", "computed_at"))
    versions, categories = sorted(filter(None, computed)), stored_boards(protocol=FORECAST).categories()
    choices = {"methodology": [ALL_METHODOLOGIES, *versions], "category": ["", *categories]}
    selection = PageSelection.dated(request, choices)
    computed_at = as_of or computed.get(selection["methodology"])
    competition = competition_index()
    pause = None if as_of else current_pause(competition.cohorts.values(), now)
    families = competition.by_slug
    entries, pairs = trading_board(methodology=selection["methodology"], category=selection["category"], at=as_of)
    counted = competition.counted_under(selection["methodology"])
    agents = [agent for agent in counted if not agent.family.external]
    returns = cohort_returns(agents, at=as_of or now)
    sparklines = _sparklines(returns)
    cohorts = competition.cohorts.values()
    headline = trading_headline(entries, pairs, cohorts, at=computed_at or now)
    latest = _latest_decisions(as_of, competition)
    costed = entries_with_books(entries_after_costs(entries, selection["methodology"], as_of))
    rows = []
    for entry in entries:
        slug = entry["family"]
        rows.append({"entry": entry, "family": families[slug], "sparkline": sparklines.get(slug)})
    return TemplateResponse(
        request,
        "trading.html",
        {
            "selection": selection,
            "as_of": as_of,
            "computed_at": computed_at,
            "headline": headline,
            "citation": citation(request, selection, "trading leaderboard", headline, computed_at),
            "order": order,
            "rows": order.sorted(rows),
            "choices": [families[entry["family"]] for entry in entries],
            "has_external": any(map(itemgetter("external"), entries)),
            "most_cohorts": max(map(itemgetter("cohorts"), entries), default=0),
            "filters": selection.filter_links(
                [
                    ("Methodology", "methodology", all_or_one("all versions", versions, minimum=2)),
                    ("Category", "category", all_or_one("all", categories)),
                    ("As of", "as_of", instants(competition, computed_at or now, pause)),
                ]
            ),
            "figure": returns_figure(
                returns,
                agents,
                families,
                RETURNS_TITLE.format(whose="each model"),
                query=selection.suffix,
                dated=selection.query(as_of=exact_iso(computed_at)) if computed_at else "",
            ),
            "costs": costs_figure(costed, families, query=selection.suffix, at=computed_at or now) if costed else None,
            "costs_sentence": costs_sentence(costed, headline.condition) if costed and headline else "",
            "without_book": sum(entry["trades_without_book"] or 0 for entry in entries),
            "methodology": competition.methodology,
            "cohorts": sum(cohort.started_at <= (as_of or now) for cohort in cohorts),
            "voided": list(filter(attrgetter("voided_at"), cohorts)),
            "decisions": latest,
            "trades": trades_by_decision(map(itemgetter(0), latest)),
            "next_run": next_decision_run(now),
            "newest_snapshot": returns.newest,
            "pause": pause,
        },
    )


def _latest_decisions(at: datetime | None, competition: CompetitionIndex) -> list[tuple[Any, AgentSummary]]:
    """The latest completed decisions, up to an instant if one is given, each with its agent."""
    completed = Decision.objects.filter(status=Decision.Status.COMPLETED)
    if at is not None:
        completed = completed.filter(decided_at__lte=at)
    columns = ("pk", "agent", "week", "status", "action", "fallback", "reasoning", "decided_at")
    latest = completed.order_by("-decided_at", "-pk").values_list(*columns, named=True)[:LATEST_DECISIONS]
    agents = competition.agents_by_id
    return [(decision, agents[decision.agent]) for decision in latest if decision.agent in agents]


def _sparklines(returns: CohortReturns) -> dict[str, Sparkline | None]:
    """A sparkline of the average change of each family by cohort age, all on one scale."""
    curves, low, high = {}, 0.0, 0.0
    for slug, means in returns.families.items():
        curve = [mean and mean.mean for mean in means]
        numbers = [value for value in curve if value is not None]
        low, high = min([low, *numbers]), max([high, *numbers])
        curves[slug] = curve
    return {slug: sparkline(curve, 0.0, low, high) for slug, curve in curves.items()}
