"""Calls to a model as a reader sees them: each prompt once, and what came back."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from agents.models import ModelCall


@dataclass(frozen=True, slots=True)
class Said:
    """A call; `prompt` is None where it repeats the first call's but for a note. `refused` says what was not taken."""

    call: ModelCall
    prompt: str | None
    refused: Sequence[Any] = field(default=())


def said(calls: Sequence[ModelCall]) -> list[Said]:
    """The calls of one task (set on each) in their order."""
    return [Said(call, None if _repeats(call, calls[0]) else call.user_prompt) for call in calls]


def _repeats(call: ModelCall, first: ModelCall) -> bool:
    """Was the message that of the first call, but for the note about what was wrong?"""
    return call is not first and all(
        getattr(call, part) == getattr(first, part) for part in ("portfolio_block", "positions_block", "awaiting")
    )


@dataclass(frozen=True, slots=True)
class Spent:
    """What calls took together; None of what none of them named."""

    tokens_input: int | None
    tokens_output: int | None
    cost_usd: Decimal | None


def spent(calls: Sequence[ModelCall]) -> Spent:
    """What `TaskQuerySet.with_costs` sums, of a task whose calls are loaded anyway."""
    return Spent(*(_total(calls, column) for column in ("tokens_input", "tokens_output", "cost_usd")))


def _total(calls: Sequence[ModelCall], column: str) -> Any:
    known = [value for call in calls if (value := getattr(call, column)) is not None]
    return sum(known) if known else None


def latency_ms(calls: Sequence[ModelCall]) -> int | None:
    """How long all of them took together; None where there was none."""
    return sum(call.latency_ms or 0 for call in calls) if calls else None
