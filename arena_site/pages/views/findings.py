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
    found = comparisons.findings()
    made = found.comparisons if found.events >= MINIMUM_EVENTS else []
    context = {
        "supported": [statement(finding) for finding in made if finding.supported][:SHOWN],
        "open": [statement(finding) for finding in made if not finding.supported],
        "events": found.events,
        "minimum_events": MINIMUM_EVENTS,
        "at": found.at,
    }
    return render(request, "findings.html", context)
