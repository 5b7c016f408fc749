"""The front page: who leads, by what, how sure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.models import Chain, Decision
from cohorts.models import Cohort
from cohorts.weeks import WEEK, week_start
from markets.rest.filters import InstantField, InvalidValue
from scoring.charts import Spark, spark
from scoring.models import Leaderboard
from scoring.performance import RANGES, performances
from scoring.roster import Player, Roster, roster
from scoring.selected import both_entries
from scoring.services.boards import ALL_METHODOLOGIES, TRADING
from scoring.services.forecast_panels import REFERENCES
from scoring.views.curves import performance_curves
from scoring.views.verdicts import verdict_of

DECISIONS_AFTER = timedelta(minutes=5)
"""How long after a week's start its decision run is scheduled."""
LATEST_DECISIONS = 10
SUNDAYS = 8
"""Past Sundays that the page links to."""
STALE_AFTER = timedelta(minutes=30)
"""Three snapshots missed."""
WHOLE = "ALL"
SHOWN_REFERENCES = REFERENCES[:3]


def next_decision_run(at: datetime) -> datetime:
    """The first scheduled decision run after `at`."""
    this_week = week_start(at) + DECISIONS_AFTER
    return this_week if at < this_week else this_week + WEEK


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which boards and which stretch of time a reader asks for; `as_of` is text as it was given."""

    methodology: str
    category: str
    as_of: str
    range: str
    at: datetime | None

    def link(self, **other: str) -> str:
        """The query of the same page with something else chosen."""
        values = {name: getattr(self, name) for name in DEFAULTS} | other
        return "?" + urlencode({name: value for name, value in values.items() if value != DEFAULTS[name]})

    @property
    def narrowed(self) -> bool:
        """Is it another board than the one on record over everything?"""
        return bool(self.methodology or self.category or self.at)


DEFAULTS = {"methodology": ALL_METHODOLOGIES, "category": "", "as_of": "", "range": WHOLE}


@require_safe
def leaderboard(request: HttpRequest) -> HttpResponse:
    """The rankings under both protocols with their uncertainty, values over time, and what was decided last."""
    now = timezone.now()
    on_record = list(
        Leaderboard.objects.order_by("category").values_list(
            "protocol", "methodology", "arm", "category", "computed_at"
        )
    )
    versions = sorted({version for protocol, version, *_ in on_record if protocol == TRADING and version})
    categories = sorted({category for _, _, _, category, _ in on_record if category})
    chosen = _chosen(request, versions, categories, now)
    at = chosen.at or now
    known = roster()
    families, methodology = known.by_slug, known.methodology
    trading, forecast = both_entries(chosen.methodology, chosen.category, chosen.at)
    agents = [
        agent
        for agent in known.players
        if not agent.family.external and chosen.methodology in ("", agent.cohort.methodology.version)
    ]
    span = RANGES[chosen.range]
    values = performances(agents, spans={None, span}, at=at)
    whole, curves = values[None], performance_curves(values[span], families)
    cohorts = known.cohorts.values()
    first = min((cohort.week_start for cohort in cohorts), default=None)
    playing = any(cohort.status == Cohort.Status.ACTIVE for cohort in cohorts)
    sparks = _sparks(whole.families, methodology.starting_balance)
    return render(
        request,
        "scoring/leaderboard.html",
        {
            "chosen": chosen,
            "computed_at": next((at for p, v, _, _, at in on_record if (p, v) == (TRADING, chosen.methodology)), None),
            "rows": [{"entry": e, "family": families[e["family"]], "spark": sparks.get(e["family"])} for e in trading],
            "forecast_rows": [
                {"entry": entry, "family": families.get(entry["family"])}
                for entry in forecast
                if not entry["reference"] or entry["forecaster"] in SHOWN_REFERENCES
            ],
            "forecasts_scored": any(entry["n"] for entry in forecast),
            "choices": [families[entry["family"]] for entry in trading],
            "trading_verdict": verdict_of(trading, families),
            "forecast_verdict": verdict_of([e for e in forecast if e["brier"] is not None], families),
            "market": next((entry for entry in forecast if entry["forecaster"] == SHOWN_REFERENCES[0]), None),
            "externals": any(entry["external"] for entry in [*trading, *forecast]),
            "most_cohorts": max((entry["cohorts"] for entry in trading), default=0),
            "filters": _filters(
                chosen,
                versions,
                categories,
                _sundays(first, whole.as_of, now),
            ),
            "ranges": [
                {"name": name, "query": chosen.link(range=name), "here": name == chosen.range} for name in RANGES
            ],
            "curves": curves,
            "chart": curves.chart(methodology.starting_balance),
            "methodology": methodology,
            "cohorts": sum(cohort.started_at <= at for cohort in cohorts),
            "decisions": _latest(chosen.at, known),
            "next_run": next_decision_run(now),
            "now": now,
            "newest_snapshot": whole.as_of,
            "stale": bool(
                playing and chosen.at is None and whole.as_of is not None and now - whole.as_of > STALE_AFTER
            ),
            "chains": list(Chain.objects.filter(length__gt=0)),
        },
    )


def _latest(at: datetime | None, known: Roster) -> list[tuple[Any, Player]]:
    """The last decisions that were completed by an instant, by now without one, each with who decided."""
    completed = Decision.objects.filter(status=Decision.Status.COMPLETED)
    if at is not None:
        completed = completed.filter(decided_at__lte=at)
    shown = ("pk", "agent", "week", "status", "action", "fallback", "reasoning", "decided_at")
    latest = completed.order_by("-decided_at", "-pk").values_list(*shown, named=True)[:LATEST_DECISIONS]
    players = {player.pk: player for player in known.players}
    return [(decision, players[decision.agent]) for decision in latest if decision.agent in players]


def _chosen(request: HttpRequest, versions: Sequence[str], categories: Sequence[str], now: datetime) -> Chosen:
    """What the address asks for. Raises Http404 for what no board is about."""
    values = {name: request.GET.get(name, default) for name, default in DEFAULTS.items()}
    known = {"methodology": ["", *versions], "category": ["", *categories], "range": list(RANGES)}
    for name, choices in known.items():
        if values[name] not in choices:
            raise Http404(f"{name}={values[name]}: there is no such board")
    try:
        at = InstantField(required=False).clean(values["as_of"])
    except InvalidValue as error:
        raise Http404(f"as_of: {error}") from error
    if at is not None and at > now:
        raise Http404("as_of: that is yet to come")
    return Chosen(**values, at=at)


def _filters(
    chosen: Chosen, versions: Sequence[str], categories: Sequence[str], sundays: Sequence[datetime]
) -> list[dict[str, Any]]:
    """Rows of links to other boards, each row with its caption."""
    days = [(f"{day:%Y-%m-%d}", f"{day.day} {day:%b}") for day in sundays]
    rows = [
        ("Rules", "methodology", [("", "all versions"), *((version, version) for version in versions)]),
        ("Category", "category", [("", "all"), *((name, name) for name in categories)]),
        ("As of", "as_of", [("", "now"), *days]),
    ]
    return [
        {
            "caption": caption,
            "name": name,
            "links": [
                {"query": chosen.link(**{name: value}), "label": label, "here": getattr(chosen, name) == value}
                for value, label in links
            ],
        }
        for caption, name, links in rows
        if len(links) > (2 if name == "methodology" else 1)
    ]


def _sundays(first: datetime | None, newest: datetime | None, now: datetime) -> list[datetime]:
    """The last Sundays at which cohorts played, newest first."""
    if first is None or newest is None:
        return []
    last = week_start(min(newest, now)).astimezone(UTC)
    return [at for at in (last - week * WEEK for week in range(SUNDAYS)) if at > first]


def _sparks(values: Mapping[str, Sequence[Decimal | None]], baseline: Decimal) -> dict[str, Spark | None]:
    """A sparkline for each family, all on one scale."""
    known = [value for curve in values.values() for value in curve if value is not None]
    if not known:
        return {}
    low, high = float(min(*known, baseline)), float(max(*known, baseline))
    return {slug: spark(curve, baseline, low=low, high=high) for slug, curve in values.items()}
