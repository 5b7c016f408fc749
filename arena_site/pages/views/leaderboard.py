"""The front page: which model forecasts best, the leaderboard behind the answer, and trading in a sentence."""

import csv
from datetime import datetime

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from arena_site.pages.board_figures import brier_figure
from arena_site.pages.board_order import FORECAST_COLUMNS, BoardOrder
from arena_site.pages.charts.figures import Figure
from arena_site.pages.citations import citation
from arena_site.pages.freshness import current_pause, instants, next_decision_run, requested_instant
from arena_site.pages.headlines import HEADLINE_PARTS, MINIMUM_EVENTS, Headline, forecast_headline, trading_headline
from arena_site.pages.selection import PageSelection
from scoring.competition import competition_index, last_competition_index
from scoring.constants import REFERENCES
from scoring.forecast_boards import ForecastBoard, forecast_board
from scoring.leaderboard_entries import ranked_by, trading_board

SHOWN_REFERENCES = REFERENCES[:3]
CSV_COLUMNS = (
    "rank", "rank_low", "rank_high", "forecaster", "display_name", "reference", "external", "ranked_by",
    "adjusted_brier", "adjusted_brier_low", "adjusted_brier_high", "brier", "brier_low", "brier_high",
    "alpha", "alpha_low", "alpha_high", "n", "coverage",
)  # fmt: skip


@require_safe
def leaderboard(request: HttpRequest) -> HttpResponse:
    """The answer in a sentence, each model's Brier score with its interval, and the short leaderboard."""
    now = timezone.now()
    as_of = requested_instant(request, now)
    selection = PageSelection({}, {}).with_text("as_of", request.GET.get("as_of", ""))
    order = BoardOrder.from_request(request, FORECAST_COLUMNS)
    competition = competition_index()
    pause = None if as_of else current_pause(competition.cohorts.values(), now)
    families = competition.by_slug
    board, headline = _board(as_of, now)
    entries, computed_at = board.entries, board.computed_at
    data = board.report.get("data", {})
    trading, return_pairs = trading_board(at=as_of)
    scored = [entry for entry in entries if entry["brier"] is not None]
    cited = citation(request, selection, "forecast leaderboard", headline, computed_at)
    return render(
        request,
        "leaderboard.html",
        {
            "as_of": as_of,
            "computed_at": computed_at,
            "headline": headline,
            "citation": cited,
            "events": data.get("events", 0),
            "minimum_events": MINIMUM_EVENTS,
            "figure": brier_figure(board, headline, families, query=selection.suffix),
            "data": data,
            "order": order,
            "ranked_by": ranked_by(entries),
            "rows": order.sorted(
                [
                    {"entry": entry, "family": families.get(entry["family"])}
                    for entry in scored
                    if not entry["reference"] or entry["forecaster"] in SHOWN_REFERENCES
                ]
            ),
            "trading": trading_headline(trading, return_pairs, competition.cohorts.values(), at=computed_at or now),
            "has_external": any(entry["external"] for entry in scored),
            "filters": selection.filter_links([("As of", "as_of", instants(competition, computed_at or now, pause))]),
            "methodology": competition.methodology,
            "next_run": next_decision_run(now),
            "pause": pause,
        },
    )


def leaderboard_figures(request: HttpRequest) -> list[Figure]:
    """The chart of the page."""
    now = timezone.now()
    selection = PageSelection({}, {}).with_text("as_of", request.GET.get("as_of", ""))
    board, headline = _board(requested_instant(request, now), now)
    figure = brier_figure(board, headline, competition_index().by_slug, query=selection.suffix)
    return [figure] if board.entries else []


def _board(as_of: datetime | None, now: datetime) -> tuple[ForecastBoard, Headline | None]:
    """The forecast leaderboard and who leads it."""
    board = forecast_board(at=as_of, parts=HEADLINE_PARTS)
    conditions = last_competition_index().conditions
    condition = conditions.phrase(conditions.board(at=as_of))
    return board, forecast_headline(board.entries, board.report, at=board.computed_at or now, condition=condition)


@require_safe
def leaderboard_csv(request: HttpRequest) -> HttpResponse:
    """The entries of the front page's leaderboard as CSV."""
    from forecast_rank.files.csv_cells import csv_cell

    as_of = requested_instant(request, timezone.now())
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    name = f"{'demo-' if settings.ARENA_DEMO else ''}forecast-leaderboard.csv"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    writer = csv.writer(response)
    writer.writerow(CSV_COLUMNS)
    for entry in forecast_board(at=as_of, parts=("data",)).entries:
        cells = {**entry}
        for score_name in ("adjusted_brier", "brier", "alpha"):
            cells[f"{score_name}_low"], cells[f"{score_name}_high"] = entry[f"{score_name}_ci"] or ("", "")
        writer.writerow([csv_cell(cells[column]) for column in CSV_COLUMNS])
    return response
