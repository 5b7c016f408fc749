"""Comparison of two families: their figures, and whether the difference is more than chance."""

from typing import Any, NamedTuple

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_safe

from agents.models import Family
from arena_site.pages.charts import ReliabilityDiagram, marker_of, reliability_diagram
from arena_site.pages.views.curves import family_curves
from arena_site.pages.views.selection import ARMS
from markets.prompt_conditions import PRICED
from scoring.comparison import Comparison, both_directions
from scoring.comparison import comparison as comparison_of
from scoring.competition import competition_index
from scoring.constants import DETECTABLE_DIFFERENCE, FORECAST
from scoring.disagreements import RECENT_SETS
from scoring.stored_leaderboards import Entry, overall_leaderboards

LOWER, HIGHER = "lower", "higher"
TRADING_FIGURES = (
    ("Mean return", "return_percent", "percent", HIGHER),
    ("Rank", "rank", "count", LOWER),
    ("Mean value", "total_value", "money", HIGHER),
    ("Brier, bet-implied", "brier", "score", LOWER),
    ("Skill over the market", "bss_market", "signed_score", HIGHER),
    ("Win rate", "win_rate", "fraction", HIGHER),
    ("Resolved bets", "resolved_bets", "count", ""),
    ("Cohorts", "cohorts", "count", ""),
    ("Model cost", "cost_usd", "cost", LOWER),
)
FORECAST_FIGURES = (
    ("Brier", "brier", "score", LOWER),
    ("Rank", "rank", "count", LOWER),
    ("Log score", "log", "signed_score", HIGHER),
    ("Alpha", "alpha", "signed_score", HIGHER),
    ("Top option right", "accuracy", "fraction", HIGHER),
    ("Calibration error", "ece", "score", LOWER),
    ("Adjusted Brier", "adjusted_brier", "score", LOWER),
    ("Ability, item response", "irt_ability", "signed_score", HIGHER),
    ("Questions", "n", "count", ""),
    ("Coverage", "coverage", "fraction", ""),
)


class ComparedFigure(NamedTuple):
    """A figure of both families with its intervals; `better` is "first", "second" or empty."""

    label: str
    kind: str
    first: Any
    second: Any
    first_interval: Any
    second_interval: Any
    better: str


@require_safe
def comparisons(request: HttpRequest) -> HttpResponse:
    """Every pair of families; the form's `first` and `second` redirect to their comparison."""
    first, second = request.GET.get("first", ""), request.GET.get("second", "")
    if first and second and first != second:
        return redirect("comparison", *(get_object_or_404(Family, slug=slug).slug for slug in (first, second)))
    families = list(Family.objects.order_by("external", "pk"))
    ranked = [family for family in families if not family.external]
    board = overall_leaderboards(("pairs",)).get((FORECAST, PRICED))
    pairs = both_directions((board and board.parts[0]) or ())
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
    known = competition_index()
    one, other = (known.by_slug.get(slug) for slug in (first, second))
    if one is None or other is None:
        raise Http404(f"there is no family {first if one is None else second}")
    result = comparison_of(one, other, known)
    curves = family_curves(agent for agent in known.agents if agent.family in (one, other))
    balance = known.methodology.starting_balance
    return render(
        request,
        "comparison.html",
        {
            "first": one,
            "second": other,
            "comparison": result,
            "trading": _figures(result.trades.first, result.trades.second, TRADING_FIGURES),
            "forecasts": [
                (arm, ARMS[arm.arm], _figures(arm.first, arm.second, FORECAST_FIGURES)) for arm in result.forecasts
            ],
            "diagrams": _diagrams(result),
            "points": DETECTABLE_DIFFERENCE,
            "curves": curves,
            "chart": curves.chart(balance, height=320),
            "sets": RECENT_SETS,
            "others": [
                family for family in known.families.values() if not family.external and family not in (one, other)
            ],
        },
    )


def _figures(first: Entry | None, second: Entry | None, figures: Any) -> list[ComparedFigure]:
    if first is None or second is None:
        return []
    return [
        ComparedFigure(
            label,
            kind,
            first.get(key),
            second.get(key),
            first.get(_interval_key(key)),
            second.get(_interval_key(key)),
            _better(first.get(key), second.get(key), direction),
        )
        for label, key, kind, direction in figures
    ]


def _interval_key(key: str) -> str:
    return "return_ci" if key == "return_percent" else f"{key}_ci"


def _better(first: Any, second: Any, direction: str) -> str:
    if first is None or second is None or not direction or float(first) == float(second):
        return ""
    return "first" if (float(first) < float(second)) == (direction == LOWER) else "second"


def _diagrams(comparison: Comparison) -> list[ReliabilityDiagram]:
    """Both families' reliability when they are shown the market's prices."""
    bins = next((arm.bins for arm in comparison.forecasts if arm.arm == PRICED), {})
    return [
        reliability_diagram(family.display_name, family.color, bins[family.slug], marker_of(family))
        for family in (comparison.first, comparison.second)
        if family.slug in bins
    ]
