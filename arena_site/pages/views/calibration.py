"""Calibration of stated probabilities and of bets."""

from collections.abc import Sequence
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from arena_site.pages.charts.calibration import confidence_figure, reliability_figure, stakes_figure
from arena_site.pages.charts.diagrams import SquareDiagram, reliability_diagram, scatter_diagram
from arena_site.pages.charts.figures import Figure
from arena_site.pages.freshness import requested_instant
from arena_site.pages.selection import PageSelection, all_or_one, condition_labels
from arena_site.pages.stored_boards import StoredBoards, stored_boards
from scoring.constants import ALL_METHODOLOGIES
from scoring.selectors.calibration import Calibration, ForecasterCalibration, ProtocolCalibration
from scoring.selectors.calibration import calibration as calibration_of
from scoring.selectors.competition import competition_index, last_competition_index


@require_safe
def calibration(request: HttpRequest) -> HttpResponse:
    """Reliability diagrams and score decompositions under both protocols, and stakes against stated probabilities."""
    boards = stored_boards()
    selection = _selection(request, boards)
    conditions = last_competition_index().conditions
    as_of = requested_instant(request, timezone.now())
    result = calibration_of(selection["arm"], selection["methodology"], selection["category"], at=as_of)
    forecasts, bets, stakes = _figures(result, selection, as_of)
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
            "as_of": as_of,
            "forecasts": forecasts,
            "bets": bets,
            "stakes": stakes,
            "shared_figure": forecasts or bets or stakes,
        },
    )


def _selection(request: HttpRequest, boards: StoredBoards) -> PageSelection:
    arms = competition_index().conditions.names(request.GET.get("methodology", ALL_METHODOLOGIES))
    versions = [ALL_METHODOLOGIES, *boards.versions]
    return PageSelection.dated(request, {"arm": arms, "category": ["", *boards.categories()], "methodology": versions})


def _figures(
    result: Calibration, selection: PageSelection, as_of: datetime | None
) -> tuple[Figure | None, Figure | None, Figure | None]:
    """The figures of forecasts, of bets, and of stakes."""
    forecasts, trades, query = result.forecasts, result.trades, selection.suffix
    forecast_at, trade_at = _instant(forecasts, as_of), _instant(trades, as_of)
    stakes = [scatter_diagram(row.family, row.points) for row in result.stakes]
    return (
        reliability_figure(
            _reliability(forecasts.forecasters),
            at=forecast_at,
            query=query,
            name="stated-probabilities",
            condition=competition_index().conditions.label(selection["arm"]),
        ),
        confidence_figure(_reliability(trades.forecasters), at=trade_at, query=query),
        stakes_figure(stakes, at=forecast_at, query=query),
    )


def _instant(protocol: ProtocolCalibration, as_of: datetime | None) -> datetime | None:
    """The instant of a protocol's figures."""
    if as_of is not None or protocol.leaderboard is None:
        return as_of
    return protocol.leaderboard.computed_at


def _reliability(rows: Sequence[ForecasterCalibration]) -> list[SquareDiagram]:
    return [reliability_diagram(row.display_name, row.bins, row.family, row.forecaster) for row in rows]
