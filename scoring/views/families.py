"""Families: who competes, and one with its releases, results, calibration and cost under both protocols."""

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from django.db.models import Count, F, Q, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.models import Agent, Decision, Elicitation, Family, Forecast, ModelCall, Release
from cohorts.forecasting import BLIND, PRICED
from scoring.charts import reliability_chart
from scoring.models import Leaderboard
from scoring.reports import part, reliability
from scoring.roster import roster, with_company
from scoring.services.boards import ALL_METHODOLOGIES, TRADING
from scoring.views.curves import family_curves
from scoring.views.standings import standings

ARMS = {PRICED: "with the market’s prices", BLIND: "without prices"}
LATEST = 10
"""Decisions and forecasts that the page shows."""
NEWEST_SHEETS = 6


@require_safe
def families(request: HttpRequest) -> HttpResponse:
    """Every family with its present release and its place under both protocols."""
    known = roster()
    board, forecast_boards = _boards()
    trading, forecast = _entries(board), _entries(forecast_boards.get(PRICED))
    played = Counter(player.family.pk for player in known.players)
    releases: dict[int, Release] = {}
    for release in Release.objects.filter(effective_from__lte=timezone.now()).order_by("effective_from", "pk"):
        releases[release.family_id] = release
    rows = [
        {
            "family": family,
            "release": releases.get(family.pk),
            "cohorts": played[family.pk],
            "trading": trading.get(family.slug),
            "forecast": forecast.get(family.slug),
        }
        for family in known.families.values()
    ]
    return render(request, "scoring/families.html", {"rows": rows})


@require_safe
def family(request: HttpRequest, slug: str) -> HttpResponse:
    """One family: its line on each board, its result in each cohort, and the releases behind it."""
    known = roster()
    family = known.by_slug.get(slug)
    if family is None:
        raise Http404(f"there is no family {slug}")
    agents = with_company(Agent.objects.filter(family=family), known)
    played = sorted(standings(agents), key=lambda row: row.agent.cohort.number, reverse=True)
    spent = _spent_by_agent(family)
    board, forecast_boards = _boards(words=part("words_and_bets"), bins=reliability(slug))
    curves = family_curves(player for player in known.players if player.family == family)
    words = getattr(forecast_boards.get(PRICED), "words", None) or []
    return render(
        request,
        "scoring/family.html",
        {
            "family": family,
            "board": board,
            "entry": _entries(board).get(slug),
            "forecasts": [
                {"arm": arm, "label": label, "entry": entry}
                for arm, label in ARMS.items()
                if (entry := _entries(forecast_boards.get(arm)).get(slug)) and entry["n"]
            ],
            "diagrams": [
                (arm, reliability_chart(label, family.color, forecast_boards[arm].bins))
                for arm, label in ARMS.items()
                if arm in forecast_boards and forecast_boards[arm].bins
            ],
            "words": next((row for row in words if row["family"] == slug and row["bets"]), None),
            "rows": [{"standing": row, "spent": spent.get(row.agent.pk)} for row in played],
            "releases": _releases(family, agents),
            "spending": _spending(family, agents, spent.values()),
            "curves": curves,
            "chart": curves.chart(agents[0].cohort.methodology.starting_balance, height=300) if agents else None,
            "decisions": Decision.objects.filter(agent__family=family, status=Decision.Status.COMPLETED)
            .select_related("cohort")
            .only("cohort__number", "week", "status", "action", "fallback", "decided_at")
            .order_by("-decided_at", "-pk")[:LATEST],
            "latest": _latest_forecasts(family),
            "others": [each for each in known.families.values() if each != family and not each.external],
        },
    )


def _boards(**parts: Any) -> tuple[Leaderboard | None, dict[str, Any]]:
    """The trading board and the forecast boards by arm, over every methodology and category, with parts of reports."""
    trading = None
    forecast = {}
    whole = Leaderboard.objects.filter(methodology=ALL_METHODOLOGIES, category="").defer("report")
    for board in whole.annotate(**parts):
        if board.protocol == TRADING:
            trading = board
        else:
            forecast[board.arm] = board
    return trading, forecast


def _entries(board: Leaderboard | None) -> dict[str, dict[str, Any]]:
    """A board's entries by the slug of their family."""
    return {entry["family"]: entry for entry in (board.entries if board else [])}


# Of columns that an index holds: the rows are prompts and answers.
TOTALS = {
    "requests": Count("*"),
    "tokens_in": Sum("tokens_input"),
    "tokens_out": Sum("tokens_output"),
    "cost": Sum("cost_usd"),
    "stated": Count("cost_stated", filter=Q(cost_stated=True)),
}


def _spent_by_agent(family: Family) -> dict[int, dict[str, Any]]:
    """What each agent's calls took."""
    calls = ModelCall.objects.filter(decision__agent__family=family).order_by().values(agent=F("decision__agent"))
    rows: Iterable[Any] = calls.annotate(**TOTALS)
    return {row["agent"]: row for row in rows}


def _spending(family: Family, agents: Iterable[Agent], by_agent: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What each protocol took: tasks, requests, tokens and cost."""
    betting = {name: sum(row[name] or 0 for row in by_agent) for name in TOTALS}
    asked = ModelCall.objects.filter(elicitation__family=family).aggregate(**TOTALS)
    stating = {name: value or 0 for name, value in asked.items()}
    # Counted by themselves: with distinct tasks among the sums, SQLite takes ten times as long. By agent, of which an
    # index knows: asked for the family's, it goes through everybody's.
    betting["tasks"] = Decision.objects.filter(agent__in=agents, status=Decision.Status.COMPLETED).count()
    stating["tasks"] = Elicitation.objects.filter(family=family, status=Elicitation.Status.COMPLETED).count()
    return [
        {"protocol": name, "mean": row["cost"] / Decimal(row["tasks"]) if row["tasks"] else None, **row}
        for name, row in (("Trading", betting), ("Forecast", stating))
        if row["requests"]
    ]


def _latest_forecasts(family: Family) -> list[Forecast]:
    """The latest of the family's newest sheets; all it ever stated would have to be sorted to find them otherwise."""
    sheets = Elicitation.objects.filter(family=family, status=Elicitation.Status.COMPLETED).order_by("-pk")
    said = Forecast.objects.filter(elicitation__in=sheets.values("pk")[:NEWEST_SHEETS])
    # Put in order here: a planner that is asked for the newest few goes through everybody's, newest first.
    newest = sorted(said.order_by().values_list("made_at", "pk"), reverse=True)[:LATEST]
    shown = Forecast.objects.select_related("question", "score").order_by()
    rows = shown.only("arm", "made_at", "question__text", "score__brier").in_bulk([key for _, key in newest])
    return [rows[key] for _, key in newest]


def _releases(family: Family, agents: Iterable[Agent]) -> list[dict[str, Any]]:
    """The releases, the newest first, each with the cohorts that froze it in and its prices for a million tokens."""
    cohorts: dict[int | None, list[int]] = {}
    for agent in sorted(agents, key=lambda agent: agent.cohort.number):
        cohorts.setdefault(agent.release_id, []).append(agent.cohort.number)
    million = 1_000_000
    return [
        {
            "release": release,
            "cohorts": cohorts.get(release.pk, []),
            "prompt": release.price_prompt * million,
            "completion": release.price_completion * million,
        }
        for release in family.releases.order_by("-effective_from", "-pk")
    ]
