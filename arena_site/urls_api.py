"""Paths under `/api/`."""

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import include, path, re_path

from agents.api.submissions import OpenTasks, Submissions
from arena_site.api import router, unknown_path
from arena_site.jobs_api import Jobs
from arena_site.token_authentication import AgentTokenAuthentication
from scoring.api.calibration import CalibrationView
from scoring.api.comparisons import ComparisonView
from scoring.api.exports import export_download
from scoring.api.performance import PerformanceView


def schema_view(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
    from arena_site.schema import schema  # loads the schema generator, which few processes need

    return schema(request, **kwargs)


def docs_view(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
    from arena_site.schema import docs

    return docs(request, **kwargs)


AGENT_TOKENS = (AgentTokenAuthentication,)
"""The submission views are agents' own; the throttled authentication of tokens is this floor's."""

urlpatterns = [
    path("v1/", include(router.urls)),
    path("v1/exports/<int:pk>/file/", export_download, name="export-file"),
    path("v1/jobs/", Jobs.as_view(), name="jobs"),
    path("v1/calibration/", CalibrationView.as_view(), name="calibration-api"),
    path("v1/comparisons/<str:first>/<str:second>/", ComparisonView.as_view(), name="comparison-api"),
    path("v1/performance/", PerformanceView.as_view(), name="performance"),
    path("v1/submissions/", Submissions.as_view(authentication_classes=AGENT_TOKENS), name="submissions"),
    path("v1/submissions/open/", OpenTasks.as_view(authentication_classes=AGENT_TOKENS), name="submissions-open"),
    path("schema/", schema_view, name="schema"),
    path("docs/", docs_view, name="api-docs"),
    re_path(r"", unknown_path),
]
