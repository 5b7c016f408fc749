"""The relations between stated probabilities that are checked, and what they tell in a sentence."""

from collections.abc import Mapping
from typing import Any

KINDS = {"sums": "Sums", "exclusions": "At most one", "repeats": "Twice", "thresholds": "Thresholds"}
"""The relations by name, as headings."""


def consistency_sentence(figures: Mapping[str, Any], condition: str) -> str:
    """The profits and their relation to the Brier score in words; empty without forecasts."""
    profits = [row["profit"] for row in figures["rows"]]
    if not profits:
        return ""
    span = f"{_dollars(min(profits))} to {_dollars(max(profits))}"
    lead = f"A risk-free portfolio gains {span} a question from a model’s forecasts {condition}"
    spearman = figures["spearman"]
    if spearman["interval"] is None:
        return f"{lead}; no relation to the Brier score can be told yet."
    low, high = spearman["interval"]
    basis = f"Spearman {_signed(spearman['value'])} over {spearman['models']} models, 95 % interval"
    basis = f"{basis} {_signed(low)} to {_signed(high)}"
    if low <= 0 <= high:
        return f"{lead}; no relation to the Brier score is shown ({basis})."
    relation = "lower" if spearman["value"] > 0 else "higher"
    return f"{lead}; more consistent models have {relation} Brier scores ({basis})."


def _dollars(value: float) -> str:
    return f"${value:.4f}" if value == 0 or value >= 0.0001 else "less than $0.0001"


def _signed(value: float) -> str:
    return f"{'−' if value < 0 else '+'}{abs(value):.2f}"
