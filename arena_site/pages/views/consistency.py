"""Consistency of each model's forecasts before their questions resolve."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.intervals import interval_chart
from arena_site.pages.filters import count
from arena_site.pages.freshness import requested_instant
from arena_site.pages.selection import PageSelection, condition_labels
from scoring.competition import CompetitionIndex, competition_index
from scoring.consistency import KINDS, Consistency, consistency, consistency_sentence


@require_safe
def consistency_page(request: HttpRequest) -> HttpResponse:
    """The profit of risk-free portfolios against each model's forecasts, and its relation to the Brier score."""
    as_of, competition = requested_instant(request, timezone.now()), competition_index()
    selection, figures = _selected(request, as_of, competition)
    conditions = competition.conditions
    rows = [(competition.by_slug[row["family"]], row) for row in figures.forecasters]
    labels = condition_labels(conditions, selection, conditions.by_name)
    context = {
        "as_of": as_of,
        "whole": True,
        "arm": selection["arm"],
        "filters": selection.filter_links([("Prompt condition", "arm", labels)]),
        "rows": rows,
        "kinds": KINDS,
        "spearman": figures.spearman,
        "figure": _figure(selection, figures, competition) if rows else None,
    }
    return render(request, "consistency.html", context)


def consistency_figures(request: HttpRequest) -> list[Figure]:
    """The chart of the page."""
    competition = competition_index()
    selection, figures = _selected(request, requested_instant(request, timezone.now()), competition)
    return [_figure(selection, figures, competition)] if figures.forecasters else []


def _selected(
    request: HttpRequest, as_of: datetime | None, competition: CompetitionIndex
) -> tuple[PageSelection, Consistency]:
    selection = PageSelection.from_request(request, {"arm": competition.conditions.names(at=as_of) or [""]})
    selection = selection.with_text("as_of", request.GET.get("as_of", ""))
    return selection, consistency(arm=selection["arm"], at=as_of)


def _figure(selection: PageSelection, figures: Consistency, competition: CompetitionIndex) -> Figure:
    entries, forecasts = [], 0
    for row in figures.forecasters:
        entries.append({**row, "display_name": competition.by_slug[row["family"]].display_name})
        forecasts += row["forecasts"]
    chart = interval_chart(
        entries, "profit", competition.by_slug, interval="profit_ci", x_title="Risk-free profit per question ($)",
        unit="score", baselines={},
    )  # fmt: skip
    title = consistency_sentence(figures, competition.conditions.phrase(selection["arm"]))
    note = (
        "What a portfolio without risk gains from a model’s stated probabilities of one day. Intervals are over events."
    )
    source = f"{count(forecasts)} forecasts, resolved or not"
    return Figure("profit", title, chart, note, source=source, at=figures.at, query=selection.suffix)
