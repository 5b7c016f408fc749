"""Comparison of two families: their figures, and whether the difference is more than chance."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from agents.models import Family
from arena_site.pages.addresses import family_slug
from arena_site.pages.charts.calibration import reliability_figure
from arena_site.pages.charts.diagrams import reliability_diagram
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.portfolios import RETURNS_TITLE, returns_figure
from arena_site.pages.comparison_sentences import LEAST_DATA, Verdict, forecast_verdict, pair_rows, trading_verdict
from arena_site.pages.filters import page_url
from arena_site.pages.headlines import unfinished_words
from cohorts.conditions import Conditions
from foundation.bulk import rows_by
from foundation.clock import present
from scoring.constants import FORECAST
from scoring.selectors.claims import questions_per_week
from scoring.selectors.cohort_returns import cohort_returns
from scoring.selectors.comparison import Comparison, ForecastComparison, both_directions
from scoring.selectors.comparison import comparison as comparison_of
from scoring.selectors.competition import CompetitionIndex, competition_index, unfinished_ages
from scoring.selectors.disagreements import RECENT_SETS
from scoring.selectors.leaderboard_entries import overall_leaderboards


@require_safe
def comparisons(request: HttpRequest) -> HttpResponse:
    """Every pair of families; the form's `first` and `second` redirect to their comparison."""
    first, second = request.GET.get("first", ""), request.GET.get("second", "")
    if first and second and first != second:
        return redirect(page_url("comparison", family_slug(first), family_slug(second)))
    families = list(Family.objects.order_by("external", "pk"))
    ranked = [family for family in families if not family.external]
    conditions = competition_index().conditions
    board = conditions.board()
    leaderboard = overall_leaderboards(("pairs",)).get((FORECAST, board))
    pairs = both_directions(pair_rows([], (leaderboard and leaderboard.parts[0]) or (), None))
    rows = []
    for family in ranked:
        cells = [(rival, pairs.get((family.slug, rival.slug))) for rival in ranked]
        rows.append({"family": family, "cells": cells})
    return render(
        request,
        "comparisons.html",
        {
            "families": ranked,
            "rows": rows,
            "choices": families,
            "first": first,
            "second": second,
            "condition": conditions.phrase(board),
            "least_data": LEAST_DATA,
        },
    )


@require_safe
def comparison(request: HttpRequest, first: str, second: str) -> HttpResponse:
    """Two families under both protocols: tests of their difference, portfolios and largest disagreements."""
    competition = competition_index()
    first_family, second_family = _families(competition, first, second)
    result = comparison_of(first_family, second_family, competition)
    trades = result.trades.test
    cohorts = [shared.cohort for shared in result.trades.cohorts]
    returns = _returns_figure(first_family, second_family, competition)
    conditions = competition.conditions
    board_condition = conditions.board()
    calibration = _calibration_figure(result, board_condition)
    return TemplateResponse(
        request,
        "comparison.html",
        {
            "first": first_family,
            "second": second_family,
            "comparison": result,
            "ages": unfinished_words(unfinished_ages(cohorts, present())),
            "trading_verdict": trades and trading_verdict(first_family, second_family, trades),
            "forecasts": _forecasts(result, conditions),
            "board_label": conditions.label(board_condition),
            "returns": returns,
            "calibration": calibration,
            "shared_figure": returns or calibration,
            "sets": RECENT_SETS,
            "others": [family for family in competition.ranked_families if family not in (first_family, second_family)],
        },
    )


def _forecasts(result: Comparison, conditions: Conditions) -> list[tuple[ForecastComparison, str, Verdict | None]]:
    """The comparison in each arm, its condition in words, and the verdict; None without a common question."""
    rows = []
    for arm in result.forecasts:
        pace = questions_per_week(arm.computed_at)
        verdict = forecast_verdict(result.first, result.second, arm.test, pace) if arm.test and arm.test["n"] else None
        rows.append((arm, conditions.label(arm.arm), verdict))
    return rows


def _families(competition: CompetitionIndex, first: str, second: str) -> tuple[Family, Family]:
    """The two families. Raises Http404 for one and the same."""
    if first == second:
        raise Http404("a family can not be compared with itself")
    return competition.by_slug[first], competition.by_slug[second]


def _returns_figure(family: Family, rival: Family, competition: CompetitionIndex) -> Figure | None:
    """Both families' returns by weeks since a cohort's start."""
    agents = [agent for agent in competition.counted if agent.family in (family, rival)]
    names = f"{family.display_name} and {rival.display_name}"
    title = RETURNS_TITLE.format(whose=names)
    returns = cohort_returns(agents, at=present())
    return returns_figure(returns, agents, {family.slug: family, rival.slug: rival}, title, height=360)


def _calibration_figure(comparison: Comparison, arm: str) -> Figure | None:
    """Both families' reliability in an arm."""
    board = rows_by("arm", comparison.forecasts).get(arm)
    if board is None:
        return None
    bins, at = board.bins, board.computed_at
    diagrams = []
    for family in (comparison.first, comparison.second):
        if family_bins := bins.get(family.slug):
            diagrams.append(reliability_diagram(family.display_name, family_bins, family))
    names = " or ".join(diagram.name for diagram in diagrams)
    condition = competition_index().conditions.label(arm)
    return reliability_figure(diagrams, forecasters=names, condition=condition, at=at)
