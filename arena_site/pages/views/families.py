"""The list of model families, and a family with its results under both protocols, its releases and its cost."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from agents.lineup_2026 import EFFECTIVE_FROM
from agents.models import Agent, Decision, Elicitation, Family, Forecast, Task
from agents.models.family import parameter_support
from agents.services.call_usage import NO_USAGE, Usage, usage_of_family
from arena_site.pages.agent_ranking import AGENT_COLUMNS, rank_agents
from arena_site.pages.charts.calibration import reliability_figure
from arena_site.pages.charts.diagrams import reliability_diagram
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.portfolios import RETURNS_TITLE, returns_figure
from arena_site.pages.decision_trades import COLUMNS, TradeSummary
from arena_site.pages.lists import PER_PAGE
from foundation.clock import present
from scoring.constants import FORECAST, TRADING
from scoring.selectors.cohort_returns import cohort_returns
from scoring.selectors.competition import (
    AgentSummary,
    CompetitionIndex,
    attach_competition,
    competition_index,
    last_competition_index,
)
from scoring.selectors.leaderboard_entries import StoredLeaderboard, overall_leaderboards, reliability_path

LATEST = 4
"""Decisions and forecasts that the page lists."""
NEWEST_BATCHES = 6
FORECAST_COLUMNS = (
    *("pk", "arm", "made_at", "question__text", "score__brier"),
    *("samples_asked", "samples_read", "spread", "searches"),
)


class LatestDecision(NamedTuple):
    """Columns of a decision."""

    pk: int
    cohort__number: int
    week: int
    status: str
    action: str
    fallback: bool
    decided_at: datetime | None


@require_safe
def families(request: HttpRequest) -> HttpResponse:
    """Every family with its current release and its rank under both protocols."""
    competition = competition_index()
    stored = overall_leaderboards()
    trading, forecast = stored.get((TRADING, "")), stored.get((FORECAST, competition.conditions.board()))
    cohorts = Counter(agent.family.pk for agent in competition.counted)
    released: Any = Family.objects.with_release(present())
    releases = {family.pk: family.release for family in released}
    rows = []
    for family in competition.families.values():
        row = {
            "family": family,
            "release": releases.get(family.pk),
            "cohorts": cohorts[family.pk],
            "trading": trading and trading.entries.get(family.slug),
            "forecast": forecast and forecast.entries.get(family.slug),
        }
        rows.append(row)
    return render(request, "families.html", {"rows": rows})


@require_safe
def family(request: HttpRequest, slug: str) -> HttpResponse:
    """A family: its entry on each leaderboard, its result in each cohort, and its releases."""
    competition = competition_index()
    family = competition.by_slug[slug]
    agents = _agents(family, competition)
    newest_first = sorted(agents, key=lambda agent: agent.cohort.number, reverse=True)
    page = Paginator(newest_first, PER_PAGE).get_page(request.GET.get("page"))
    page_agents = Agent.objects.filter(pk__in=list(map(attrgetter("pk"), page))).only(*AGENT_COLUMNS)
    ranked = rank_agents(attach_competition(page_agents, competition))
    results = sorted(ranked, key=lambda row: row.agent.cohort.number, reverse=True)
    usage = usage_of_family(family)
    leaderboards = overall_leaderboards(("forecasts_and_trades",), reliability_path(slug))
    leaderboard = leaderboards.get((TRADING, ""))
    forecast_leaderboards = _by_arm(leaderboards, competition)
    board = forecast_leaderboards.get(competition.conditions.board())
    forecasts_and_trades = (board and board.parts[0]) or ()
    returns = _returns_figure(family, agents)
    calibration = _calibration_figure(family, forecast_leaderboards)
    forecasts = []
    for arm, forecast_leaderboard in forecast_leaderboards.items():
        entry = forecast_leaderboard.entries.get(slug)
        if entry and entry["n"]:
            forecasts.append({"arm": arm, "label": competition.conditions.label(arm), "entry": entry})
    rivals = [rival for rival in competition.ranked_families if rival != family]
    return TemplateResponse(
        request,
        "family.html",
        {
            "family": family,
            "release": competition.releases.get(family.pk),
            "leaderboard": leaderboard,
            "entry": leaderboard.entries.get(slug) if leaderboard else None,
            "forecasts": forecasts,
            "returns": returns,
            "calibration": calibration,
            "shared_figure": returns or calibration,
            "forecasts_and_trades": next(
                (row for row in forecasts_and_trades if row["family"] == slug and row["bets"]), None
            ),
            "page": page,
            "rows": [(row, usage.get(row.agent.pk, NO_USAGE)) for row in results],
            "releases": _releases(family, agents),
            "spending": _spending_by_protocol(family, usage),
            "decisions": _latest_decisions(family),
            "latest_forecasts": _latest_forecasts(family),
            "beginning": EFFECTIVE_FROM,
            "others": rivals,
        },
    )


def _by_arm(
    leaderboards: Mapping[tuple[str, str], StoredLeaderboard], competition: CompetitionIndex
) -> dict[str, StoredLeaderboard]:
    """The forecast leaderboards by arm, that of the boards first."""
    return {
        arm: leaderboards[FORECAST, arm] for arm in competition.conditions.names() if (FORECAST, arm) in leaderboards
    }


def _agents(family: Family, competition: CompetitionIndex) -> list[AgentSummary]:
    return [agent for agent in competition.agents if agent.family.pk == family.pk]


def _returns_figure(family: Family, agents: Sequence[AgentSummary]) -> Figure | None:
    """The returns of a family's agents by weeks since a cohort's start."""
    title = RETURNS_TITLE.format(whose=family.display_name)
    agents = [agent for agent in agents if agent.cohort.voided_at is None]
    returns = cohort_returns(agents, at=present())
    return returns_figure(returns, agents, {family.slug: family}, title, height=340)


def _calibration_figure(family: Family, leaderboards: Mapping[str, StoredLeaderboard]) -> Figure | None:
    """The family's reliability diagram in each arm."""
    diagrams, instants = [], []
    for arm, board in leaderboards.items():
        bins = board.parts[1]
        if bins:
            label = last_competition_index().conditions.label(arm)
            diagrams.append(reliability_diagram(label, bins, family))
            instants.append(board.computed_at)
    at = max(filter(None, instants), default=None)
    return reliability_figure(diagrams, forecasters=family.display_name, at=at)


