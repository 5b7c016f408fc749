"""Comparison of two families: their figures, and whether the difference is more than chance."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_safe

from agents.models import Family
from arena_site.pages.charts.diagrams import SquareDiagram, reliability_diagram
from arena_site.pages.charts.portfolio_values import family_chart
from arena_site.pages.selection import ARMS
from markets.prompt_conditions import PRICED
from scoring.comparison import Comparison, both_directions
from scoring.comparison import comparison as comparison_of
from scoring.competition import competition_index
from scoring.constants import DETECTABLE_DIFFERENCE, FORECAST
from scoring.disagreements import RECENT_SETS
from scoring.leaderboard_entries import overall_leaderboards


@require_safe
def comparisons(request: HttpRequest) -> HttpResponse:
    """Every pair of families; the form's `first` and `second` redirect to their comparison."""
    first, second = request.GET.get("first", ""), request.GET.get("second", "")
    if first and second and first != second:
        return redirect("comparison", *(get_object_or_404(Family, slug=slug).slug for slug in (first, second)))
    families = list(Family.objects.order_by("external", "pk"))
    ranked = [family for family in families if not family.external]
    leaderboard = overall_leaderboards(("pairs",)).get((FORECAST, PRICED))
    pairs = both_directions((leaderboard and leaderboard.parts[0]) or ())
    rows = [
        {"family": one, "cells": [(other, pairs.get((one.slug, other.slug))) for other in ranked]} for one in ranked
    ]
    return render(
        request,
        "comparisons.html",
        {"families": ranked, "rows": rows, "choices": families, "first": first, "second": second},
    )


@require_safe
def comparison(request: HttpRequest, first: str, second: str) -> HttpResponse:
    """Two families under both protocols: tests of their difference, portfolios and largest disagreements."""
    if first == second:
        raise Http404("a family can not be compared with itself")
    competition = competition_index()
    one, other = (competition.by_slug.get(slug) for slug in (first, second))
    if one is None or other is None:
        raise Http404(f"there is no family {first if one is None else second}")
    result = comparison_of(one, other, competition)
    agents = [agent for agent in competition.agents if agent.family in (one, other)]
    ranked = [family for family in competition.families.values() if not family.external]
    return render(
        request,
        "comparison.html",
        {
            "first": one,
            "second": other,
            "comparison": result,
            "forecasts": [(arm, ARMS[arm.arm]) for arm in result.forecasts],
            "diagrams": _diagrams(result),
            "points": DETECTABLE_DIFFERENCE,
            "chart": family_chart(agents, competition.methodology.starting_balance, height=320),
            "sets": RECENT_SETS,
            "others": [family for family in ranked if family not in (one, other)],
        },
    )


def _diagrams(comparison: Comparison) -> list[SquareDiagram]:
    """Both families' reliability when they are shown the market's prices."""
    bins = next((arm.bins for arm in comparison.forecasts if arm.arm == PRICED), {})
    return [
        reliability_diagram(family.display_name, bins[family.slug], family)
        for family in (comparison.first, comparison.second)
        if family.slug in bins
    ]
