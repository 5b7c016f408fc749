"""Model calls and links of the hash chains, as the pages of a decision or a forecast show them."""

from collections.abc import Sequence
from typing import Any

from agents.models import ModelCall, Task
from agents.services.task_records import task_record

TOTALS = ("tokens_input", "tokens_output", "cost_usd", "latency_ms")


def task_context(task: Task) -> dict[str, Any]:
    """The calls of a task with their totals, and its link of the chain with the record that is hashed.

    A total is None where no call states the figure.
    """
    calls = list(task.calls.order_by("sequence"))
    link = getattr(task, "link", None)
    answer = next((call for call in calls if link and call.pk == link.call_id), None)
    return {
        "calls": with_prompts(calls),
        "usage": {name: _total(calls, name) for name in TOTALS},
        "link": link,
        "record": task_record(task, answer) if link else None,
    }


def _total(calls: Sequence[ModelCall], name: str) -> Any:
    values = [value for call in calls if (value := getattr(call, name)) is not None]
    return sum(values) if values else None


def with_prompts(calls: Sequence[ModelCall]) -> list[tuple[ModelCall, str | None]]:
    """The calls in order, each with its user prompt; None where it repeats the first call's, but for a retry note."""
    return [(call, None if _repeats(call, calls[0]) else call.user_prompt) for call in calls]


def _repeats(call: ModelCall, first: ModelCall) -> bool:
    return call is not first and all(
        getattr(call, part) == getattr(first, part)
        for part in ("portfolio_block", "positions_block", "awaiting", "questions_block")
    )
