"""Paired differences between the conditions of one model, as pages and API read them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.core.cache import cache

from cohorts.conditions import Conditions
from foundation.clock import now
from markets.services.cache_versions import Scope, current_versions
from scoring.competition import competition_index

SIGNIFICANCE = 0.05
LIFETIME_S = 3600


@dataclass(frozen=True, slots=True)
class ConditionDifference:
    """The Brier score of a model under one condition less that under another, on the questions of both.

    n, forecasts, events : common questions, common forecasts on them (a question of two days has two), their events
    difference : below 0 the first condition is better
    p, p_adjusted : two-sided, events as clusters; by Holm for all models and pairs; None of fewer than two events
    interval : of 95 %, corrected as `p_adjusted` is
    """

    family: str
    condition_a: str
    condition_b: str
    n: int
    forecasts: int
    events: int
    difference: float
    se: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    interval: Sequence[float] | None = None

    @property
    def is_significant(self) -> bool:
        return self.p_adjusted is not None and self.p_adjusted < SIGNIFICANCE

    def sentence(self, name: str, conditions: Conditions) -> str:
        """The difference in words, for a model of this name."""
        first, second = conditions.label(self.condition_a), conditions.label(self.condition_b)
        basis = f"on {self.n:,} common question{'' if self.n == 1 else 's'}"
        if self.interval is not None and self.p_adjusted is not None:
            low, high = self.interval
            p = f"= {self.p_adjusted:.3f}" if self.p_adjusted >= 0.0005 else "< 0.001"
            basis = f"95 % interval {_signed(low)} to {_signed(high)}, corrected p {p}, {basis}"
        size = f"{abs(self.difference):.4f}"
        if not self.is_significant:
            return (
                f"{name} forecasts neither significantly better nor worse {first} than {second}: its Brier score"
                f" differs by {size} ({basis})."
            )
        better, lower = ("better", "lower") if self.difference < 0 else ("worse", "higher")
        return f"{name} forecasts {better} {first} than {second}: its Brier score is {size} {lower} ({basis})."


class ConditionDifferences(NamedTuple):
    """The differences of all models and pairs of conditions, and the instant by which their questions had resolved."""

    rows: list[ConditionDifference]
    at: datetime


def read_condition_differences(*, at: datetime | None = None) -> ConditionDifferences:
    """The differences now or by an instant."""

    def compute() -> list[dict[str, Any]]:
        from scoring.services.condition_differences import condition_differences

        return [asdict(row) for row in condition_differences(competition_index().conditions, at=at)]

    rows, computed_at = _cached("condition-differences", at, compute)
    return ConditionDifferences([ConditionDifference(**values) for values in rows], at or computed_at)


def read_sample_figures(*, at: datetime | None = None) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """The figures of forecasts of several samples now or by an instant; empty where each has one."""

    def compute() -> dict[str, Any]:
        from scoring.services.sample_figures import sample_figures

        return sample_figures(at=at)

    figures: Mapping[str, Sequence[Mapping[str, Any]]] = _cached("sample-figures", at, compute)[0]
    return figures


def _cached(name: str, at: datetime | None, compute: Callable[[], Any]) -> tuple[Any, datetime]:
    """What `compute` gives and when, cached until a leaderboard changes."""
    version = current_versions().get(Scope.LEADERBOARDS)
    key = f"{name}:{version}:{at and at.timestamp()}"
    figures: tuple[Any, datetime] | None = cache.get(key) if version else None
    if figures is None:
        figures = compute(), now()
        cache.set(key, figures, LIFETIME_S)
    return figures


def effects(differences: Sequence[ConditionDifference], conditions: Conditions) -> list[str]:
    """What each block or tool alone does, a sentence for each of which a pair of conditions was compared."""
    sentences = []
    for part, (subject, verb) in PARTS.items():
        for pair in conditions.pairs_apart(part):
            rows = [row for row in differences if (row.condition_a, row.condition_b) == pair]
            if rows:
                sentences.append(_effect(rows, subject, verb))
                break
    return sentences


PARTS = {"prices": ("Prices", ""), "evidence": ("Evidence", "s"), "search": ("A search tool", "s")}
"""What a condition may show, as the subject of a sentence, and the ending of its verbs."""


def _effect(rows: Sequence[ConditionDifference], subject: str, verb: str) -> str:
    lowered = sum(row.is_significant and row.difference < 0 for row in rows)
    raised = sum(row.is_significant and row.difference > 0 for row in rows)
    models = f"{len(rows)} model{'' if len(rows) == 1 else 's'}"
    if not lowered and not raised:
        return f"{subject} change{verb} the Brier score of none of {models} significantly."
    parts = [f"lower{verb} the Brier score of {lowered} of {models}"] if lowered else []
    if raised:
        of_models = "that" if lowered else "the Brier score"
        parts.append(f"raise{verb} {of_models} of {raised}" + ("" if lowered else f" of {models}"))
    return f"{subject} {' and '.join(parts)}."


def _signed(value: float) -> str:
    return f"{'−' if value < 0 else '+'}{abs(value):.4f}"
