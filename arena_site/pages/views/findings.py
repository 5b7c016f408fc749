"""The page of findings: comparisons that the data supports, and those that it does not."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from arena_site.pages.findings import statement
from arena_site.pages.headlines import MINIMUM_EVENTS
from scoring import findings as comparisons

SHOWN = 5
"""Supported comparisons on the page."""


@require_safe
def findings(request: HttpRequest) -> HttpResponse:
    """The first five supported comparisons, and those that the data does not support yet."""
    result = comparisons.findings()
    pairs = result.comparisons if result.events >= MINIMUM_EVENTS else []
    context = {
        "supported": [statement(finding) for finding in pairs if finding.supported][:SHOWN],
        "open": [statement(finding) for finding in pairs if not finding.supported],
        "events": result.events,
        "minimum_events": MINIMUM_EVENTS,
        "at": result.at,
    }
    return render(request, "findings.html", context)
