"""Families: who competes, and one with its releases, results, calibration and cost under both protocols."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.models import Agent, Decision, Elicitation, Family, Forecast, ModelCall, Release
from cohorts.forecasting import BLIND, PRICED
from markets.fields import instant, stored_unit
from markets.models import Question
from scoring.charts import reliability_chart
from scoring.models import ForecastScore
from scoring.overall import overall, reliability
from scoring.roster import roster, with_company
from scoring.services.boards import TRADING
from scoring.services.forecast_boards import FORECAST
from scoring.views.curves import family_curves
from scoring.views.standings import standings

ARMS = {PRICED: "with the market’s prices", BLIND: "without prices"}
LATEST = 10
"""Decisions and forecasts that the page shows."""
NEWEST_SHEETS = 6
SHOWN_OF_AGENT = ("family", "cohort", "release", "model_id", "status", "cash")
SHOWN_OF_DECISION = ("pk", "cohort__number", "week", "status", "action", "fallback", "decided_at")


class Spent(NamedTuple):
    """What was completed, and what it took."""

    tasks: int
    requests: int
    tokens_in: int
    tokens_out: int
    cost: Decimal
    stated: int
    """How many requests' cost the gateway named."""


NOTHING = Spent(0, 0, 0, 0, Decimal(0), 0)


class Latest(NamedTuple):
    """A forecast with its question and, once it is scored, its score."""

    pk: int
    arm: str
    made_at: datetime | None
    question: str
    brier: float | None


@require_safe
def families(request: HttpRequest) -> HttpResponse:
    """Every family with its present release and its place under both protocols."""
    known = roster()
    boards = overall()
    trading, forecast = (boards[key].entries if key in boards else {} for key in ((TRADING, ""), (FORECAST, PRICED)))
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
    agents = with_company(Agent.objects.filter(family=family).only(*SHOWN_OF_AGENT), known)
    played = sorted(standings(agents), key=lambda row: row.agent.cohort.number, reverse=True)
    spent, on_forecasts = _spent(family)
    boards = overall(("words_and_bets",), reliability(slug))
    board = boards.get((TRADING, ""))
    said = {arm: boards[FORECAST, arm] for arm in ARMS if (FORECAST, arm) in boards}
    curves = family_curves(player for player in known.players if player.family == family)
    words = (PRICED in said and said[PRICED].parts[0]) or ()
    return render(
        request,
        "scoring/family.html",
        {
            "family": family,
            "board": board,
            "entry": board.entries.get(slug) if board else None,
            "forecasts": [
                {"arm": arm, "label": ARMS[arm], "entry": entry}
                for arm, of_arm in said.items()
                if (entry := of_arm.entries.get(slug)) and entry["n"]
            ],
            "diagrams": [
                (arm, reliability_chart(ARMS[arm], family.color, of_arm.parts[1]))
                for arm, of_arm in said.items()
                if of_arm.parts[1]
            ],
            "words": next((row for row in words if row["family"] == slug and row["bets"]), None),
            "rows": [(row, spent[row.agent.pk]) for row in played],
            "releases": _releases(family, agents),
            "spending": _spending(spent.values(), on_forecasts),
            "curves": curves,
            "chart": curves.chart(agents[0].cohort.methodology.starting_balance, height=300) if agents else None,
            "decisions": Decision.objects.filter(agent__family=family, status=Decision.Status.COMPLETED)
            .order_by("-decided_at", "-pk")
            .values_list(*SHOWN_OF_DECISION, named=True)[:LATEST],
            "latest": _latest_forecasts(family),
            "others": [each for each in known.families.values() if each != family and not each.external],
        },
    )


