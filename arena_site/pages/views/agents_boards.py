"""The board of external agents, and the page of each agent, which compares its versions."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.models import AgentVersion, Family
from arena_site.pages.board_figures import agents_figure
from arena_site.pages.board_order import AGENT_COLUMNS, BoardOrder, named_pairs
from arena_site.pages.charts.curves import ChartEvent, Curve, family_curve
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.lines import line_chart
from arena_site.pages.charts.markers import REFERENCE_COLORS, marker_of
from arena_site.pages.citations import citation
from arena_site.pages.freshness import instants, requested_instant
from arena_site.pages.headlines import agents_headline
from arena_site.pages.selection import PageSelection
from scoring.constants import (
    AGENT_PERIODS,
    FORECAST,
    LEAST_DECISIONS,
    LEAST_QUESTIONS,
    MARKET,
    TRACKS,
    TRADING,
)
from scoring.selectors.agent_versions import ScoredAnswer, running_scores, scored_answers, version_records
from scoring.selectors.competition import competition_index
from scoring.selectors.leaderboard_entries import read_agents_board

PROTOCOLS = {FORECAST: "forecasts", TRADING: "trading"}
PERIODS = dict(zip(AGENT_PERIODS, ("all", "last 3 months", "last month"), strict=True))
CURVE_NOTE = (
    "Mean over the questions that have resolved, by the time of the answer. Dashed: the market on the same ones."
)


@require_safe
def agents_board(request: HttpRequest) -> HttpResponse:
    """The ranking of the external agents of a track, with models and baselines beside them."""
    order = BoardOrder.from_request(request, AGENT_COLUMNS)
    now = timezone.now()
    as_of = requested_instant(request, now)
    choices = {"protocol": list(PROTOCOLS), "track": TRACKS, "period": list(PERIODS)}
    selection = PageSelection.dated(request, choices)
    protocol, track, period = selection["protocol"], selection["track"], selection["period"]
    board = read_agents_board(protocol, track=track, period=period, at=as_of)
    title = f"external agents, {track} track, {PROTOCOLS[protocol]}"
    competition = competition_index()
    families = competition.by_slug
    headline = agents_headline(board, competition, at=board.computed_at or now)
    return TemplateResponse(
        request,
        "agents_board.html",
        {
            "board": board,
            "selection": selection,
            "is_forecast": board.protocol == FORECAST,
            "order": order,
            "rows": order.entry_rows(board.entries, families),
            "filters": selection.filter_links(
                [
                    ("Protocol", "protocol", PROTOCOLS),
                    ("Track", "track", dict(zip(TRACKS, TRACKS, strict=True))),
                    ("Period", "period", PERIODS),
                    ("As of", "as_of", instants(competition, board.computed_at or now, None)),
                ]
            ),
            "as_of": as_of,
            "headline": headline,
            "figure": agents_figure(board, headline, families, query=selection.suffix),
            "citation": citation(request, selection, title, headline, board.computed_at),
            "pairs": named_pairs(board.entries, board.report.get("pairs", [])),
            "least": {"questions": LEAST_QUESTIONS, "decisions": LEAST_DECISIONS},
        },
    )


@require_safe
def external_agent(request: HttpRequest, slug: str) -> HttpResponse:
    """An external agent: its place on each board, and the record of each of its versions."""
    family = _external_family(slug)
    as_of = requested_instant(request, timezone.now())
    boards, standings = {}, []
    for protocol, label in PROTOCOLS.items():
        board = boards[protocol] = read_agents_board(protocol, track=family.track, at=as_of)
        for entry in board.entries:
            if entry["forecaster"] == slug:
                standings.append({"protocol": protocol, "label": label, "board": board, "entry": entry})
    versions = _versions(family, as_of)
    answers = scored_answers(family, until=as_of)
    weeks = boards[TRADING].report.get("weeks", {}).get(slug, {})
    figure = _score_figure(family, versions, answers)
    return TemplateResponse(
        request,
        "external_agent.html",
        {
            "family": family,
            "as_of": as_of,
            "standings": standings,
            "records": version_records(versions, answers, weeks)[::-1],
            "figure": figure,
        },
    )


def _external_family(slug: str) -> Family:
    family = competition_index().by_slug[slug]
    if not family.external:
        raise Http404(f"{family.display_name} is no external agent")
    return family


def _versions(family: Family, until: datetime | None) -> list[AgentVersion]:
    versions = family.versions.order_by("number")
    return list(versions if until is None else versions.filter(began_at__lte=until))


def _score_figure(family: Family, versions: Sequence[AgentVersion], answers: Sequence[ScoredAnswer]) -> Figure | None:
    """The running Brier score beside the market's, with the beginning of each version marked."""
    running = running_scores(answers)
    if len(running) < 2:
        return None
    scores: Mapping[datetime, Any] = {at: brier for at, brier, _ in running}
    events = []
    for version in versions:
        at = next((instant for instant in scores if instant >= version.began_at), None)
        if at is not None:
            text = f"Version {version.number}"
            events.append(ChartEvent(at, scores[at], text, family.color, marker_of(family)))
    market = Curve("Market", REFERENCE_COLORS[MARKET], [market for *_, market in running], dashed=True)
    chart = line_chart(
        list(scores),
        [market, family_curve(family, list(scores.values()))],
        y_title="Mean Brier score (0 is best)",
        height=340,
        unit="score",
        events=events,
    )
    title = f"Brier score of {family.display_name} over time, its versions marked."
    return Figure("scores", title, chart, CURVE_NOTE, at=running[-1][0]) if chart else None
