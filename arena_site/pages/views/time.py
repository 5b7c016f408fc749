"""Scores by the days from a forecast to its market's close."""

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from arena_site.pages.charts.curves import Curve, family_curve
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.lines import line_chart
from arena_site.pages.charts.markers import REFERENCE_COLORS
from arena_site.pages.report_selection import SelectedPart, selected_part
from foundation.bulk import mappings_by
from scoring.constants import DAYS_AHEAD, MARKET, SHOWN_REFERENCES, days_label
from scoring.selectors.claims import LEAST_EVENTS

DRAWN_EVENTS = 4
"""Events of a bin below which its scores are in the table, but not drawn."""
NOTE = "A question counts once in each bin. Bins of fewer than four events are not drawn; the table has intervals."


@require_safe
def time(request: HttpRequest) -> HttpResponse:
    """The page: scores by days to the close, as a chart and as tables."""
    page = selected_part(request, "time")
    bins = page.figures["bins"]
    names: dict[str, str] = {}
    for row in bins:
        for entry in row["entries"]:
            if not entry["reference"] or entry["forecaster"] in SHOWN_REFERENCES:
                names[entry["forecaster"]] = entry["display_name"]
    rows = []
    for forecaster, display_name in names.items():
        cells = map(_entry, bins, repeat(forecaster))
        rows.append((page.competition.by_slug.get(forecaster), display_name, list(cells)))
    context = {
        "selection": page.selection,
        "computed_at": page.computed_at,
        "bins": [(days_label(row["days_from"], row["days_to"]), row) for row in bins],
        "rows": rows,
        "least_events": LEAST_EVENTS,
        "figure": _figure(page),
    }
    return TemplateResponse(request, "time.html", context)


def _entry(row: Mapping[str, Any], forecaster: str) -> Mapping[str, Any] | None:
    """The entry of a forecaster in a bin."""
    return mappings_by("forecaster", row["entries"]).get(forecaster)


def _figure(page: SelectedPart) -> Figure | None:
    """The scores as curves over the bins; None while there are none to draw."""
    bins = page.figures["bins"]
    chart = line_chart(
        range(len(DAYS_AHEAD)), _curves(bins, page), y_title="Brier score (0 is best)", axis="days", unit="score"
    )
    title = f"Brier scores by days to the market’s close, {page.condition}."
    return Figure("by-days", title, chart, NOTE, **page.files) if bins and chart else None


def _curves(bins: Sequence[Mapping[str, Any]], page: SelectedPart) -> list[Curve]:
    """The curve of the market, dashed, and those of the models and agents."""
    slugs: dict[str, None] = {}
    for row in bins:
        for entry in row["entries"]:
            if not entry["reference"]:
                slugs[entry["forecaster"]] = None
    curves = []
    for slug in (MARKET, *slugs):
        values = []
        for row in bins:
            entry = _entry(row, slug)
            values.append(entry["brier"] if entry and row["events"] >= DRAWN_EVENTS else None)
        if slug == MARKET:
            curves.append(Curve("Market", REFERENCE_COLORS[MARKET], values, dashed=True))
        else:
            curves.append(family_curve(page.competition.by_slug[slug], values))
    return curves
