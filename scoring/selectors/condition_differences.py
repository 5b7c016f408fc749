"""Paired differences between the conditions of one model, as pages and API read them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from cohorts.conditions import Conditions
from foundation.clock import now
from scoring.constants import SIGNIFICANCE
from scoring.selectors.forecast_boards import report_part

PARTS = {"prices": ("Prices", ""), "evidence": ("Evidence", "s"), "search": ("A search tool", "s")}
"""What a condition may show, as the subject of a sentence, and the ending of its verbs."""


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
    def pair(self) -> tuple[str, str]:
        return self.condition_a, self.condition_b

    @property
    def is_significant(self) -> bool:
        return self.p_adjusted is not None and self.p_adjusted < SIGNIFICANCE

    def sentence(self, name: str, conditions: Conditions) -> str:
        """The difference in words, for a model of this name."""
        first, second = map(conditions.label, self.pair)
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


class ConditionFigures(NamedTuple):
    """The differences of all models and pairs, and the figures of samples, of questions that had resolved by `at`.

    spread, later : see `sample_figures`
    """

    differences: list[ConditionDifference]
    spread: Sequence[Mapping[str, Any]]
    later: Sequence[Mapping[str, Any]]
    at: datetime


def condition_figures(*, at: datetime | None = None) -> ConditionFigures:
    """The figures that the board reports, or those of a past instant."""
    report, computed_at = report_part("conditions", arm="", at=at)
    differences = [ConditionDifference(**values) for values in report["differences"]]
    return ConditionFigures(differences, report["spread"], report["later"], computed_at or now())


def effects(differences: Sequence[ConditionDifference], conditions: Conditions) -> list[str]:
    """What each block or tool alone does, a sentence for each of which a pair of conditions was compared."""
    sentences = []
    for part, (subject, ending) in PARTS.items():
        for pair in conditions.pairs_apart(part):
            rows = [row for row in differences if row.pair == pair]
            if rows:
                sentences.append(_effect(rows, subject, ending))
                break
    return sentences


def _effect(rows: Sequence[ConditionDifference], subject: str, ending: str) -> str:
    lowered = sum(row.is_significant and row.difference < 0 for row in rows)
    raised = sum(row.is_significant and row.difference > 0 for row in rows)
    models = f"{lowered or 'none'} of {len(rows)} model{'' if len(rows) == 1 else 's'}"
    rise = f" and raise{ending} that of {raised}" if raised else ""
    return f"{subject} lower{ending} the Brier score of {models}{rise}."


def _signed(value: float) -> str:
    return f"{'−' if value < 0 else '+'}{abs(value):.4f}"
