"""The front page: who forecasts best, the leaderboard, who beats the market and who earns most."""

import csv
from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from arena_site.pages.board_figures import brier_figure
from arena_site.pages.board_order import FORECAST_BOARD, BoardOrder, without
from arena_site.pages.charts.front_page import Side
from arena_site.pages.citations import citation
from arena_site.pages.freshness import current_pause, dated, instants, next_decision_run, requested_instant
from arena_site.pages.headlines import (
    HEADLINE_PARTS,
    forecast_headline,
    market_sentence,
    no_leader_sentence,
    trading_headline,
)
from arena_site.pages.selection import PageSelection
from cohorts.conditions import Conditions
from foundation.clock import present
from foundation.rest.negotiation import demo_cell
from scoring.constants import FORECAST, RANKED_BY, SHOWN_REFERENCES
from scoring.leaderboard_keys import ranked_by
from scoring.reports.columns import named
from scoring.reports.forecasts import FORECAST_COLUMNS
from scoring.selectors.competition import CompetitionIndex, competition_index
from scoring.selectors.forecast_boards import forecast_board
from scoring.selectors.leaderboard_entries import trading_board
from scoring.selectors.published_boards import citable_instant

CSV_COLUMNS = named(
    FORECAST_COLUMNS,
    "rank rank_low rank_high forecaster display_name reference external ranked_by adjusted_brier brier alpha n "
    "coverage",
)


@require_safe
@dated
def leaderboard(request: HttpRequest) -> HttpResponse:
    """The front page: the leaders in forecasts, against the market, and in trading."""
    now = present()
    competition = competition_index()
    arm = competition.conditions.board()
    as_of = requested_instant(request, FORECAST, arm=arm)
    selection = PageSelection.dated(request)
    order = BoardOrder.from_request(request, FORECAST_BOARD)
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
        "selection": selection,
        "as_of": as_of,
        "board_pk": board.pk,
        "computed_at": computed_at,
        "headline": headline,
        "citation": citation(
            request, selection, "forecast leaderboard", headline, as_of or citable_instant(entries, FORECAST, arm=arm)
        ),
        "no_leader": no_leader_sentence(data.get("events", 0)),
        "figure": brier_figure(board, headline, competition.by_slug, query=selection.suffix),
        "against_market": market_sentence(tests) if headline else "",
        "data": data,
        "order": order,
        "columns": without(FORECAST_BOARD, *({*RANKED_BY} - {ranked_by(entries)})),
        "ranked_by": ranked_by(entries),
        "rows": order.sorted(rows),
        "trading": trading,
        "has_external": any(map(itemgetter("external"), scored)),
        "filters": selection.filter_links([("As of", "as_of", instants(FORECAST, now, pause, arm=arm))]),
        "next_run": next_decision_run(now),
        "pause": pause,
    }
    return TemplateResponse(request, "leaderboard.html", context)


def _sides(competition: CompetitionIndex, as_of: datetime | None, now: datetime) -> tuple[Side, Sequence[Side]]:
    """The board of the methodology's condition, and the boards with and without prices.

    The first board alone where no two conditions differ in prices only.
    """
    conditions = competition.conditions
    arm = conditions.board()
    board = _side(arm, conditions, as_of, now)
    pair = next((pair for pair in conditions.pairs_apart("prices") if arm in pair), None)
    if pair is None:
        return board, [board]
    return board, [board if name == arm else _side(name, conditions, as_of, now) for name in pair]


def _side(arm: str, conditions: Conditions, as_of: datetime | None, now: datetime) -> Side:
    """The forecast leaderboard of a condition, and who leads it."""
    board = forecast_board(arm=arm, at=as_of, parts=HEADLINE_PARTS)
    phrase = conditions.phrase(arm)
    headline = forecast_headline(board.entries, board.report, at=board.computed_at or now, condition=phrase)
    return Side(board, conditions.label(arm), phrase, headline)


@require_safe
@dated
def leaderboard_csv(request: HttpRequest) -> HttpResponse:
    """The entries of the front page's leaderboard as CSV."""
    from forecast_rank.files.csv_cells import csv_cell

    as_of = requested_instant(request, FORECAST, arm=competition_index().conditions.board())
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    name = f"{'demo-' if settings.ARENA_DEMO else ''}forecast-leaderboard.csv"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    writer = csv.writer(response)
    ends = ("low", "high")
    headings = []
    for column in CSV_COLUMNS:
        headings.append(column.name)
        headings.extend(f"{column.name}_{end}" for end in ends if column.interval)
    writer.writerow([*headings, *demo_cell("demo")])
    for entry in forecast_board(at=as_of, parts=("data",)).entries:
        cells = []
        for column in CSV_COLUMNS:
            cells.append(entry[column.name])
            if column.interval:
                cells.extend(entry[column.interval] or ("", ""))
        writer.writerow([*map(csv_cell, cells), *demo_cell()])
    return response
