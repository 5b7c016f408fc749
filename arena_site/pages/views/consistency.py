"""Consistency of each model's forecasts before their questions resolve."""

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.intervals import interval_chart
from arena_site.pages.filters import count
from arena_site.pages.report_selection import SelectedPart, selected_part
from scoring.selectors.coherence import KINDS, consistency_sentence


@require_safe
def consistency(request: HttpRequest) -> HttpResponse:
    """The profit of risk-free portfolios against each model's forecasts, and its relation to the Brier score."""
    page = selected_part(request, "consistency")
    rows = page.competition.with_families(page.figures["rows"], "family")
    context = {"page": page, "rows": rows, "kinds": KINDS, "figure": _figure(page) if rows else None}
    return TemplateResponse(request, "consistency.html", context)


def _figure(page: SelectedPart) -> Figure:
    entries, forecasts = [], 0
    for row in page.figures["rows"]:
        entries.append({**row, "display_name": page.name(row["family"])})
        forecasts += row["forecasts"]
    chart = interval_chart(
        entries, "profit", page.competition.by_slug, x_title="Risk-free profit per question ($)",
        unit="cost",
    )  # fmt: skip
    title = consistency_sentence(page.figures, page.condition)
    note = "What a portfolio gains for certain from the probabilities of a day. Intervals are of 95 %, over events."
    return Figure("profit", title, chart, note, source=f"{count(forecasts)} forecasts, resolved or not", **page.files)