def _spending_by_protocol(family: Family, usage: Mapping[int | None, Usage]) -> list[dict[str, Any]]:
    """The usage under each protocol with calls, with its completed tasks and the mean cost of one."""
    by_agent = [agent_usage for agent, agent_usage in usage.items() if agent is not None]
    trading = Usage._make(map(sum, zip(NO_USAGE, *by_agent, strict=True)))
    spending = []
    for protocol, tasks, total in (
        ("Trading", Decision.objects.filter(agent__family=family), trading),
        ("Forecast", Elicitation.objects.filter(family=family), usage.get(None, NO_USAGE)),
    ):
        if total.requests:
            completed = tasks.filter(status=Task.Status.COMPLETED).count()
            mean = total.cost_usd / completed if completed else None
            spending.append({"protocol": protocol, "total": total, "tasks": completed, "mean": mean})
    return spending


def _latest_decisions(family: Family) -> list[tuple[LatestDecision, list[TradeSummary]]]:
    """The latest decisions, each with its trades, the largest first: one query."""
    completed = Decision.objects.filter(agent__family=family, status=Decision.Status.COMPLETED)
    latest = completed.order_by("-decided_at", "-pk").values("pk")[:LATEST]
    rows = Decision.objects.filter(pk__in=latest).order_by("-decided_at", "-pk", "-trades__amount", "trades__sequence")
    width = len(LatestDecision._fields)
    trades: dict[LatestDecision, list[TradeSummary]] = defaultdict(list)
    for row in rows.values_list(*LatestDecision._fields, *(f"trades__{column}" for column in COLUMNS)):
        decision, trade = LatestDecision._make(row[:width]), TradeSummary._make(row[width:])
        traded = trades[decision]
        if trade.decision is not None:
            traded.append(trade)
    return list(trades.items())


def _latest_forecasts(family: Family) -> list[Any]:
    """The latest forecasts of the family's newest batches: sorting all its forecasts would take longer.

    Sorted here: for rows in the order of their times PostgreSQL would read every later forecast of all families.
    """
    completed = Elicitation.objects.filter(family=family, status=Elicitation.Status.COMPLETED)
    batches = list(completed.order_by("-pk").values_list("pk", flat=True)[:NEWEST_BATCHES])
    forecasts = Forecast.objects.filter(elicitation__in=batches).order_by().values_list("made_at", "pk")
    latest = [pk for _, pk in sorted(forecasts, reverse=True)[:LATEST]]
    rows = Forecast.objects.filter(pk__in=latest).order_by("-made_at", "-pk")
    return list(rows.values_list(*FORECAST_COLUMNS, named=True))


def _releases(family: Family, agents: Iterable[AgentSummary]) -> list[dict[str, Any]]:
    """The releases, newest first, with the cohorts that froze them and the prices for a million tokens."""
    cohorts: dict[int, list[int]] = defaultdict(list)
    for agent in agents:
        cohorts[agent.release_id].append(agent.cohort.number)
    million = 1_000_000
    columns = (
        *("pk", "model_id", "display_name", "effective_from", "price_prompt", "price_completion"),
        "supported_parameters",
    )
    rows = []
    for release in family.releases.order_by("-effective_from", "-pk").values_list(*columns, named=True):
        row = {
            "release": release,
            "cohorts": _consecutive_ranges(cohorts[release.pk]),
            "support": parameter_support(release.supported_parameters),
            "prompt": release.price_prompt * million,
            "completion": release.price_completion * million,
        }
        rows.append(row)
    return rows


def _consecutive_ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """The first and the last number of each range without a gap."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(numbers):
        first = ranges.pop()[0] if ranges and ranges[-1][1] == number - 1 else number
        ranges.append((first, number))
    return ranges
