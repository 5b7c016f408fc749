"""Luck and risk of the traders."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.intervals import interval_chart
from arena_site.pages.filters import count, fraction
from arena_site.pages.freshness import requested_instant
from arena_site.pages.headlines import trading_headline
from arena_site.pages.selection import PageSelection, all_or_one
from scoring.constants import ALL_METHODOLOGIES, RISK_RESAMPLES, RISK_SIMULATIONS, SIGNIFICANCE, TRADING
from scoring.leaderboard_keys import versions_in_play
from scoring.selectors.competition import competition_index
from scoring.selectors.leaderboard_entries import RiskFigures, risk_figures


@require_safe
def risk(request: HttpRequest) -> HttpResponse:
    """Whether the leader was lucky, and what each model risked."""
    as_of, competition = requested_instant(request, timezone.now()), competition_index()
    versions = versions_in_play(TRADING)
    selection = PageSelection.dated(request, {"methodology": [ALL_METHODOLOGIES, *versions]})
    figures = risk_figures(selection["methodology"], at=as_of)
    rows, at = figures.rows, figures.at or timezone.now()
    headline = trading_headline(rows, [], competition.cohorts.values(), at=at)
    context = {
        "as_of": as_of,
        "whole": True,
        "filters": selection.filter_links(
            [("Methodology", "methodology", all_or_one("all versions", versions, minimum=2))]
        ),
        "sentences": luck_sentences(headline.leader, figures, headline.condition) if headline else [],
        "rows": competition.with_families(rows, "family"),
        "figure": _figure(figures, competition.by_slug, selection.suffix),
        "simulations": RISK_SIMULATIONS,
        "resamples": RISK_RESAMPLES,
    }
    return TemplateResponse(request, "risk.html", context)


def luck_sentences(leader: Mapping[str, Any], figures: RiskFigures, condition: str) -> list[str]:
    """How often the model of the highest mean return is first in resamples, and how often chance does as well."""
    name, sentences = leader["display_name"], []
    if leader["first_share"] is not None:
        sentences.append(
            f"{name} has the highest mean return {condition} and is first in {fraction(leader['first_share'])} of"
            f" {count(RISK_RESAMPLES)} resamples of the {count(figures.weeks)} calendar weeks."
        )
    if leader["luckiest_bettor_share"] is not None:
        stakes, simulations = leader["resolved_stakes"], count(RISK_SIMULATIONS)
        models = sum(row["rank"] is not None and row["resolved_stakes"] > 0 for row in figures.rows)
        lucky = leader["luckiest_bettor_share"] >= SIGNIFICANCE
        verdict = "no profit beyond luck is shown" if lucky else "luck alone hardly explains its profit"
        sentences.append(
            f"A bettor at the market’s own odds with the {count(stakes)} resolved stake{'' if stakes == 1 else 's'}"
            f" of {name} does as well in {fraction(leader['odds_bettor_share'])} of {simulations} simulations, and the"
            f" luckiest of {count(models)} such bettors, one for each model, in"
            f" {fraction(leader['luckiest_bettor_share'])}: {verdict}."
        )
    return sentences


def _figure(figures: RiskFigures, families: Mapping[str, Any], query: str) -> Figure | None:
    """The Sharpe ratios with their intervals."""
    rows: Sequence[Mapping[str, Any]] = [row for row in figures.rows if row["sharpe"] is not None]
    if not rows:
        return None
    rows = sorted(rows, key=lambda row: -row["sharpe"])
    chart = interval_chart(
        rows, "sharpe", families, x_title="Sharpe ratio of weekly returns", unit="signed_score",
        baselines={"No return": 0.0},
    )  # fmt: skip
    intervals = [row["sharpe_ci"] for row in rows if row["sharpe_ci"] is not None]
    above = sum(low > 0 for low, _ in intervals)
    title = f"The interval of the Sharpe ratio lies above 0 for {count(above)} of {count(len(intervals))} models."
    if not intervals:
        title = "The Sharpe ratio of each model, of too few calendar weeks for an interval."
    note = (
        "Mean weekly return by its standard deviation; 95 % intervals, each for one model by itself, by a studentised"
        " bootstrap over calendar weeks."
    )
    source = f"{count(figures.weeks)} calendar weeks"
    return Figure("sharpe", title, chart, note, source=source, at=figures.at, query=query)
