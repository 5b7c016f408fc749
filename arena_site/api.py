"""The REST API as a whole: which endpoints there are, and what a fault looks like."""

from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect, JsonResponse
from django.urls import Resolver404, resolve
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.views import exception_handler

from agents.api import Decisions, Families, Journal, Positions, Releases, Reversals, Trades
from agents.chain_api import ChainLinks, Chains
from arena_site.by_hand import Settlements
from arena_site.exports_api import Exports
from cohorts.api import Cohorts, Methodologies, Universes
from markets.api import Markets, Prices, Runs
from scoring.api import Agents, BrierScores, Leaderboards, Snapshots
from scoring.forecast_api import Elicitations, ForecastBoards, Forecasts
from scoring.imports_api import Imports
from scoring.question_api import Questions

ENDPOINTS: dict[str, Any] = {
    "leaderboard": Leaderboards,
    "cohorts": Cohorts,
    "methodologies": Methodologies,
    "universes": Universes,
    "families": Families,
    "releases": Releases,
    "agents": Agents,
    "decisions": Decisions,
    "trades": Trades,
    "positions": Positions,
    "journal": Journal,
    "settlements": Settlements,
    "reversals": Reversals,
    "snapshots": Snapshots,
    "brier-scores": BrierScores,
    "markets": Markets,
    "prices": Prices,
    "runs": Runs,
    "questions": Questions,
    "elicitations": Elicitations,
    "forecasts": Forecasts,
    "forecast-boards": ForecastBoards,
    "imports": Imports,
    "chain": Chains,
    "chain-links": ChainLinks,
    "exports": Exports,
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
            known = resolve(f"{request.path_info}/").func is not unknown_path
        except Resolver404:
            known = False
        if known:
            return HttpResponsePermanentRedirect(request.get_full_path(force_append_slash=True))
    return JsonResponse({"detail": f"there is nothing at {request.path}"}, status=HTTPStatus.NOT_FOUND)


def server_error(request: HttpRequest) -> JsonResponse:
    """500 as JSON, for `handler500` on paths of the API; what went wrong is in the log, not in the answer."""
    return JsonResponse({"detail": "the server failed; it is logged"}, status=HTTPStatus.INTERNAL_SERVER_ERROR)