def _spent(family: Family) -> tuple[dict[int, Spent], Spent]:
    """What the calls of each of its agents took, by the agent's id, and what those for its forecasts did.

    In one statement, of columns that an index holds: the rows are prompts and answers. Tasks are counted by themselves,
    as with distinct ones among the sums SQLite takes ten times as long; and by agent, of which an index knows.
    """
    agent, decision, elicitation, call = (m._meta.db_table for m in (Agent, Decision, Elicitation, ModelCall))
    completed = f"status = '{Decision.Status.COMPLETED.value}'"
    sums = (
        "COALESCE(SUM(tokens_input), 0), COALESCE(SUM(tokens_output), 0), COALESCE(SUM(cost_usd), 0), "
        "COUNT(*) FILTER (WHERE cost_stated)"
    )
    sql = (
        f"SELECT {agent}.id, (SELECT COUNT(*) FROM {decision} WHERE agent_id = {agent}.id AND {completed}), "  # noqa: S608
        f"COUNT({call}.decision_id), {sums} FROM {agent} LEFT JOIN {decision} ON agent_id = {agent}.id "
        f"LEFT JOIN {call} ON decision_id = {decision}.id WHERE family_id = %s GROUP BY {agent}.id "
        f"UNION ALL SELECT NULL, (SELECT COUNT(*) FROM {elicitation} WHERE family_id = %s AND {completed}), "
        f"COUNT(*), {sums} FROM {elicitation} JOIN {call} ON elicitation_id = {elicitation}.id WHERE family_id = %s"
    )
    unit = stored_unit(ModelCall, "cost_usd")
    with connection.cursor() as cursor:
        cursor.execute(sql, [family.pk, family.pk, family.pk])
        found = {row[0]: Spent._make((*row[1:5], row[5] * unit, row[6])) for row in cursor.fetchall()}
    return found, found.pop(None)


def _spending(bets: Iterable[Spent], forecasts: Spent) -> list[dict[str, Any]]:
    """What each protocol took: tasks, requests, tokens and cost."""
    trading = Spent._make(sum(column) for column in zip(NOTHING, *bets, strict=True))
    return [
        {"protocol": name, "mean": spent.cost / spent.tasks if spent.tasks else None, "spent": spent}
        for name, spent in (("Trading", trading), ("Forecast", forecasts))
        if spent.requests
    ]


def _latest_forecasts(family: Family) -> list[Latest]:
    """The latest of the family's newest sheets; all it ever stated would have to be sorted to find them otherwise."""
    forecast, elicitation, question, score = (
        model._meta.db_table for model in (Forecast, Elicitation, Question, ForecastScore)
    )
    sheets = (
        f"SELECT id FROM {elicitation} WHERE family_id = %s AND status = '{Elicitation.Status.COMPLETED.value}' "  # noqa: S608
        f"ORDER BY id DESC LIMIT {NEWEST_SHEETS}"
    )
    # By what no index holds: a planner that finds one in this order goes through everybody's, newest first.
    newest = (
        f"SELECT id FROM {forecast} WHERE elicitation_id IN ({sheets}) "  # noqa: S608
        f"ORDER BY COALESCE(made_at, made_at) DESC, id DESC LIMIT {LATEST}"
    )
    sql = (
        f"SELECT {forecast}.id, arm, made_at, text, {score}.brier FROM {forecast} "  # noqa: S608
        f"JOIN {question} ON {question}.id = question_id LEFT JOIN {score} ON forecast_id = {forecast}.id "
        f"WHERE {forecast}.id IN ({newest}) ORDER BY made_at DESC, {forecast}.id DESC"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [family.pk])
        return [Latest(pk, arm, instant(at), text, brier) for pk, arm, at, text, brier in cursor.fetchall()]


def _releases(family: Family, agents: Iterable[Agent]) -> list[dict[str, Any]]:
    """The releases, the newest first, each with the cohorts that froze it in and its prices for a million tokens."""
    cohorts: dict[int | None, list[int]] = {}
    for agent in sorted(agents, key=lambda agent: agent.cohort.number):
        cohorts.setdefault(agent.release_id, []).append(agent.cohort.number)
    million = 1_000_000
    shown = ("pk", "model_id", "display_name", "effective_from", "price_prompt", "price_completion")
    return [
        {
            "release": release,
            "cohorts": cohorts.get(release.pk, []),
            "prompt": release.price_prompt * million,
            "completion": release.price_completion * million,
        }
        for release in family.releases.order_by("-effective_from", "-pk").values_list(*shown, named=True)
    ]
