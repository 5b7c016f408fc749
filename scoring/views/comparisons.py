"""Two families beside each other: by what each leads, and whether that is more than chance."""

from collections.abc import Mapping
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.models import Agent, Family
from cohorts.forecasting import BLIND, PRICED
from cohorts.models import Methodology
from scoring.charts import reliability_chart
from scoring.charts.marks import mark_of
from scoring.models import Leaderboard
from scoring.performance import performance
from scoring.services.boards import ALL_METHODOLOGIES, TRADING
from scoring.services.forecast_boards import FORECAST
from scoring.services.head_to_head import POINTS, SETS_LOOKED_AT, disagreements, meetings, opposed
from scoring.views.curves import performance_curves

MOST = 10
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


@require_safe
def comparisons(request: HttpRequest) -> HttpResponse:
    """Every pair of families, with a link to its comparison."""
    families = list(Family.objects.filter(external=False).order_by("pk"))
    pairs = _pairs(Leaderboard.objects.filter(protocol=FORECAST, arm=PRICED, methodology="", category="").first())
    rows = [
        {"family": one, "cells": [(other, pairs.get((one.slug, other.slug))) for other in families]} for one in families
    ]
    return render(request, "scoring/comparisons.html", {"families": families, "rows": rows})


@require_safe
def comparison(request: HttpRequest, first: str, second: str) -> HttpResponse:
    """Two families: both protocols, tests of the difference, their portfolios, and where they disagreed the most."""
    if first == second:
        raise Http404("a family differs from itself in nothing")
    one, other = get_object_or_404(Family, slug=first), get_object_or_404(Family, slug=second)
    boards = {
        (board.protocol, board.arm): board
        for board in Leaderboard.objects.filter(methodology=ALL_METHODOLOGIES, category="")
    }
    found, test = meetings(one, other)
    whole = performance(Agent.objects.filter(family__in=[one, other]), span=None, at=timezone.now())
    curves = performance_curves(whole, {one.slug: one, other.slug: other})
    rows, against = opposed(one, other, most=MOST)
    balance = Methodology.objects.current().starting_balance
    return render(
        request,
        "scoring/comparison.html",
        {
            "first": one,
            "second": other,
            "trading": _figures(boards.get((TRADING, "")), one, other, TRADING_FIGURES),
            "forecast": [
                {
                    "arm": arm,
                    "label": label,
                    "figures": _figures(boards.get((FORECAST, arm)), one, other, FORECAST_FIGURES),
                    "pair": _pairs(boards.get((FORECAST, arm))).get((first, second)),
                }
                for arm, label in ARMS.items()
                if (FORECAST, arm) in boards
            ],
            "pairs": len(getattr(boards.get((FORECAST, PRICED)), "report", {}).get("pairs", [])),
            "diagrams": _diagrams(boards.get((FORECAST, PRICED)), one, other),
            "meetings": found,
            "first_ahead": sum(each.first_return > each.second_return for each in found),
            "second_ahead": sum(each.second_return > each.first_return for each in found),
            "test": test,
            "points": POINTS,
            "curves": curves,
            "chart": curves.chart(balance, height=320),
            "disagreements": disagreements(one, other, PRICED, most=MOST),
            "sets": SETS_LOOKED_AT,
            "opposed": rows,
            "against": against,
            "others": Family.objects.filter(external=False).exclude(pk__in=[one.pk, other.pk]).order_by("pk"),
        },
    )


def _figures(board: Leaderboard | None, one: Family, other: Family, figures: Any) -> list[dict[str, Any]]:
    """The rows of a table: a figure of each, and which of the two is better."""
    entries = {entry["family"]: entry for entry in board.entries} if board else {}
    mine, theirs = entries.get(one.slug), entries.get(other.slug)
    if mine is None or theirs is None:
        return []
    return [
        {
            "label": label,
            "kind": kind,
            "first": mine.get(key),
            "second": theirs.get(key),
            "first_interval": mine.get(_interval(key)),
            "second_interval": theirs.get(_interval(key)),
            "better": _better(mine.get(key), theirs.get(key), direction),
        }
        for label, key, kind, direction in figures
    ]


def _interval(key: str) -> str:
    return "return_ci" if key == "return_percent" else f"{key}_ci"


def _better(mine: Any, theirs: Any, direction: str) -> str:
    if mine is None or theirs is None or not direction or float(mine) == float(theirs):
        return ""
    return "first" if (float(mine) < float(theirs)) == (direction == LOWER) else "second"


def _pairs(board: Leaderboard | None) -> dict[tuple[str, str], Mapping[str, Any]]:
    """The paired tests on record by the two slugs, either way round; a difference is first less second."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for pair in board.report.get("pairs", []) if board else []:
        turned = None if pair["difference"] is None else -pair["difference"]
        found[pair["first"], pair["second"]] = pair
        found[pair["second"], pair["first"]] = pair | {"difference": turned}
    return found


def _diagrams(board: Leaderboard | None, *families: Family) -> list[Any]:
    bins = (board.report.get("curves", {}).get("reliability", {}) if board else {}).get("forecasters", {})
    return [
        reliability_chart(family.display_name, family.color, bins[family.slug], mark_of(family))
        for family in families
        if bins.get(family.slug)
    ]
