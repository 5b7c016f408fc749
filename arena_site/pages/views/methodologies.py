"""Methodology versions: their rules, formulas, prompts and known limits."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from agents.models import Chain
from agents.models.family import EXTERNAL_WINDOW
from arena_site.pages.filters import count, dollars, price
from arena_site.pages.formulas import scoring_formulas
from cohorts.models import Methodology

if TYPE_CHECKING:
    from cohorts.forecast_rules import ForecastRules

# Appendix B of the source's scoring document.
BRIER_BANDS = (
    ("0.00", "Perfect"),
    ("0.00 to 0.10", "Excellent"),
    ("0.10 to 0.20", "Good"),
    ("0.20 to 0.25", "Fair (at or near random)"),
    ("0.25 to 0.40", "Poor"),
    ("0.40 and above", "Very poor"),
)
RETURN_BANDS = (
    ("above +50 %", "Exceptional"),
    ("+20 % to +50 %", "Excellent"),
    ("+5 % to +20 %", "Good"),
    ("−5 % to +5 %", "Neutral"),
    ("−20 % to −5 %", "Poor"),
    ("below −20 %", "Very poor"),
)

TINY = Decimal("0.0005")
"""A price at which a large bet buys more shares than anybody sells."""
LIMITS = (
    "The Brier score of bets takes the size of a bet for a probability. It is a share of cash, so this is not a proper "
    "score; that of stated forecasts is.",
    "Cohorts overlap and bet on the same markets, so intervals over cohorts are too narrow. They use Student’s t where "
    "the sources write 1.96.",
    "Hosted models change behind stable names. The model and the provider that answered are kept with every call.",
    "Parameters are not equal: a release that ignores temperature or reasoning is not sent it, so not all answer "
    "at temperature 0.",
    f"External agents could wait for news: their deadline is {EXTERNAL_WINDOW // timedelta(minutes=1)} minutes after "
    "the freeze, and they are ranked apart.",
    "Questions of many options score lower in the mean form: it is at most 2/n for n options that exclude each other.",
    "The texts of markets belong to their venues; archives say under what terms they may be used.",
)
"""Limits of all versions; `_depth_limit` adds the one of a version's bets."""


@require_safe
def methodology(request: HttpRequest, version: str | None = None) -> HttpResponse:
    """A published version in full; by default the one of new cohorts."""
    published = Methodology.objects.filter(published_at__isnull=False).prefetch_related("cohorts")
    current = Methodology.objects.current()
    shown = get_object_or_404(published, version=version or current.version)
    rules = shown.forecast_rules
    return render(
        request,
        "methodology.html",
        {
            "methodology": shown,
            "current": current,
            "versions": published.order_by("published_at", "pk"),
            "maximum_bet_percent": shown.maximum_bet_fraction * 100,
            "retry_hours": shown.retry_window.total_seconds() / 3600,
            "forecast": rules,
            "category_percent": rules and rules.category_share * 100,
            "prompts": [*_prompts(shown), *(_prompts(rules, prefix="Forecasts: ") if rules else ())],
            "formulas": scoring_formulas(shown),
            "limits": (_depth_limit(shown), *LIMITS),
            "chains": Chain.objects.all(),
            "bands": (("Brier score", BRIER_BANDS), ("Return", RETURN_BANDS)),
        },
    )


def _depth_limit(rules: Methodology) -> str:
    """The missing depth of paper trades, by the example of the largest first bet."""
    largest = rules.maximum_bet(rules.starting_balance)
    return (
        f"Paper trades have no depth. At a price of {price(TINY)} a bet of {dollars(largest)} is "
        f"{count(largest / TINY)} shares, which nobody would sell, and one tick doubles it. Each agent’s page shows "
        "which part of its profit or loss its largest position is."
    )


def _prompts(rules: Methodology | ForecastRules, prefix: str = "") -> list[tuple[str, str]]:
    """A protocol's prompts and retry notes with their titles."""
    return [
        (f"{prefix}System prompt", rules.system_prompt),
        (f"{prefix}User prompt", rules.user_prompt),
        (f"{prefix}Note after a malformed answer", rules.malformed_note),
        (f"{prefix}Note after an answer of which nothing could be carried out", rules.refused_note),
    ]
