"""Luck and risk of the traders."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from arena_site.pages.comparison_sentences import plural, too_few
from arena_site.pages.filters import count, fraction
from arena_site.pages.headlines import trading_headline
from arena_site.pages.selection import PageSelection, all_or_one
from foundation.clock import present
from scoring.constants import ALL_METHODOLOGIES, RISK_SIMULATIONS, SIGNIFICANCE, TRADING
from scoring.leaderboard_keys import versions_in_play
from scoring.selectors.claims import EVENTS, LEAST_EVENTS, Shortage
from scoring.selectors.competition import competition_index
from scoring.selectors.leaderboard_entries import RiskFigures, risk_figures


@require_safe
def risk(request: HttpRequest) -> HttpResponse:
    """Whether the leader was lucky, and what each model risked."""
    competition = competition_index()
    versions = versions_in_play(TRADING)
    selection = PageSelection.from_request(request, {"methodology": [ALL_METHODOLOGIES, *versions]})
    figures = risk_figures(selection["methodology"])
    rows, at = figures.rows, figures.at or present()
    headline = trading_headline(rows, [], competition.cohorts.values(), at=at)
    context = {
        "selection": selection,
        "filters": selection.filter_links(
            [("Methodology", "methodology", all_or_one("all versions", versions, minimum=2))]
        ),
        "sentences": luck_sentences(headline.leader, figures) if headline else [],
        "rows": competition.with_families(rows, "family"),
        "simulations": RISK_SIMULATIONS,
    }
    return TemplateResponse(request, "risk.html", context)


def luck_sentences(leader: Mapping[str, Any], figures: RiskFigures) -> list[str]:
    """How often chance does as well as the model of the highest mean return; no figure of fewer than ten events."""
    name, share = leader["display_name"], leader["luckiest_bettor_share"]
    if share is None:
        return []
    if leader["resolved_events"] < LEAST_EVENTS:
        lack = Shortage(EVENTS, leader["resolved_events"], LEAST_EVENTS, effective=False)
        return [f"Whether {name} was lucky: {too_few(lack)}."]
    stakes = plural(leader["resolved_stakes"], "resolved stake")
    models = sum(row["rank"] is not None and row["resolved_stakes"] > 0 for row in figures.rows)
    verdict = "no profit beyond luck is shown" if share >= SIGNIFICANCE else "luck alone hardly explains its profit"
    return [
        f"A bettor at the market’s own odds with the {stakes} of {name} does as well in"
        f" {fraction(leader['odds_bettor_share'])} of {count(RISK_SIMULATIONS)} simulations, and the luckiest of"
        f" {count(models)} such bettors, one for each model, in {fraction(share)}: {verdict}."
    ]
