"""The front page: which model forecasts best, the leaderboard behind the answer, and trading in a sentence."""

import csv

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from arena_site.pages.charts.intervals import brier_chart
from arena_site.pages.citations import citation
from arena_site.pages.freshness import next_decision_run, past_sundays, paused_since, requested_instant
from arena_site.pages.headlines import MINIMUM_EVENTS, forecast_headline, trading_headline
from arena_site.pages.selection import PageSelection
from scoring.competition import competition_index
from scoring.constants import REFERENCES, TRADING
from scoring.forecast_boards import forecast_board
from scoring.leaderboard_entries import leaderboard_entries

BASELINES = REFERENCES[:2]
"""The market's prices and equal probabilities, which are lines of the chart."""
SHOWN_REFERENCES = REFERENCES[:3]
CSV_COLUMNS = (
    "rank", "rank_low", "rank_high", "forecaster", "display_name", "reference", "external", "brier", "brier_low",
    "brier_high", "alpha", "alpha_low", "alpha_high", "n", "coverage",
)  # fmt: skip


@require_safe
def leaderboard(request: HttpRequest) -> HttpResponse:
    """The answer in a sentence, each model's Brier score with its interval, and the short leaderboard."""
    now = timezone.now()
    as_of = requested_instant(request, now)
    selection = PageSelection({}, {}).with_text("as_of", request.GET.get("as_of", ""))
    competition = competition_index()
    families = competition.by_slug
    entries, report, computed_at, _ = forecast_board(at=as_of, parts=("pairs", "data"))
    data = report.get("data", {})
    trading = leaderboard_entries(TRADING, at=as_of)
    scored = [entry for entry in entries if entry["brier"] is not None]
    events = data.get("events", 0)
    headline = forecast_headline(entries, report.get("pairs", []), events=events, at=computed_at or now)
    models = [entry for entry in scored if not entry["reference"] and not entry["external"]]
    return render(
        request,
        "leaderboard.html",
        {
            "as_of": as_of,
            "computed_at": computed_at,
            "headline": headline,
            "citation": citation(request, selection, "forecast leaderboard", headline, computed_at),
            "events": events,
            "minimum_events": MINIMUM_EVENTS,
            "chart": brier_chart(
                models,
                [entry for entry in scored if entry["forecaster"] in BASELINES],
                families,
                headline.tied if headline else [],
            ),
            "data": data,
            "rows": [
                {"entry": entry, "family": families.get(entry["family"])}
                for entry in scored
                if not entry["reference"] or entry["forecaster"] in SHOWN_REFERENCES
            ],
            "trading": trading_headline(trading, at=computed_at or now),
            "has_external": any(entry["external"] for entry in scored),
            "filters": selection.filter_links(
                [("As of", "as_of", {"": "now", **past_sundays(competition, computed_at or now)})]
            ),
            "methodology": competition.methodology,
            "next_run": next_decision_run(now),
            "paused_since": None if as_of else paused_since(competition, now),
        },
    )


@require_safe
def leaderboard_csv(request: HttpRequest) -> HttpResponse:
    """The entries of the front page's leaderboard as CSV."""
    from forecast_rank.files.csv_cells import csv_cell

    as_of = requested_instant(request, timezone.now())
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="forecast-leaderboard.csv"'
    writer = csv.writer(response)
    writer.writerow(CSV_COLUMNS)
    for entry in forecast_board(at=as_of, parts=("data",)).entries:
        bounds = {
            f"{name}_{end}": value
            for name in ("brier", "alpha")
            for end, value in zip(("low", "high"), entry[f"{name}_ci"] or ("", ""), strict=True)
        }
        writer.writerow([csv_cell({**entry, **bounds}[column]) for column in CSV_COLUMNS])
    return response
