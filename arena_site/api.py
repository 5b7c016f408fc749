"""The REST API as a whole: which endpoints there are, and what a fault looks like."""

from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect, JsonResponse
from django.urls import Resolver404, resolve
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.views import exception_handler

from agents.api.chain import ChainLinkViewSet, ChainViewSet
from agents.api.decisions import DecisionViewSet
from agents.api.elicitations import ElicitationViewSet
from agents.api.families import FamilyViewSet, ReleaseViewSet
from agents.api.ledger import JournalViewSet, PositionViewSet, ReversalViewSet, TradeViewSet
from arena_site.export_requests import RequestableExportViewSet
from arena_site.manual_settlements import Settlements
from cohorts.api import CohortViewSet, MethodologyViewSet
from markets.api import MarketViewSet, PriceViewSet, RunViewSet, UniverseViewSet
from scoring.api.agents import AgentViewSet
from scoring.api.brier_scores import BrierScoreViewSet
from scoring.api.forecasts import ForecastLeaderboardViewSet, ForecastViewSet
from scoring.api.imports import ImportViewSet
from scoring.api.leaderboards import LeaderboardViewSet
from scoring.api.questions import ForecastQuestionViewSet
from scoring.api.snapshots import SnapshotViewSet

ENDPOINTS: dict[str, Any] = {
    "leaderboard": LeaderboardViewSet,
    "cohorts": CohortViewSet,
    "methodologies": MethodologyViewSet,
    "universes": UniverseViewSet,
    "families": FamilyViewSet,
    "releases": ReleaseViewSet,
    "agents": AgentViewSet,
    "decisions": DecisionViewSet,
    "trades": TradeViewSet,
    "positions": PositionViewSet,
    "journal": JournalViewSet,
    "settlements": Settlements,
    "reversals": ReversalViewSet,
    "snapshots": SnapshotViewSet,
    "brier-scores": BrierScoreViewSet,
    "markets": MarketViewSet,
    "prices": PriceViewSet,
    "runs": RunViewSet,
    "questions": ForecastQuestionViewSet,
    "elicitations": ElicitationViewSet,
    "forecasts": ForecastViewSet,
    "forecast-leaderboards": ForecastLeaderboardViewSet,
    "imports": ImportViewSet,
    "chain": ChainViewSet,
    "chain-links": ChainLinkViewSet,
    "exports": RequestableExportViewSet,
}

router = SimpleRouter()
for name, viewset in ENDPOINTS.items():
    router.register(name, viewset, basename=name)


def problem(error: Exception, context: dict[str, Any]) -> Response | None:
    """A fault as `{"detail"}` or `{field: [..]}`; None for what is a fault of ours, which `server_error` answers."""
    response = exception_handler(error, context)
    if response is not None and isinstance(response.data, list):
        response.data = {"detail": " ".join(map(str, response.data))}
    return response


def unknown_path(request: HttpRequest) -> HttpResponse:
    """404 as JSON, or the way to the path that only lacks its slash."""
    if request.method in ("GET", "HEAD") and not request.path_info.endswith("/"):
        try:
            exists = resolve(f"{request.path_info}/").func is not unknown_path
        except Resolver404:
            exists = False
        if exists:
            return HttpResponsePermanentRedirect(request.get_full_path(force_append_slash=True))
    return JsonResponse({"detail": f"there is nothing at {request.path}"}, status=HTTPStatus.NOT_FOUND)


def server_error(request: HttpRequest) -> JsonResponse:
    """500 as JSON, for `handler500` on paths of the API; what went wrong is in the log, not in the answer."""
    return JsonResponse({"detail": "the server failed; it is logged"}, status=HTTPStatus.INTERNAL_SERVER_ERROR)
