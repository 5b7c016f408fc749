"""Keys of leaderboards, the scores that rank their entries, stored figures, and the cache of past instants."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from django.core.cache import cache
from django.core.serializers.json import DjangoJSONEncoder

from arena_verifier.rows import same
from cohorts.models import Cohort
from markets.models import QuestionBatch, QuestionSet
from markets.services.cache_versions import Scope, current_versions
from scoring.constants import TRADING

Entry = Mapping[str, Any]
LIFETIME_S = 3600
PAST_LIFETIME_S = 30 * 24 * 3600
"""Past figures hold for good; a cache server without a limit forgets those that nobody has read for a month."""


class LeaderboardKey(NamedTuple):
    """The selection that a leaderboard shows. Empty fields stand for all."""

    protocol: str
    methodology: str = ""
    arm: str = ""
    category: str = ""


def cached_by_inputs(name: str, inputs: Any, compute: Callable[[], Any]) -> Any:
    """The result of `compute`, cached under its inputs, which are read before: no later ones are ever the same."""
    text = json.dumps(inputs, cls=DjangoJSONEncoder)
    key = f"{name}:{sha256(text.encode()).hexdigest()}"
    figures = cache.get(key)
    if figures is None:
        figures = compute()
        cache.set(key, figures, PAST_LIFETIME_S)
    return figures


def cached_by_leaderboards(name: str, compute: Callable[[], Any]) -> Any:
    """The result of `compute`, cached until a leaderboard changes."""
    version = current_versions().get(Scope.LEADERBOARDS)
    key = f"{name}:{version}"
    figures = cache.get(key) if version else None
    if figures is None:
        figures = compute()
        if version:
            cache.set(key, figures, LIFETIME_S)
    return figures


def model_entries(entries: Iterable[Entry]) -> list[Entry]:
    """The entries of the arena's own models, without references and external agents."""
    return [entry for entry in entries if not (entry["reference"] or entry["external"])]


def ranked_by(entries: Sequence[Entry]) -> str:
    """The field of a forecast leaderboard's entries by which it is ranked."""
    return str(entries[0]["ranked_by"]) if entries else "brier"


def ranking_score(entry: Entry) -> float | None:
    """The score by which an entry of a forecast leaderboard is ranked."""
    score: float | None = entry[entry["ranked_by"]]
    return score


def skill_percent(skill: float | None) -> float | None:
    """The skill over equal probabilities, `bss_uniform`, on the scale that boards show beside the Brier score.

    100 × (1 − Brier / Brier of equal probabilities on the same questions): 0 is uniform, 100 is perfect, below 0 is
    worse than uniform; None without a score.
    """
    return None if skill is None else 100 * skill


def ranking_interval(entry: Entry) -> Sequence[float] | None:
    """The 95 % interval of that score."""
    interval: Sequence[float] | None = entry[f"{entry['ranked_by']}_ci"]
    return interval


def versions_in_play(protocol: str) -> list[str]:
    """The versions that cohorts of the trading protocol, or question sets of the forecast protocol, follow."""
    if protocol == TRADING:
        return sorted(Cohort.objects.order_by().values_list("methodology__version", flat=True).distinct())
    return sorted(QuestionSet.objects.order_by().values_list("methodology", flat=True).distinct())


def arms_asked() -> list[str]:
    """The arms of the forecast protocol that have question batches."""
    return sorted(QuestionBatch.objects.order_by().values_list("arm", flat=True).distinct())


def to_json(value: Any) -> Any:
    """The value as a JSON field gives it back."""
    return json.loads(json.dumps(value, cls=DjangoJSONEncoder))


def first_difference(stored: Any, computed: Any, path: str = "") -> str | None:
    """The path of the first difference between two JSON values, and both parts; None where they are the same."""
    if isinstance(stored, dict) and isinstance(computed, dict):
        parts = [(f"{path}.{key}", stored.get(key), computed.get(key)) for key in {**computed, **stored}]
    elif isinstance(stored, list) and isinstance(computed, list) and len(stored) == len(computed):
        parts = [(f"{path}[{place}]", *pair) for place, pair in enumerate(zip(stored, computed, strict=True))]
    else:
        return None if same(stored, computed) else f"{path[1:]} is {stored!r}, should be {computed!r}"
    for inner, stored_part, computed_part in parts:
        if difference := first_difference(stored_part, computed_part, inner):
            return difference
    return None
