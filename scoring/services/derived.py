"""Everything that the arena derives and stores: one list to verify and to rebuild it from the facts."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agents.models import UniverseCost
from agents.services.universe_costs import universe_cost_drift
from markets.models import CacheVersion
from markets.services.cache_versions import cache_version_drift
from scoring.models import (
    BrierScore,
    FamilyTotal,
    ForecastScore,
    Leaderboard,
    LeaderboardHistory,
    StoredDisagreement,
)
from scoring.services.disagreements import disagreement_drift
from scoring.services.family_totals import family_total_drift
from scoring.services.leaderboard_history import DAILY_LIMIT, backfill_history, leaderboard_history_drift
from scoring.services.score_drift import brier_score_drift, forecast_score_drift, leaderboard_drift

DRIFT = {
    CacheVersion: cache_version_drift,
    UniverseCost: universe_cost_drift,
    FamilyTotal: family_total_drift,
    BrierScore: brier_score_drift,
    ForecastScore: forecast_score_drift,
    Leaderboard: leaderboard_drift,
    StoredDisagreement: disagreement_drift,
    LeaderboardHistory: leaderboard_history_drift,
}
"""By derived model, what compares its rows with the facts; past leaderboards last, since they follow from scores."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """How many derived rows there are after a rebuild, and a line for each that had drifted."""

    rows: int
    drift: list[str]


def derived_drift(*, repair: bool = False) -> Iterator[str]:
    """A line for each derived row that does not follow from the facts; with `repair`, it is made right."""
    for compare in DRIFT.values():
        yield from compare(repair=repair)


def rebuild_derived(progress: Callable[[int, int], None] = lambda done, of: None) -> Rebuilt:
    """Computes every derived row from the facts and replaces those that differ; right ones are not touched."""
    drift = []
    for done, compare in enumerate(DRIFT.values()):
        progress(done, len(DRIFT))
        drift += list(compare(repair=True))
    backfill_history(limit=DAILY_LIMIT)
    return Rebuilt(sum(model._default_manager.count() for model in DRIFT), drift)
