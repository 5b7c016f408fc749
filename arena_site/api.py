"""The REST API as a whole: its endpoints and paths, and what a fault looks like."""

from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import Resolver404, include, path, re_path, resolve
from rest_framework.response import Response
from rest_framework.routers import Route, SimpleRouter
from rest_framework.views import exception_handler

from agents.api.chain import ChainLinkViewSet, ChainViewSet
from agents.api.families import FamilyViewSet, ReleaseViewSet
from agents.api.ledger import JournalViewSet, PositionViewSet, ReversalViewSet, TradeViewSet
from agents.api.submissions import OpenTasks, Submissions
from agents.api.tasks import DecisionViewSet, ElicitationViewSet
from arena_site.authentication import AgentTokenAuthentication
from arena_site.export_requests import RequestableExportViewSet
from arena_site.manual_settlements import Settlements
from cohorts.api import CohortViewSet, MethodologyViewSet
from markets.api import MarketViewSet, PriceViewSet, RunViewSet, UniverseViewSet
from scoring.api.agents import AgentViewSet, BrierScoreViewSet, SnapshotViewSet
from scoring.api.calibration import CalibrationView
from scoring.api.comparisons import ComparisonView
from scoring.api.exports import export_download
from scoring.api.forecasts import ForecastLeaderboardViewSet, ForecastQuestionViewSet, ForecastViewSet
from scoring.api.imports import ImportViewSet
from scoring.api.leaderboards import LeaderboardViewSet
from scoring.api.performance import PerformanceView

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


class Router(SimpleRouter):
    """Routes of lists and details. Looking for extra actions would load the schema generator; no view has one."""

    def get_routes(self, viewset: Any) -> list[Any]:
        return [route for route in self.routes if isinstance(route, Route)]


router = Router()
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


def schema_view(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
    from arena_site.schema import schema  # loads the schema generator, which few processes need

    return schema(request, **kwargs)


def docs_view(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
    from arena_site.schema import docs

    return docs(request, **kwargs)


AGENT_TOKENS = (AgentTokenAuthentication,)
"""Given to the submission views here, since `agents` can not import this app's authentication."""

urlpatterns = [
    path("v1/", include(router.urls)),
    path("v1/exports/<int:pk>/file/", export_download, name="export-file"),
    path("v1/calibration/", CalibrationView.as_view(), name="calibration-api"),
    path("v1/comparisons/<str:first>/<str:second>/", ComparisonView.as_view(), name="comparison-api"),
    path("v1/performance/", PerformanceView.as_view(), name="performance"),
    path("v1/submissions/", Submissions.as_view(authentication_classes=AGENT_TOKENS), name="submissions"),
    path("v1/submissions/open/", OpenTasks.as_view(authentication_classes=AGENT_TOKENS), name="submissions-open"),
    path("schema/", schema_view, name="schema"),
    path("docs/", docs_view, name="api-docs"),
    re_path(r"", unknown_path),
]
