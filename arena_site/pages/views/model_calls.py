"""Model calls as the pages of a decision or a forecast show them."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from agents.models import ModelCall


@dataclass(frozen=True, slots=True)
class Usage:
    """Totals over several calls; None where no call states the figure."""

    tokens_input: int | None
    tokens_output: int | None
    cost_usd: Decimal | None
    latency_ms: int | None


def usage_of(calls: Sequence[ModelCall]) -> Usage:
    """The usage of calls that are loaded anyway."""
    return Usage(*(_total(calls, column) for column in ("tokens_input", "tokens_output", "cost_usd", "latency_ms")))


def _total(calls: Sequence[ModelCall], column: str) -> Any:
    known = [value for call in calls if (value := getattr(call, column)) is not None]
    return sum(known) if known else None


def with_prompts(calls: Sequence[ModelCall]) -> list[tuple[ModelCall, str | None]]:
    """The calls in order, each with its user prompt; None where it repeats the first call's, but for a retry note."""
    return [(call, None if _repeats(call, calls[0]) else call.user_prompt) for call in calls]


def _repeats(call: ModelCall, first: ModelCall) -> bool:
    return call is not first and all(
        getattr(call, part) == getattr(first, part)
        for part in ("portfolio_block", "positions_block", "awaiting", "questions_block")
    )
