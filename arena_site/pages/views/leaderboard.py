"""The front page: who forecasts best, how that changed, who beats the market, who earns most; the leaderboard."""

import csv
from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from arena_site.pages.board_figures import brier_figure
from arena_site.pages.board_order import FORECAST_COLUMNS, BoardOrder
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.front_page import Side, leads_figure, prices_figure
from arena_site.pages.citations import citation
from arena_site.pages.freshness import current_pause, instants, next_decision_run, requested_instant
from arena_site.pages.headlines import (
    HEADLINE_PARTS,
    MINIMUM_EVENTS,
    Headline,
    forecast_headline,
    largest_bet_sentence,
    market_sentence,
    trading_headline,
)
from arena_site.pages.selection import PageSelection
from cohorts.conditions import Conditions
from foundation.rest.negotiation import demo_cell
from scoring.constants import REFERENCES
from scoring.leaderboard_keys import ranked_by
from scoring.selectors.competition import CompetitionIndex, competition_index
from scoring.selectors.forecast_boards import forecast_board
from scoring.selectors.leaderboard_entries import trading_board
from scoring.selectors.performance import release_changes

SHOWN_REFERENCES = REFERENCES[:3]
CSV_COLUMNS = (
    "rank", "rank_low", "rank_high", "forecaster", "display_name", "reference", "external", "ranked_by",
    "adjusted_brier", "adjusted_brier_low", "adjusted_brier_high", "brier", "brier_low", "brier_high",
    "alpha", "alpha_low", "alpha_high", "n", "coverage",
)  # fmt: skip


@require_safe
def leaderboard(request: HttpRequest) -> HttpResponse:
    """Who forecasts best with and without prices, how that changed, who beats the market, and who earns most."""
    now = timezone.now()
    as_of = requested_instant(request, now)
    selection = PageSelection.dated(request)
    order = BoardOrder.from_request(request, FORECAST_COLUMNS)
    competition = competition_index()
    pause = None if as_of else current_pause(competition.cohorts.values(), now)
    first, sides = _sides(competition, as_of, now)
    board, headline = first.board, first.headline
    entries, computed_at = board.entries, board.computed_at
    trading = trading_headline(*trading_board(at=as_of), competition.cohorts.values(), at=computed_at or now)
    data = board.report.get("data", {})
    scored = [entry for entry in entries if entry["brier"] is not None]
    rows = []
    for entry in scored:
        if not entry["reference"] or entry["forecaster"] in SHOWN_REFERENCES:
            rows.append({"entry": entry, "family": competition.by_slug.get(entry["family"])})
    tests = [(side.board.entries, side.board.report.get("market", {}), side.phrase) for side in sides]
    context = {
        "as_of": as_of,
        "computed_at": computed_at,
        "headline": headline,
        "citation": citation(request, selection, "forecast leaderboard", headline, computed_at),
        "events": data.get("events", 0),
        "minimum_events": MINIMUM_EVENTS,
        "figures": _figures(first, sides, competition, as_of, selection.suffix),
        "against_market": market_sentence(tests) if headline else "",
        "data": data,
        "order": order,
        "ranked_by": ranked_by(entries),
        "rows": order.sorted(rows),
        "trading": trading,
        "largest_bet": _largest_bet(trading, as_of),
        "has_external": any(map(itemgetter("external"), scored)),
        "filters": selection.filter_links([("As of", "as_of", instants(competition, computed_at or now, pause))]),
        "next_run": next_decision_run(now),
        "pause": pause,
    }
    return TemplateResponse(request, "leaderboard.html", context)


def _largest_bet(headline: Headline | None, as_of: datetime | None) -> str:
    """How much of the leader's profit is one bet; empty for a past instant."""
    return "" if headline is None or as_of is not None else largest_bet_sentence(headline.leader)


def _sides(competition: CompetitionIndex, as_of: datetime | None, now: datetime) -> tuple[Side, Sequence[Side]]:
    """The board of the methodology's condition, and the boards with and without prices.

    The first board alone where no two conditions differ in prices only.
    """
    conditions = competition.conditions
    arm = conditions.board(at=as_of)
    board = _side(arm, conditions, as_of, now)
    pair = next((pair for pair in conditions.pairs_apart("prices") if arm in pair), None)
    if pair is None:
        return board, [board]
    return board, [board if name == arm else _side(name, conditions, as_of, now) for name in pair]


def _figures(
    board: Side, sides: Sequence[Side], competition: CompetitionIndex, as_of: datetime | None, query: str
) -> dict[str, Figure | None]:
    families, changes = competition.by_slug, []
    for change in release_changes(competition.counted):
        if as_of is None or change.at <= as_of:
            changes.append(change)
    return {
        "scores": brier_figure(board.board, board.headline, families, query=query) if board.board.entries else None,
        "prices": prices_figure(sides, families, query=query),
        "leads": leads_figure(board, families, changes, query=query),
    }


def _side(arm: str, conditions: Conditions, as_of: datetime | None, now: datetime) -> Side:
    """The forecast leaderboard of a condition, and who leads it."""
    board = forecast_board(arm=arm, at=as_of, parts=(*HEADLINE_PARTS, "leads"))
    phrase = conditions.phrase(arm)
    headline = forecast_headline(board.entries, board.report, at=board.computed_at or now, condition=phrase)
    return Side(board, conditions.label(arm), phrase, headline)


@require_safe
def leaderboard_csv(request: HttpRequest) -> HttpResponse:
    """The entries of the front page's leaderboard as CSV."""
    from forecast_rank.files.csv_cells import csv_cell

    as_of = requested_instant(request, timezone.now())
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    name = f"{'demo-' if settings.ARENA_DEMO else ''}forecast-leaderboard.csv"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    writer = csv.writer(response)
    writer.writerow([*CSV_COLUMNS, *demo_cell("demo")])
    for entry in forecast_board(at=as_of, parts=("data",)).entries:
        cells = {**entry}
        for score_name in ("adjusted_brier", "brier", "alpha"):
            cells[f"{score_name}_low"], cells[f"{score_name}_high"] = entry[f"{score_name}_ci"] or ("", "")
        writer.writerow([*(csv_cell(cells[column]) for column in CSV_COLUMNS), *demo_cell()])
    return response
