"""Consistency of each model's forecasts, as pages and API read it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from scoring.forecast_boards import forecast_board

KINDS = {
    "sum": "Exclusive options sum to 1",
    "most": "Markets of which at most one happens sum to at most 1",
    "same": "One market, asked twice on a day",
    "nested": "A higher threshold is no more likely",
    "venues": "One question at two venues",
}
"""The relations between stated probabilities that are checked, in words."""


class Consistency(NamedTuple):
    """The figures of each model in one condition, most consistent first, and their rank correlation with Brier.

    forecasters, spearman : see `services.consistency.consistency_figures`
    """

    arm: str
    forecasters: Sequence[Mapping[str, Any]]
    spearman: Mapping[str, Any]
    at: datetime | None


def consistency_sentence(figures: Consistency, condition: str) -> str:
    """The relation of consistency to the Brier score in words; empty without forecasts."""
    if not figures.forecasters:
        return ""
    profits = [row["profit"] for row in figures.forecasters]
    span = f"{_dollars(min(profits))} to {_dollars(max(profits))}"
    lead = f"A risk-free portfolio gains {span} a question from a model’s forecasts"
    value, interval = (figures.spearman.get(key) for key in ("value", "interval"))
    if value is None or interval is None:
        return f"{lead} {condition}; there are too few models or events to relate this to the Brier score."
    basis = f"Spearman {_signed(value)} over {figures.spearman['models']} models, 95 % interval"
    basis = f"{basis} {_signed(interval[0])} to {_signed(interval[1])}"
    if interval[0] <= 0 <= interval[1]:
        return f"{lead} {condition}; no relation to the Brier score is shown ({basis})."
    relation = "lower" if value > 0 else "higher"
    return f"{lead} {condition}; more consistent models have {relation} Brier scores ({basis})."


def _dollars(value: float) -> str:
    return f"${value:.4f}" if value == 0 or value >= 0.0001 else "less than $0.0001"


def _signed(value: float) -> str:
    return f"{'−' if value < 0 else '+'}{abs(value):.2f}"


def consistency(*, arm: str, at: datetime | None = None) -> Consistency:
    """The figures of a condition, as stored with its board, or of the forecasts made by an instant."""
    if at is None:
        board = forecast_board(arm=arm, parts=("consistency",))
        figures, computed_at = board.report.get("consistency", {}), board.computed_at
    else:
        from scoring.services.past_leaderboards import past_consistency

        figures, computed_at = past_consistency(arm, at=at), at
    rows = sorted(figures.get("forecasters", ()), key=lambda row: (row["profit"], row["family"]))
    return Consistency(arm, rows, figures.get("spearman", {}), computed_at)
