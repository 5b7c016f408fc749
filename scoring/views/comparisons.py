"""Two families beside each other: by what each leads, and whether that is more than chance."""

from typing import Any, NamedTuple

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_safe

from agents.models import Family
from cohorts.forecasting import BLIND, PRICED
from scoring.charts import reliability_chart
from scoring.charts.marks import mark_of
from scoring.compared import Comparison, both_ways
from scoring.compared import comparison as comparison_of
from scoring.overall import Entry, overall
from scoring.roster import roster
from scoring.services.contrasts import SETS_LOOKED_AT
from scoring.services.forecast_boards import FORECAST
from scoring.services.head_to_head import POINTS
from scoring.views.curves import family_curves

ARMS = {PRICED: "with the market’s prices", BLIND: "without prices"}
LOWER, HIGHER = "lower", "higher"
TRADING_FIGURES = (
    ("Mean return", "return_percent", "signed_percent", HIGHER),
    ("Rank", "rank", "count", LOWER),
    ("Mean value", "total_value", "money", HIGHER),
    ("Brier, bet-implied", "brier", "score", LOWER),
    ("Skill over the market", "bss_market", "signed_score", HIGHER),
    ("Win rate", "win_rate", "share", HIGHER),
    ("Resolved bets", "resolved_bets", "count", ""),
    ("Cohorts", "cohorts", "count", ""),
    ("Model cost", "cost_usd", "cost", LOWER),
)
FORECAST_FIGURES = (
    ("Brier", "brier", "score", LOWER),
    ("Rank", "rank", "count", LOWER),
    ("Log score", "log", "signed_score", HIGHER),
    ("Alpha", "alpha", "signed_score", HIGHER),
    ("Top option right", "accuracy", "share", HIGHER),
    ("Calibration error", "ece", "score", LOWER),
    ("Adjusted Brier", "adjusted_brier", "score", LOWER),
    ("Ability, item response", "irt_ability", "signed_score", HIGHER),
    ("Questions", "n", "count", ""),
    ("Coverage", "coverage", "share", ""),
)


class Figure(NamedTuple):
    """The row of a table: a figure of each, and which of the two is better."""

    label: str
    kind: str
    first: Any
    second: Any
    first_interval: Any
    second_interval: Any
    better: str


@require_safe
def comparisons(request: HttpRequest) -> HttpResponse:
    """Every pair of families, with a link to its comparison; `first` and `second` lead straight to one."""
    first, second = request.GET.get("first", ""), request.GET.get("second", "")
    if first and second and first != second:
        one, other = get_object_or_404(Family, slug=first), get_object_or_404(Family, slug=second)
        return redirect("compare", one.slug, other.slug)
    families = list(Family.objects.order_by("external", "pk"))
    ours = [family for family in families if not family.external]
    board = overall(("pairs",)).get((FORECAST, PRICED))
    pairs = both_ways((board and board.parts[0]) or ())
    rows = [{"family": one, "cells": [(other, pairs.get((one.slug, other.slug))) for other in ours]} for one in ours]
    return render(
        request,
        "scoring/comparisons.html",
        {"families": ours, "rows": rows, "choices": families, "first": first, "second": second},
    )


@require_safe
def comparison(request: HttpRequest, first: str, second: str) -> HttpResponse:
    """Two families: both protocols, tests of the difference, their portfolios, and where they disagreed the most."""
    if first == second:
        raise Http404("a family differs from itself in nothing")
    known = roster()
    one, other = (known.by_slug.get(slug) for slug in (first, second))
    if one is None or other is None:
        raise Http404(f"there is no family {first if one is None else second}")
    found = comparison_of(one, other, known)
    curves = family_curves(agent for agent in known.players if agent.family in (one, other))
    balance = known.methodology.starting_balance
    return render(
        request,
        "scoring/comparison.html",
        {
            "first": one,
            "second": other,
            "found": found,
            "trading": _figures(found.first_bets, found.second_bets, TRADING_FIGURES),
            "forecast": [
                {
                    "of": words,
                    "label": ARMS[words.arm],
                    "figures": _figures(words.first, words.second, FORECAST_FIGURES),
                }
                for words in found.words
            ],
            "diagrams": _diagrams(found),
            "points": POINTS,
            "curves": curves,
            "chart": curves.chart(balance, height=320),
            "sets": SETS_LOOKED_AT,
            "others": [
                family for family in known.families.values() if not family.external and family not in (one, other)
            ],
        },
    )


def _figures(mine: Entry | None, theirs: Entry | None, figures: Any) -> list[Figure]:
    if mine is None or theirs is None:
        return []
    return [
        Figure(
            label,
            kind,
            mine.get(key),
            theirs.get(key),
            mine.get(_interval(key)),
            theirs.get(_interval(key)),
            _better(mine.get(key), theirs.get(key), direction),
        )
        for label, key, kind, direction in figures
    ]


def _interval(key: str) -> str:
    return "return_ci" if key == "return_percent" else f"{key}_ci"


def _better(mine: Any, theirs: Any, direction: str) -> str:
    if mine is None or theirs is None or not direction or float(mine) == float(theirs):
        return ""
    return "first" if (float(mine) < float(theirs)) == (direction == LOWER) else "second"


def _diagrams(found: Comparison) -> list[Any]:
    """The reliability of both with the market's prices."""
    bins = next((words.bins for words in found.words if words.arm == PRICED), {})
    return [
        reliability_chart(family.display_name, family.color, bins[family.slug], mark_of(family))
        for family in (found.first, found.second)
        if family.slug in bins
    ]
