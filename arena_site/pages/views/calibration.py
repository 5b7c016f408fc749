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
from scoring.constants import ALL_METHODOLOGIES
from scoring.models import Leaderboard
from scoring.selectors.calibration import Calibration, ForecasterCalibration, ProtocolCalibration
from scoring.selectors.calibration import calibration as calibration_of
from scoring.selectors.competition import competition_index, last_competition_index


def _calibration(selection: PageSelection, as_of: datetime | None) -> Calibration:
    """The calibration now, or as of an instant."""
    arm, methodology, category = selection["arm"], selection["methodology"], selection["category"]
    return calibration_of(arm, methodology, category, at=as_of)


@require_safe
def calibration(request: HttpRequest) -> HttpResponse:
    """Reliability diagrams and score decompositions under both protocols, and stakes against stated probabilities."""
    selection, arms, versions, categories = _selection(request)
    as_of = requested_instant(request, timezone.now())
    result = _calibration(selection, as_of)
    forecasts, bets, stakes = _figures(result, selection, as_of)
    return TemplateResponse(
        request,
        "calibration.html",
        {
            "selection": selection,
            "filters": selection.filter_links(
                [
                    ("Prompt condition", "arm", condition_labels(last_competition_index().conditions, selection, arms)),
                    ("Category", "category", all_or_one("all", categories)),
                    ("Methodology", "methodology", all_or_one("all versions", versions, minimum=2)),
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


def _selection(request: HttpRequest) -> tuple[PageSelection, set[str], Sequence[str], Sequence[str]]:
    """The choices in the request, and the arms, methodology versions and categories that there are."""
    leaderboards = set(Leaderboard.objects.order_by().values_list("arm", "methodology", "category").distinct())
    versions = sorted({version for _, version, _ in leaderboards if version})
    categories = sorted({category for *_, category in leaderboards if category})
    arms = {arm for arm, *_ in leaderboards}
    names = competition_index().conditions.names(request.GET.get("methodology", ALL_METHODOLOGIES))
    selection = PageSelection.from_request(
        request,
        {"arm": names, "category": ["", *categories], "methodology": [ALL_METHODOLOGIES, *versions]},
    )
    return selection.with_text("as_of", request.GET.get("as_of", "")), arms, versions, categories


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
