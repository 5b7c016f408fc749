"""The front page: the leaderboards of both protocols, and portfolio values over time."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.models import Chain, Decision, Family
from arena_site.pages.charts.lines import Sparkline, sparkline
from arena_site.pages.charts.portfolio_values import performance_chart
from arena_site.pages.selection import PageSelection, all_or_one
from cohorts.models import Cohort
from cohorts.weeks import WEEK, week_start
from markets.foundation.rest.filters import InstantField, InvalidValue
from scoring.competition import AgentSummary, CompetitionIndex, competition_index
from scoring.constants import ALL_METHODOLOGIES, REFERENCES, TRADING
from scoring.leaderboard_entries import entries_of_both_protocols
from scoring.models import Leaderboard
from scoring.performance import RANGES, performances

DECISIONS_AFTER = timedelta(minutes=5)
"""Time of a week's decision run after the week's start."""
LATEST_DECISIONS = 10
RANGE_LABELS = dict(zip(RANGES, ("10 min", "1 hour", "1 day", "1 week", "1 month", "3 months", "All"), strict=True))
PAST_SUNDAYS = 8
"""Dates of past boards that the page links to."""
STALE_AFTER = timedelta(minutes=30)
"""Three missed snapshots."""
BOARD_COLUMNS = ("protocol", "methodology", "category", "computed_at")
SHOWN_REFERENCES = REFERENCES[:3]


class Leader(NamedTuple):
    """The first of a leaderboard; `rivals` counts the others whose rank range includes the first rank."""

    entry: Mapping[str, Any]
    family: Family | None
    rivals: int


def leader_of(entries: Sequence[Mapping[str, Any]], families: Mapping[str, Family]) -> Leader | None:
    """The leader among the ranked families; references and external agents are not ranked."""
    ranked = [e for e in entries if not e["external"] and not e.get("reference") and e["rank"] is not None]
    if not ranked:
        return None
    first = min(ranked, key=lambda entry: entry["rank"])
    rivals = sum(entry["rank_low"] in (1, None) for entry in ranked if entry is not first)
    return Leader(first, families.get(first["family"]), rivals)


def next_decision_run(at: datetime) -> datetime:
    """The first scheduled decision run after `at`."""
    this_week = week_start(at) + DECISIONS_AFTER
    return this_week if at < this_week else this_week + WEEK


@require_safe
def leaderboard(request: HttpRequest) -> HttpResponse:
    """The rankings under both protocols, values over time, and the latest decisions."""
    now = timezone.now()
    boards = list(Leaderboard.objects.order_by("category").values_list(*BOARD_COLUMNS))
    trading_boards = {
        version: computed_at for protocol, version, _, computed_at in reversed(boards) if protocol == TRADING
    }
    versions = sorted(filter(None, trading_boards))
    categories = sorted({category for _, _, category, _ in boards if category})
    as_of = _as_of(request.GET.get("as_of", ""), now)
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
    trading, forecast = entries_of_both_protocols(selection["methodology"], selection["category"], as_of)
    agents = [
        agent
        for agent in competition.agents
        if not agent.family.external and selection["methodology"] in ("", agent.cohort.methodology.version)
    ]
    span = RANGES[selection["range"]]
    values = performances(agents, spans={None, span}, at=at)
    whole = values[None]
    cohorts = competition.cohorts.values()
    first = min((cohort.week_start for cohort in cohorts), default=None)
    active = any(cohort.status == Cohort.Status.ACTIVE for cohort in cohorts)
    sparklines = _sparklines(whole.families, methodology.starting_balance)
    return render(
        request,
        "leaderboard.html",
        {
            "selection": selection,
            "as_of": as_of,
            "computed_at": trading_boards.get(selection["methodology"]),
            "rows": [
                {"entry": e, "family": families[e["family"]], "sparkline": sparklines.get(e["family"])} for e in trading
            ],
            "forecast_rows": [
                {"entry": entry, "family": families.get(entry["family"])}
                for entry in forecast
                if not entry["reference"] or entry["forecaster"] in SHOWN_REFERENCES
            ],
            "forecasts_scored": any(entry["n"] for entry in forecast),
            "choices": [families[entry["family"]] for entry in trading],
            "trading_leader": leader_of(trading, families),
            "forecast_leader": leader_of([e for e in forecast if e["brier"] is not None], families),
            "market": next((entry for entry in forecast if entry["forecaster"] == SHOWN_REFERENCES[0]), None),
            "has_external": any(entry["external"] for entry in [*trading, *forecast]),
            "most_cohorts": max((entry["cohorts"] for entry in trading), default=0),
            "filters": selection.filter_links(
                [
                    ("Methodology", "methodology", all_or_one("all versions", versions, minimum=2)),
                    ("Category", "category", all_or_one("all", categories)),
                    ("As of", "as_of", {"": "today", **_past_sundays(first, whole.as_of, now)}),
                ]
            ),
            "ranges": selection.links("range", RANGE_LABELS),
            "chart": performance_chart(values[span], families, methodology.starting_balance),
            "methodology": methodology,
            "cohorts": sum(cohort.started_at <= at for cohort in cohorts),
            "decisions": _latest_decisions(as_of, competition),
            "next_run": next_decision_run(now),
            "now": now,
            "newest_snapshot": whole.as_of,
            "stale": bool(active and as_of is None and whole.as_of is not None and now - whole.as_of > STALE_AFTER),
            "chains": list(Chain.objects.filter(length__gt=0)),
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


def _as_of(text: str, now: datetime) -> datetime | None:
    """The instant of the boards. Raises Http404 for one that can not be read or lies in the future."""
    try:
        at = InstantField(required=False).clean(text)
    except InvalidValue as error:
        raise Http404(f"as_of: {error}") from error
    if at is not None and at > now:
        raise Http404("as_of: the instant lies in the future")
    return at


def _past_sundays(first: datetime | None, newest: datetime | None, now: datetime) -> dict[str, str]:
    """The last Sundays since the first cohort, newest first: labels by date."""
    if first is None or newest is None:
        return {}
    last = week_start(min(newest, now)).astimezone(UTC)
    sundays = [last - week * WEEK for week in range(PAST_SUNDAYS)]
    return {f"{day:%Y-%m-%d}": f"{day.day} {day:%b}" for day in sundays if day > first}


def _sparklines(values: Mapping[str, Sequence[Decimal | None]], baseline: Decimal) -> dict[str, Sparkline | None]:
    """A sparkline for each family, all on one scale."""
    shown = [baseline, *(value for curve in values.values() for value in curve if value is not None)]
    low, high = float(min(shown)), float(max(shown))
    return {slug: sparkline(curve, baseline, low, high) for slug, curve in values.items()}
