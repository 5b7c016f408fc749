"""Calibration of stated probabilities and of bets."""

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from arena_site.pages.charts.diagrams import SquareDiagram, reliability_diagram, scatter_diagram
from arena_site.pages.selection import ARMS, PageSelection, all_or_one
from scoring.calibration import ForecasterCalibration
from scoring.calibration import calibration as calibration_of
from scoring.constants import ALL_METHODOLOGIES
from scoring.models import Leaderboard


@require_safe
def calibration(request: HttpRequest) -> HttpResponse:
    """Reliability diagrams and score decompositions under both protocols, and stakes against stated probabilities."""
    leaderboards = set(Leaderboard.objects.order_by().values_list("methodology", "category").distinct())
    versions = sorted({version for version, _ in leaderboards if version})
    categories = sorted({category for _, category in leaderboards if category})
    selection = PageSelection.from_request(
        request,
        {"arm": list(ARMS), "category": ["", *categories], "methodology": [ALL_METHODOLOGIES, *versions]},
    )
    result = calibration_of(**selection.values)
    return render(
        request,
        "calibration.html",
        {
            "selection": selection,
            "filters": selection.filter_links(
                [
                    ("Prompt condition", "arm", ARMS),
                    ("Category", "category", all_or_one("all", categories)),
                    ("Methodology", "methodology", all_or_one("all versions", versions, minimum=2)),
                ]
            ),
            "calibration": result,
            "forecast_diagrams": _reliability(result.forecasts.forecasters),
            "trading_diagrams": _reliability(result.trades.forecasters),
            "stakes": [
                (each.family, scatter_diagram(each.family, each.points), each.figures) for each in result.stakes
            ],
        },
    )


def _reliability(rows: Sequence[ForecasterCalibration]) -> list[SquareDiagram]:
    return [reliability_diagram(row.display_name, row.bins, row.family, row.forecaster) for row in rows]
