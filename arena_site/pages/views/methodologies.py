"""Methodology versions: their rules, formulas, prompts and known limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from agents.models import Chain
from arena_site.pages import interval_coverage
from arena_site.pages.formulas import scoring_formulas
from cohorts.models import Methodology
from scoring.constants import FORECAST, MARKET, UNIFORM
from scoring.selectors.leaderboard_entries import leaderboard_entries

if TYPE_CHECKING:
    from cohorts.forecast_rules import ForecastRules


PLAINER = {
    "; besides, never to be bet on, every other market that an agent of the run holds.": (
        ". Markets an agent already holds are listed too, but nobody may bet on them."
    ),
    "It qualifies while its markets are open and priced, at least two options strictly between 0 and 1, with the least "
    "volume and the most options named here.": (
        "A question qualifies if its markets are open and priced, two or more options are neither 0 nor 1, and it "
        "meets the limits below."
    ),
}
"""Sentences of published rules, whose wording may not change, with what the page says instead."""


@require_safe
def methodology(request: HttpRequest, version: str | None = None) -> HttpResponse:
    """A published version in full; by default the one of new cohorts."""
    published = Methodology.objects.filter(published_at__isnull=False).prefetch_related("cohorts")
    current = Methodology.objects.current()
    row = get_object_or_404(published, version=version or current.version)
    rules = row.forecast_rules
    return render(
        request,
        "methodology.html",
        {
            "methodology": row,
            "current": current,
            "versions": published.order_by("published_at", "pk"),
            "universe_rule": _plainly(row.universe_rule),
            "choice_rule": _plainly(rules.choice_rule) if rules else "",
            "retry_hours": row.retry_window.total_seconds() / 3600,
            "forecast": rules,
            "category_share": rules and rules.category_share,
            "prompts": [*_prompts(row), *(_prompts(rules, prefix="Forecasts: ") if rules else ())],
            "formulas": scoring_formulas(row),
            "anchors": _anchors(),
            "coverage": interval_coverage,
            "chains": Chain.objects.all(),
            "largest_first_bet": row.maximum_bet(row.starting_balance),
        },
    )


def _plainly(rule: str) -> str:
    for sentence, plainer in PLAINER.items():
        rule = rule.replace(sentence, plainer)
    return rule


def _anchors() -> dict[str, float] | None:
    """The Brier scores of the market and of equal probabilities on the current leaderboard; None while one lacks."""
    scores = {entry["forecaster"]: entry["brier"] for entry in leaderboard_entries(FORECAST)}
    market, uniform = scores.get(MARKET), scores.get(UNIFORM)
    return None if market is None or uniform is None else {"market": market, "uniform": uniform}


def _prompts(rules: Methodology | ForecastRules, prefix: str = "") -> list[tuple[str, str]]:
    """A protocol's prompts and retry notes with their titles."""
    return [
        (f"{prefix}System prompt", rules.system_prompt),
        (f"{prefix}User prompt", rules.user_prompt),
        (f"{prefix}Note after a malformed answer", rules.malformed_note),
        (f"{prefix}Note after an answer with no executable instruction", rules.refused_note),
    ]
