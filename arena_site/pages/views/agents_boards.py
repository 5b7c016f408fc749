"""The board of external agents, and the page of each agent, which compares its versions."""

from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from agents.models import AgentVersion, Family
from arena_site.pages.board_figures import agents_figure
from arena_site.pages.board_order import AGENTS_BOARD, BoardOrder, agents_board_columns
from arena_site.pages.citations import citation
from arena_site.pages.comparison_sentences import LEAST_DATA, pair_rows
from arena_site.pages.freshness import dated, instants, requested_instant
from arena_site.pages.headlines import agents_headline
from arena_site.pages.selection import PageSelection
from foundation.clock import present
from scoring.constants import (
    FORECAST,
    LEAST_DECISIONS,
    LEAST_QUESTIONS,
    TRACKS,
    TRADING,
)
from scoring.selectors.agent_versions import scored_answers, version_records
from scoring.selectors.claims import questions_per_week
from scoring.selectors.competition import competition_index
from scoring.selectors.leaderboard_entries import read_agents_board
from scoring.selectors.published_boards import citable_instant

PROTOCOLS = {FORECAST: "forecasts", TRADING: "trading"}


@require_safe
@dated
def agents_board(request: HttpRequest) -> HttpResponse:
    """The ranking of the external agents of a track, with models and baselines beside them."""
    order = BoardOrder.from_request(request, AGENTS_BOARD)
    now = present()
    choices = {"protocol": list(PROTOCOLS), "track": TRACKS}
    selection = PageSelection.dated(request, choices)
    protocol, track = selection["protocol"], selection["track"]
    as_of = requested_instant(request, protocol, track=track)
    board = read_agents_board(protocol, track=track, at=as_of)
    title = f"external agents, {track} track, {PROTOCOLS[protocol]}"
    competition = competition_index()
    families = competition.by_slug
    headline = agents_headline(board, competition, at=board.computed_at or now)
    return TemplateResponse(
        request,
        "agents_board.html",
        {
            "board": board,
            "computed_at": board.computed_at,
            "selection": selection,
            "is_forecast": board.protocol == FORECAST,
            "order": order,
            "columns": agents_board_columns(protocol),
            "rows": order.entry_rows(board.entries, families),
            "filters": selection.filter_links(
                [
                    ("Protocol", "protocol", PROTOCOLS),
                    ("Track", "track", dict(zip(TRACKS, TRACKS, strict=True))),
                    ("As of", "as_of", instants(protocol, now, None, track=track)),
                ]
            ),
            "as_of": as_of,
            "headline": headline,
            "figure": agents_figure(board, headline, families, query=selection.suffix),
            "citation": citation(
                request, selection, title, headline, as_of or citable_instant(board.entries, protocol, track=track)
            ),
            "pairs": pair_rows(board.entries, board.report.get("pairs", []), questions_per_week(board.computed_at)),
            "least_data": LEAST_DATA,
            "least": {"questions": LEAST_QUESTIONS, "decisions": LEAST_DECISIONS},
        },
    )


@require_safe
def external_agent(request: HttpRequest, slug: str) -> HttpResponse:
    """An external agent: its place on each board, and the record of each of its versions."""
    family = _external_family(slug)
    boards, standings = {}, []
    for protocol, label in PROTOCOLS.items():
        board = boards[protocol] = read_agents_board(protocol, track=family.track)
        for entry in board.entries:
            if entry["forecaster"] == slug:
                standings.append({"protocol": protocol, "label": label, "board": board, "entry": entry})
    versions = _versions(family)
    answers = scored_answers(family)
    weeks = boards[TRADING].report.get("weeks", {}).get(slug, {})
    return TemplateResponse(
        request,
        "external_agent.html",
        {
            "family": family,
            "standings": standings,
            "records": version_records(versions, answers, weeks)[::-1],
        },
    )


def _external_family(slug: str) -> Family:
    family = competition_index().by_slug[slug]
    if not family.external:
        raise Http404(f"{family.display_name} is no external agent")
    return family


def _versions(family: Family) -> list[AgentVersion]:
    return list(family.versions.order_by("number"))
