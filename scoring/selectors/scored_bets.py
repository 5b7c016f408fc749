"""The fields of trading leaderboards that follow from the scores of bets alone."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, QuerySet

from agents.models import Family
from arena_verifier.trading_leaderboard import BetScore, bet_figures
from markets.models import Market
from scoring.leaderboard_keys import cached_by_inputs
from scoring.models import BrierScore

SCORED = (
    "brier", "brier_ci", "bss_random", "bss_market", "win_rate", "win_rate_ci", "resolved_bets", "resolved_events",
)  # fmt: skip
"""The fields of an entry that follow from scores alone."""
FORMAT = 6
"""The format of cached SCORED fields: those of an older one are computed anew, although scores are the same."""


def past_scores_version(methodology: str, at: datetime | None, category: str = "") -> list[Any]:
    """The key of the scores of a leaderboard, as of an instant or of a category."""
    scores = leaderboard_scores(methodology, at, category)
    version = scores.aggregate(bets=Count("pk"), newest=Max("pk"), resolved_at=Max("resolved_at"))
    return [FORMAT, methodology, category, version]


def leaderboard_scores(methodology: str, at: datetime | None = None, category: str = "") -> QuerySet[BrierScore]:
    """The scores of a leaderboard: all but those of voided cohorts."""
    scores = BrierScore.objects.filter(agent__cohort__voided_at=None).order_by("pk")
    if methodology:
        scores = scores.filter(agent__cohort__methodology__version=methodology)
    if at is not None:
        scores = scores.filter(resolved_at__lte=at)
    return scores.filter(market__category=category) if category else scores


def scored_fields(
    methodology: str, at: datetime | None, category: str, families: Iterable[Family]
) -> dict[int, dict[str, Any]]:
    """The SCORED fields of each family, by id; those of an instant or a category are cached."""

    def compute() -> dict[int, dict[str, Any]]:
        by_family = bets_by_family(leaderboard_scores(methodology, at, category))
        return {family: bet_figures(bets) for family, bets in by_family.items()}

    if at is None and not category:
        scored = compute()
    else:
        scored = cached_by_inputs("past-scores", past_scores_version(methodology, at, category), compute)
    return {family.pk: scored.get(family.pk) or bet_figures(()) for family in families}


def bets_by_family(scores: QuerySet[BrierScore]) -> dict[int, list[BetScore]]:
    events = Market.objects.filter(pk__in=scores.order_by().values("market")).only("source", "event_id")
    event_keys = {market.pk: market.event_key for market in events}
    by_family: dict[int, list[BetScore]] = defaultdict(list)
    # Columns, since a model with its market for each bet would take most of a leaderboard's time.
    columns = ("agent__family", "market", "score", "market_score", "outcome")
    for row in scores.values_list(*columns, named=True):
        by_family[row.agent__family].append(BetScore(row.score, row.market_score, row.outcome, event_keys[row.market]))
    return by_family
