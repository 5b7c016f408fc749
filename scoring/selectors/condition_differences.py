"""Paired differences between the conditions of one model, as pages and API read them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from cohorts.conditions import Conditions
from foundation.clock import present
from scoring.constants import SIGNIFICANCE
from scoring.selectors.claims import LEAST_EVENTS
from scoring.selectors.forecast_boards import report_part

PARTS = {"prices": ("Prices", "are"), "evidence": ("Evidence", "is"), "search": ("A search tool", "is")}
"""What a condition may show, as the subject of a sentence, and its verb."""


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
    def bears_claim(self) -> bool:
        return self.events >= LEAST_EVENTS

    @property
    def is_significant(self) -> bool:
        return self.bears_claim and self.p_adjusted is not None and self.p_adjusted < SIGNIFICANCE

    def sentence(self, name: str, conditions: Conditions) -> str:
        """The difference in words, for a model of this name."""
        first, second = map(conditions.label, self.pair)
        if not self.bears_claim:
            few = f"too few events of common questions for a claim yet, {self.events} of the {LEAST_EVENTS}"
            return f"{name} {first} and {second}: {few} that it needs."
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
    """The differences of all models and pairs, of questions that had resolved by `at`."""

    differences: list[ConditionDifference]
    at: datetime


def condition_figures() -> ConditionFigures:
    """The figures that the board reports."""
    report, computed_at = report_part("conditions", arm="")
    differences = [ConditionDifference(**values) for values in report["differences"]]
    return ConditionFigures(differences, computed_at or present())


def effects(differences: Sequence[ConditionDifference], conditions: Conditions) -> list[str]:
    """What each block or tool alone does, a sentence for each of which a pair of conditions was compared."""
    sentences = []
    for part, (subject, be) in PARTS.items():
        for pair in conditions.pairs_apart(part):
            rows = [row for row in differences if row.pair == pair]
            if rows:
                sentences.append(_effect(rows, subject, be))
                break
    return sentences


def _effect(differences: Sequence[ConditionDifference], subject: str, be: str) -> str:
    rows = [row for row in differences if row.bears_claim]
    if not rows:
        return f"{subject}: too few events for a claim yet."
    lowered = sum(row.is_significant and row.difference < 0 for row in rows)
    raised = sum(row.is_significant and row.difference > 0 for row in rows)
    models = f"{lowered or 'none'} of {len(rows)} model{'' if len(rows) == 1 else 's'}"
    rise = f" and to raise that of {raised}" if raised else ""
    return f"{subject} {be} shown to lower the Brier score of {models}{rise}, by corrected paired tests."


def _signed(value: float) -> str:
    return f"{'−' if value < 0 else '+'}{abs(value):.4f}"
