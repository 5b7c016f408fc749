"""Everything that the arena derives and stores: one list to verify and to rebuild it from the facts."""

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial

from django.db.models import Model

from markets.models import CacheVersion
from markets.services.cache_versions import cache_version_drift
from scoring.models import AgentsBoard, BrierScore, FamilyTotal, ForecastScore, Leaderboard
from scoring.services.family_totals import family_total_drift
from scoring.services.leaderboard_drift import agents_board_drift, leaderboard_drift
from scoring.services.score_drift import brier_score_drift, forecast_score_drift


def comparisons(at: datetime) -> dict[type[Model], Callable[..., Iterator[str]]]:
    """The comparison of each derived model's rows with the facts; leaderboards last, since they follow from scores."""
    return {
        CacheVersion: cache_version_drift,
        FamilyTotal: family_total_drift,
        BrierScore: partial(brier_score_drift, at=at),
        ForecastScore: partial(forecast_score_drift, at=at),
        Leaderboard: partial(leaderboard_drift, at=at),
        AgentsBoard: partial(agents_board_drift, at=at),
    }


def rebuild_derived(
    *, at: datetime, progress: Callable[[int, int], None] = lambda index, of: None
) -> tuple[int, list[str]]:
    """Computes every derived row from the facts and replaces those that differ; right ones are not touched.

    Returns the number of derived rows, and a line for each that had drifted.
    """
    drift, compare_by_model = [], comparisons(at)
    for index, compare in enumerate(compare_by_model.values()):
        progress(index, len(compare_by_model))
        drift += list(compare(repair=True))
    return sum(model._default_manager.count() for model in compare_by_model), drift
