"""Calibration of stated probabilities."""

from collections.abc import Sequence
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from arena_site.pages.charts.calibration import reliability_figure, stakes_figure
from arena_site.pages.charts.diagrams import SquareDiagram, reliability_diagram, scatter_diagram
from arena_site.pages.charts.figures import Figure
from arena_site.pages.selection import PageSelection, all_or_one, condition_labels
from arena_site.pages.stored_boards import StoredBoards, stored_boards
from scoring.constants import ALL_METHODOLOGIES
from scoring.selectors.calibration import Calibration, ForecasterCalibration, ProtocolCalibration
from scoring.selectors.calibration import calibration as calibration_of
from scoring.selectors.competition import competition_index, last_competition_index


@require_safe
def calibration(request: HttpRequest) -> HttpResponse:
    """Reliability diagrams and score decompositions of forecasts, and stakes against stated probabilities."""
    boards = stored_boards()
    selection = _selection(request, boards)
    conditions = last_competition_index().conditions
    result = calibration_of(selection["arm"], selection["methodology"], selection["category"])
    forecasts, stakes = _figures(result, selection)
    return TemplateResponse(
        request,
        "calibration.html",
        {
            "selection": selection,
            "filters": selection.filter_links(
                [
                    ("Prompt condition", "arm", condition_labels(conditions, selection, boards.arms)),
                    ("Category", "category", all_or_one("all", boards.categories())),
                    ("Methodology", "methodology", all_or_one("all versions", boards.versions, minimum=2)),
                ]
            ),
            "calibration": result,
            "forecasts": forecasts,
            "stakes": stakes,
            "shared_figure": forecasts or stakes,
        },
    )


def _selection(request: HttpRequest, boards: StoredBoards) -> PageSelection:
    arms = competition_index().conditions.names(request.GET.get("methodology", ALL_METHODOLOGIES))
    versions = [ALL_METHODOLOGIES, *boards.versions]
    return PageSelection.from_request(
        request, {"arm": arms, "category": ["", *boards.categories()], "methodology": versions}
    )


def _figures(result: Calibration, selection: PageSelection) -> tuple[Figure | None, Figure | None]:
    """The figures of forecasts, and of stakes."""
    forecasts, query = result.forecasts, selection.suffix
    at = _instant(forecasts)
    stakes = [scatter_diagram(row.family, row.points) for row in result.stakes]
    return (
        reliability_figure(
            _reliability(forecasts.forecasters),
            at=at,
            query=query,
            name="stated-probabilities",
            condition=competition_index().conditions.label(selection["arm"]),
        ),
        stakes_figure(stakes, at=at, query=query),
    )


def _instant(protocol: ProtocolCalibration) -> datetime | None:
    """The instant of a protocol's figures."""
    return protocol.leaderboard.computed_at if protocol.leaderboard else None


def _reliability(rows: Sequence[ForecasterCalibration]) -> list[SquareDiagram]:
    return [reliability_diagram(row.display_name, row.bins, row.family, row.forecaster) for row in rows]
