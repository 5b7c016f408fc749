"""The REST API as a whole: its endpoints, its index and its paths."""

from datetime import datetime
from functools import cached_property
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.http.response import HttpResponseBase
from django.urls import Resolver404, include, path, re_path, resolve
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.routers import Route, SimpleRouter

from agents.api.chain import ChainLinkViewSet, ChainViewSet, EnvelopeViewSet
from agents.api.families import FamilyViewSet, ReleaseViewSet
from agents.api.ledger import JournalViewSet, PositionViewSet, ReversalViewSet, SettlementViewSet, TradeViewSet
from agents.api.methodologies import MethodologyViewSet
from agents.api.receipts import AttemptViewSet, ReceiptViewSet
from agents.api.registered_agent import RegisteredAgent
from agents.api.submissions import OpenTasks, Submissions
from agents.api.tasks import DecisionViewSet, ElicitationViewSet
from agents.letters import first_sealed_freeze
from arena_site.authentication import AgentTokenAuthentication
from cohorts.api import CohortViewSet
from foundation.api import RunViewSet
from foundation.clock import now
from foundation.rest.filters import check_parameters
from foundation.rest.problems import Problem
from foundation.rest.viewsets import extend_schema
from markets.api import MarketViewSet, PriceViewSet, QuestionSetViewSet, UniverseViewSet
from scoring.api.agents import AgentViewSet, BrierScoreViewSet, SnapshotViewSet
from scoring.api.agents_boards import AgentsBoardViewSet
from scoring.api.base import ComputedView
from scoring.api.calibration import CalibrationView
from scoring.api.comparisons import ComparisonView, ConditionDifferenceViewSet
from scoring.api.disagreements import MarketDisagreementViewSet
from scoring.api.exports import ExportViewSet
from scoring.api.forecasts import ForecastLeaderboardViewSet, ForecastQuestionViewSet, ForecastViewSet
from scoring.api.leaderboards import LeaderboardViewSet
from scoring.api.performance import PerformanceView
from scoring.api.report_parts import CostsView, TimeView
from scoring.api.risk import RiskViewSet

PUBLIC_RUNS = ("sync_markets", "start_cohort")
"""Kinds of runs that tell nothing of answers. Counts of all others may: of calls, of positions, of rows."""
RUN_IDENTITY = frozenset({"kind", "at"})


class PublicRuns(RunViewSet):
    __doc__ = RunViewSet.__doc__

    @cached_property
    def sealed_since(self) -> datetime | None:
        """The first freeze with sealed letters; none for the API's description, which is made without a database."""
        return None if getattr(self, "swagger_fake_view", False) else first_sealed_freeze(now())

    @property
    def requested(self) -> frozenset[str]:
        return super().requested | RUN_IDENTITY if self.sealed_since else super().requested

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        contents = getattr(response, "data", None)
        if self.sealed_since and isinstance(contents, dict):
            for row in contents.get("results", [contents]):
                if row.get("kind") not in PUBLIC_RUNS and datetime.fromisoformat(row["at"]) >= self.sealed_since:
                    _hide(row)
        return super().finalize_response(request, response, *args, **kwargs)


def _hide(row: dict[str, Any]) -> None:
    """Empties the fields that tell what a run's answers were."""
    hidden: dict[str, Any] = {"summary": {}, "error": None, "log": []}
    for name in row.keys() & hidden.keys():
        row[name] = hidden[name]


ENDPOINTS: dict[str, Any] = {
    "leaderboard": LeaderboardViewSet,
    "agents-board": AgentsBoardViewSet,
    "comparisons/conditions": ConditionDifferenceViewSet,
    "disagreements": MarketDisagreementViewSet,
    "risk": RiskViewSet,
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
    "settlements": SettlementViewSet,
    "reversals": ReversalViewSet,
    "snapshots": SnapshotViewSet,
    "brier-scores": BrierScoreViewSet,
    "markets": MarketViewSet,
    "prices": PriceViewSet,
    "runs": PublicRuns,
    "questions": ForecastQuestionViewSet,
    "question-sets": QuestionSetViewSet,
    "elicitations": ElicitationViewSet,
    "forecasts": ForecastViewSet,
    "forecast-leaderboards": ForecastLeaderboardViewSet,
    "chain": ChainViewSet,
    "chain-links": ChainLinkViewSet,
    "envelopes": EnvelopeViewSet,
    "receipts": ReceiptViewSet,
    "attempts": AttemptViewSet,
    "exports": ExportViewSet,
}


class Router(SimpleRouter):
    """Routes of lists and details. Looking for extra actions would load the schema generator; no view has one."""

    def get_routes(self, viewset: Any) -> list[Any]:
        return [route for route in self.routes if isinstance(route, Route)]


router = Router()
for name, viewset in ENDPOINTS.items():
    router.register(name, viewset, basename=name)


class IndexSerializer(serializers.Serializer):
    """The address of every list and curve by its name."""

    def get_fields(self) -> dict[str, Any]:
        return {name: serializers.URLField(help_text=f"Address of `{name}`.") for name in INDEX}


class Index(ComputedView):
    """The addresses of all lists, of the curves and of calibration."""

    serializer_class = IndexSerializer

    @extend_schema(tags=["index"])
    def get(self, request: Request) -> Response:
        check_parameters(request, ())
        return Response({name: reverse(view, request=request) for name, view in INDEX.items()})


def unknown_path(request: HttpRequest) -> HttpResponse:
    """A 404, or the way to the path that only lacks its slash."""
    if request.method in ("GET", "HEAD") and not request.path_info.endswith("/"):
        try:
            exists = resolve(f"{request.path_info}/").func is not unknown_path
        except Resolver404:
            exists = False
        if exists:
            return HttpResponsePermanentRedirect(request.get_full_path(force_append_slash=True))
    return Problem(HTTPStatus.NOT_FOUND, f"there is nothing at {request.path}")


def schema_view(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
    from arena_site.api_schema.views import schema  # loads the schema generator, which few processes need

    return schema(request, **kwargs)


def docs_view(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
    from arena_site.api_schema.views import docs

    return docs(request, **kwargs)


AGENT_TOKENS = (AgentTokenAuthentication,)
"""Given to the submission views here, since `agents` can not import this app's authentication."""

INDEX = {
    **{name: f"{name}-list" for name in ENDPOINTS},
    "performance": "performance",
    "calibration": "calibration-api",
    "time": "time-api",
    "costs": "costs-api",
}
"""Names of URL patterns by the names in the index."""

urlpatterns = [
    path("v1/", Index.as_view(), name="api-index"),
    path("v1/", include(router.urls)),
    path("v1/calibration/", CalibrationView.as_view(), name="calibration-api"),
    path("v1/time/", TimeView.as_view(), name="time-api"),
    path("v1/costs/", CostsView.as_view(), name="costs-api"),
    path("v1/comparisons/<str:first>/<str:second>/", ComparisonView.as_view(), name="comparison-api"),
    path("v1/performance/", PerformanceView.as_view(), name="performance"),
    path("v1/submissions/", Submissions.as_view(authentication_classes=AGENT_TOKENS), name="submissions"),
    path("v1/submissions/open/", OpenTasks.as_view(authentication_classes=AGENT_TOKENS), name="submissions-open"),
    path(
        "v1/submissions/agent/",
        RegisteredAgent.as_view(authentication_classes=AGENT_TOKENS),
        name="submissions-agent",
    ),
    path("schema/", schema_view, name="schema"),
    path("docs/", docs_view, name="api-docs"),
    re_path(r"", unknown_path),
]
