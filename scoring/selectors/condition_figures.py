"""The figures of the page of conditions: those of the newest leaderboards, cached until one changes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, NamedTuple

from django.core.cache import cache
from django.db.models import Max

from foundation.clock import now
from markets.services.cache_versions import Scope, current_versions
from scoring.models import Leaderboard
from scoring.selectors.competition import competition_index
from scoring.selectors.condition_differences import ConditionDifference

LIFETIME_S = 3600


class ConditionFigures(NamedTuple):
    """The differences of all models and pairs, and the figures of samples, of questions that had resolved by `at`.

    spread, later : see `sample_figures`
    """

    differences: list[ConditionDifference]
    spread: Sequence[Mapping[str, Any]]
    later: Sequence[Mapping[str, Any]]
    at: datetime


def condition_figures(*, at: datetime | None = None) -> ConditionFigures:
    """The figures by an instant, else by that of the newest leaderboards."""
    version = current_versions().get(Scope.LEADERBOARDS)
    key = f"conditions:{version}:{at and at.timestamp()}"
    stored = cache.get(key) if version else None
    if stored is None:
        at = at or Leaderboard.objects.aggregate(newest=Max("computed_at"))["newest"]
        from scoring.services.condition_differences import condition_differences
        from scoring.services.sample_figures import sample_figures

        rows = list(map(asdict, condition_differences(competition_index().conditions, at=at)))
        stored = {"differences": rows, **sample_figures(at=at), "at": at or now()}
        cache.set(key, stored, LIFETIME_S)
    differences = [ConditionDifference(**values) for values in stored["differences"]]
    return ConditionFigures(**{**stored, "differences": differences})
