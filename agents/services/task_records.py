"""Canonical records of completed tasks, from their rows."""

from collections.abc import Callable, Sequence
from typing import Any

from django.db.models import QuerySet, Value
from django.db.models.functions import Concat

from agents.models import Decision, Elicitation, Instruction, ModelCall, RefusedForecast, Task
from agents.records import (
    TRADE_AMOUNTS,
    UNANSWERED,
    call_record,
    forecast_entry_record,
    forecast_record,
    instruction_record,
    refusal_record,
    sha256,
    trade_record,
    trading_record,
)
from foundation.json_lines import instant_text

CALL_COLUMNS = (
    "sequence", "attempt", "model", "returned_model", "provider", "quantization", "result", "finish_reason", "error",
    "prompt_sha256", "raw_response",
)  # fmt: skip


def task_record(task: Task, call: ModelCall | None) -> dict[str, Any]:
    """The canonical record of a completed task that ended with a call."""
    calls = task.calls.filter(late=False).exclude(result__in=UNANSWERED).order_by("sequence")
    common = {
        "prompt": call.prompt_sha256 if call else None,
        "answer": sha256(call.raw_response) if call else None,
        "refusals": task.refusals,
        "error": task.error,
        "calls": [call_record(**row) for row in calls.values(*CALL_COLUMNS)],
    }
    if isinstance(task, Decision):
        return _decision_record(task, common)
    assert isinstance(task, Elicitation)
    return _elicitation_record(task, common)


def _decision_record(decision: Decision, common: dict[str, Any]) -> dict[str, Any]:
    assert decision.decided_at is not None
    cohort, agent = decision.cohort, decision.agent
    instructions = _records(
        instruction_record,
        Instruction.objects.filter(call__decision=decision).order_by("call__sequence", "sequence"),
        ("sequence", "kind", "payload", "executed", "reason"),
        call="call__sequence",
    )
    trades = _records(
        trade_record,
        decision.trades.order_by("sequence"),
        ("sequence", "kind", "implied_confidence", *TRADE_AMOUNTS),
        market=Concat("market__source", Value(":"), "market__external_id"),
        side="outcome__side",
    )
    return trading_record(
        cohort=cohort.number,
        week=decision.week,
        replicate=agent.replicate,
        family=agent.family.slug,
        model=agent.model_id,
        methodology=cohort.methodology.version,
        universe=decision.universe.sha256 if decision.universe else None,
        action=str(decision.action),
        fallback=decision.fallback,
        reasoning=sha256(decision.reasoning),
        instructions=instructions,
        trades=trades,
        decided_at=instant_text(decision.decided_at),
        **common,
    )


def _elicitation_record(task: Elicitation, common: dict[str, Any]) -> dict[str, Any]:
    assert task.made_at is not None
    batch, questions = task.batch, task.batch.question_set
    # A forecast of several samples is recorded once all have ended; it follows from their calls.
    forecasts = _records(
        forecast_entry_record,
        task.forecasts.filter(samples__isnull=True).order_by("entry__position"),
        ("probabilities", "normalised", "rationale"),
        call="call__sequence",
        question="question__options_sha256",
        numbers="stated",
    )
    refused = _records(
        refusal_record,
        RefusedForecast.objects.filter(call__elicitation=task).order_by("call__sequence", "entry__position"),
        ("reason",),
        call="call__sequence",
        question="entry__question__options_sha256",
        numbers="stated",
    )
    return forecast_record(
        day=instant_text(questions.day),
        part=questions.part,
        batch=batch.number,
        arm=batch.arm,
        sample=task.sample,
        family=task.family.slug,
        model=task.model_id,
        methodology=task.methodology.version,
        questions=questions.sha256,
        declined=task.declined,
        forecasts=forecasts,
        refused=refused,
        made_at=instant_text(task.made_at),
        **common,
    )


def _records(
    record: Callable[..., dict[str, Any]], rows: QuerySet[Any], same: Sequence[str], **columns: Any
) -> list[dict[str, Any]]:
    """The record of each row: the columns of the same name, and those that have another one in the record."""
    names = [*same, *columns]
    return [record(**dict(zip(names, row, strict=True))) for row in rows.values_list(*same, *columns.values())]
