"""The page of findings: comparisons that the data supports, and those that it does not."""

from collections.abc import Sequence
from itertools import filterfalse
from operator import attrgetter
from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.findings import finding_figure
from arena_site.pages.findings import HEADINGS, Statement, nothing_yet, statement
from arena_site.pages.headlines import MINIMUM_EVENTS
from arena_site.pages.selection import PageSelection
from foundation.bulk import rows_by
from scoring.selectors import findings as comparisons
from scoring.selectors.competition import competition_index

SHOWN = 5
"""Supported comparisons on the page."""


class FindingEntry(NamedTuple):
    """A finding as the page shows it."""

    statement: Statement
    figure: Figure
    supported: bool


@require_safe
def findings(request: HttpRequest) -> HttpResponse:
    """The first five supported comparisons, and those that the data does not support yet."""
    selection = PageSelection.from_request(request, {"finding": ["", *HEADINGS]})
    result, items = _items()
    shared = next((item for item in items if item.figure.name == selection["finding"]), None)
    context = {
        "selection": selection,
        "items": items,
        "supported": list(filter(attrgetter("supported"), items))[:SHOWN],
        "open": list(filterfalse(attrgetter("supported"), items)),
        "nothing_yet": nothing_yet(result.events),
        "at": result.at,
        "shared": shared,
        "shared_figure": (shared or items[0]).figure if items else None,
    }
    return TemplateResponse(request, "findings.html", context)


def _items() -> tuple[comparisons.Findings, Sequence[FindingEntry]]:
    """The comparisons, and each in words and as a figure."""
    result = comparisons.findings()
    families = rows_by("display_name", competition_index().families.values())
    items = []
    for finding in result.comparisons if result.events >= MINIMUM_EVENTS else ():
        words = statement(finding)
        figure = finding_figure(finding, words, families)
        items.append(FindingEntry(words, figure, finding.supported))
    return result, items
