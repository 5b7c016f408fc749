"""The list of model families, and a family with its results under both protocols, its releases and its cost."""

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from django.core.paginator import Paginator
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.models import Agent, Decision, Elicitation, Family, Forecast, ModelCall
from agents.models.family import parameter_support
from arena_site.pages.agent_ranking import rank_agents
from arena_site.pages.charts.calibration import reliability_figure
from arena_site.pages.charts.diagrams import reliability_diagram
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.portfolios import returns_figure
from arena_site.pages.lists import PER_PAGE
from arena_site.pages.selection import ARMS
from markets.foundation.raw_sql import stored_unit
from markets.prompt_conditions import PRICED
from scoring.cohort_returns import cohort_returns
from scoring.competition import CompetitionIndex, attach_competition, competition_index
from scoring.constants import FORECAST, TRADING
from scoring.leaderboard_entries import StoredLeaderboard, overall_leaderboards, reliability_path

LATEST = 10
"""Decisions and forecasts that the page lists."""
NEWEST_BATCHES = 6
AGENT_COLUMNS = ("family", "cohort", "release", "model_id", "status", "cash")
DECISION_COLUMNS = ("pk", "cohort__number", "week", "status", "action", "fallback", "decided_at")
FORECAST_COLUMNS = ("pk", "arm", "made_at", "question__text", "score__brier")


class CallUsage(NamedTuple):
    """Completed tasks, and the usage of all calls for them.

    `stated_costs` counts the calls whose cost the gateway named; `booked` is the part of the cost that nothing has
    confirmed yet.
    """

    tasks: int
    requests: int
    tokens_input: int
    tokens_output: int
    cost: Decimal
    stated_costs: int
    booked: Decimal


NO_USAGE = CallUsage(0, 0, 0, 0, Decimal(0), 0, Decimal(0))


@require_safe
def families(request: HttpRequest) -> HttpResponse:
    """Every family with its current release and its rank under both protocols."""
    competition = competition_index()
    stored = overall_leaderboards()
    trading, forecast = (stored[key].entries if key in stored else {} for key in ((TRADING, ""), (FORECAST, PRICED)))
    cohorts = Counter(agent.family.pk for agent in competition.agents)
    released: Any = Family.objects.with_release(timezone.now())
    releases = {family.pk: family.release for family in released}
    rows = [
        {
            "family": family,
            "release": releases.get(family.pk),
            "cohorts": cohorts[family.pk],
            "trading": trading.get(family.slug),
            "forecast": forecast.get(family.slug),
        }
        for family in competition.families.values()
    ]
    return render(request, "families.html", {"rows": rows})


@require_safe
def family(request: HttpRequest, slug: str) -> HttpResponse:
    """A family: its entry on each leaderboard, its result in each cohort, and its releases."""
    competition = competition_index()
    family = competition.by_slug.get(slug)
    if family is None:
        if named := Family.objects.named(slug):
            return redirect("family", named.slug)
        raise Http404(f"there is no family {slug}")
    agents = attach_competition(Agent.objects.filter(family=family).only(*AGENT_COLUMNS), competition)
    newest_first = sorted(agents, key=lambda agent: agent.cohort.number, reverse=True)
    page = Paginator(newest_first, PER_PAGE).get_page(request.GET.get("page"))
    results = sorted(rank_agents(page), key=lambda row: row.agent.cohort.number, reverse=True)
    spending, forecast_spending = _spending(family)
    leaderboards = overall_leaderboards(("forecasts_and_trades",), reliability_path(slug))
    leaderboard = leaderboards.get((TRADING, ""))
    forecast_leaderboards = {arm: leaderboards[FORECAST, arm] for arm in ARMS if (FORECAST, arm) in leaderboards}
    forecasts_and_trades = (PRICED in forecast_leaderboards and forecast_leaderboards[PRICED].parts[0]) or ()
    return render(
        request,
        "family.html",
        {
            "family": family,
            "leaderboard": leaderboard,
            "entry": leaderboard.entries.get(slug) if leaderboard else None,
            "forecasts": [
                {"arm": arm, "label": ARMS[arm], "entry": entry}
                for arm, forecast_leaderboard in forecast_leaderboards.items()
                if (entry := forecast_leaderboard.entries.get(slug)) and entry["n"]
            ],
            "returns": _returns_figure(family, competition),
            "calibration": _calibration_figure(family, forecast_leaderboards),
            "forecasts_and_trades": next(
                (row for row in forecasts_and_trades if row["family"] == slug and row["bets"]), None
            ),
            "page": page,
            "rows": [(row, spending.get(row.agent.pk, NO_USAGE)) for row in results],
            "releases": _releases(family, agents),
            "spending": _spending_by_protocol(spending.values(), forecast_spending),
            "decisions": Decision.objects.filter(agent__family=family, status=Decision.Status.COMPLETED)
            .order_by("-decided_at", "-pk")
            .values_list(*DECISION_COLUMNS, named=True)[:LATEST],
            "latest_forecasts": _latest_forecasts(family),
            "others": [each for each in competition.families.values() if each != family and not each.external],
        },
    )


def family_figures(request: HttpRequest, slug: str) -> list[Figure]:
    """The charts of the family's page."""
    competition = competition_index()
    family = competition.by_slug.get(slug)
    if family is None:
        raise Http404(f"there is no family {slug}")
    leaderboards = overall_leaderboards(("forecasts_and_trades",), reliability_path(slug))
    by_arm = {arm: leaderboards[FORECAST, arm] for arm in ARMS if (FORECAST, arm) in leaderboards}
    return list(filter(None, [_returns_figure(family, competition), _calibration_figure(family, by_arm)]))


