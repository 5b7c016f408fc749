"""Paths under `/api/`."""

from csp.decorators import csp_update
from django.urls import include, path, re_path
from drf_spectacular.views import SpectacularSwaggerSplitView

from arena_site.api import router, unknown_path
from arena_site.exports_api import export_download
from arena_site.jobs_api import Jobs
from arena_site.schema import Description
from arena_site.submissions_api import Openings, Submissions
from scoring.calibration_api import Calibrations
from scoring.comparison_api import Comparisons
from scoring.performance_api import Performances

# The pictures of its buttons stand in its stylesheet.
docs = csp_update({"img-src": ["data:"]})(SpectacularSwaggerSplitView.as_view(url_name="schema", throttle_classes=[]))

urlpatterns = [
    path("v1/", include(router.urls)),
    path("v1/exports/<int:pk>/file/", export_download, name="export-file"),
    path("v1/jobs/", Jobs.as_view(), name="jobs"),
    path("v1/calibration/", Calibrations.as_view(), name="calibration-api"),
    path("v1/comparisons/<str:first>/<str:second>/", Comparisons.as_view(), name="comparison-api"),
    path("v1/performance/", Performances.as_view(), name="performance"),
    path("v1/submissions/", Submissions.as_view(), name="submissions"),
    path("v1/submissions/open/", Openings.as_view(), name="submissions-open"),
    path("schema/", Description.as_view(), name="schema"),
    path("docs/", docs, name="api-docs"),
    re_path(r"", unknown_path),
]