def _returns_figure(family: Family, competition: CompetitionIndex) -> Figure | None:
    """The family's returns by weeks since a cohort's start."""
    agents = [agent for agent in competition.agents if agent.family == family]
    title = f"Mean return of {family.display_name} in the weeks after a cohort starts."
    returns = cohort_returns(agents, at=timezone.now())
    return returns_figure(returns, agents, {family.slug: family}, title, height=340)


def _calibration_figure(family: Family, leaderboards: Mapping[str, StoredLeaderboard]) -> Figure | None:
    """The family's reliability diagram in each arm."""
    shown = {arm: leaderboard for arm, leaderboard in leaderboards.items() if leaderboard.parts[1]}
    diagrams = [reliability_diagram(ARMS[arm], board.parts[1], family) for arm, board in shown.items()]
    at = max(filter(None, (leaderboard.computed_at for leaderboard in shown.values())), default=None)
    return reliability_figure(diagrams, who=family.display_name, at=at)


def _spending(family: Family) -> tuple[dict[int, CallUsage], CallUsage]:
    """The spending on decisions of each of the family's agents, by id, and its spending on forecasts.

    Hand-written SQL, of columns that indexes hold: 1.0 ms, by the ORM 5.4. Tasks are counted by themselves, since
    SQLite takes ten times as long for distinct ones among the sums.
    """
    agent, decision, elicitation, call = (m._meta.db_table for m in (Agent, Decision, Elicitation, ModelCall))
    completed = f"status = '{Decision.Status.COMPLETED.value}'"
    sums = (
        "COALESCE(SUM(tokens_input), 0), COALESCE(SUM(tokens_output), 0), COALESCE(SUM(cost_usd), 0), "
        f"COUNT(*) FILTER (WHERE cost_source = '{ModelCall.CostSource.STATED.value}'), "
        f"COALESCE(SUM(cost_usd) FILTER (WHERE cost_source = '{ModelCall.CostSource.BOOKED.value}'), 0)"
    )
    sql = (
        f"SELECT {agent}.id, (SELECT COUNT(*) FROM {decision} WHERE agent_id = {agent}.id AND {completed}), "  # noqa: S608 - our own names
        f"COUNT({call}.decision_id), {sums} FROM {agent} LEFT JOIN {decision} ON agent_id = {agent}.id "
        f"LEFT JOIN {call} ON decision_id = {decision}.id WHERE family_id = %s GROUP BY {agent}.id "
        f"UNION ALL SELECT NULL, (SELECT COUNT(*) FROM {elicitation} WHERE family_id = %s AND {completed}), "
        f"COUNT(*), {sums} FROM {elicitation} JOIN {call} ON elicitation_id = {elicitation}.id WHERE family_id = %s"
    )
    unit = stored_unit(ModelCall, "cost_usd")
    with connection.cursor() as cursor:
        cursor.execute(sql, [family.pk, family.pk, family.pk])
        usage = {
            row[0]: CallUsage._make((*row[1:5], row[5] * unit, row[6], row[7] * unit)) for row in cursor.fetchall()
        }
    return usage, usage.pop(None)


def _spending_by_protocol(trading: Iterable[CallUsage], forecasts: CallUsage) -> list[dict[str, Any]]:
    """The spending under each protocol, with the mean cost of a completed task."""
    total = CallUsage._make(sum(column) for column in zip(NO_USAGE, *trading, strict=True))
    return [
        {"protocol": name, "mean": spending.cost / spending.tasks if spending.tasks else None, "total": spending}
        for name, spending in (("Trading", total), ("Forecast", forecasts))
        if spending.requests
    ]


def _latest_forecasts(family: Family) -> list[Any]:
    """The latest forecasts of the family's newest batches: sorting all its forecasts would take longer.

    Sorted here: for rows in the order of their times PostgreSQL would read every later forecast of all families.
    """
    completed = Elicitation.objects.filter(family=family, status=Elicitation.Status.COMPLETED)
    batches = list(completed.order_by("-pk").values_list("pk", flat=True)[:NEWEST_BATCHES])
    found = Forecast.objects.filter(elicitation__in=batches).order_by().values_list("made_at", "pk")
    latest = [pk for _, pk in sorted(found, reverse=True)[:LATEST]]
    rows = Forecast.objects.filter(pk__in=latest).order_by("-made_at", "-pk")
    return list(rows.values_list(*FORECAST_COLUMNS, named=True))


def _releases(family: Family, agents: Iterable[Agent]) -> list[dict[str, Any]]:
    """The releases, newest first, with the cohorts that froze them and the prices for a million tokens."""
    cohorts: dict[int | None, list[int]] = {}
    for agent in sorted(agents, key=lambda agent: agent.cohort.number):
        cohorts.setdefault(agent.release_id, []).append(agent.cohort.number)
    million = 1_000_000
    columns = (
        *("pk", "model_id", "display_name", "effective_from", "price_prompt", "price_completion"),
        "supported_parameters",
    )
    return [
        {
            "release": release,
            "cohorts": cohorts.get(release.pk, []),
            "support": parameter_support(release.supported_parameters),
            "prompt": release.price_prompt * million,
            "completion": release.price_completion * million,
        }
        for release in family.releases.order_by("-effective_from", "-pk").values_list(*columns, named=True)
    ]
