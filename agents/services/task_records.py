"""Canonical records of completed tasks, from their rows."""

from typing import Any

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
    trades = decision.trades.order_by("sequence").values_list(
        "market__source", "market__external_id", "outcome__side", "sequence", "kind", "implied_confidence",
        *TRADE_AMOUNTS, named=True,
    )  # fmt: skip
    instructions = Instruction.objects.filter(call__decision=decision).order_by("call__sequence", "sequence")
    columns = ("call__sequence", "sequence", "kind", "payload", "executed", "reason")
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
        instructions=list(map(_instruction_record, instructions.values_list(*columns, named=True))),
        trades=list(map(_trade_record, trades)),
        decided_at=instant_text(decision.decided_at),
        **common,
    )


def _instruction_record(row: Any) -> dict[str, Any]:
    return instruction_record(
        call=row.call__sequence,
        sequence=row.sequence,
        kind=row.kind,
        payload=row.payload,
        executed=row.executed,
        reason=row.reason,
    )


def _trade_record(row: Any) -> dict[str, Any]:
    return trade_record(
        market=f"{row.market__source}:{row.market__external_id}",
        side=row.outcome__side,
        sequence=row.sequence,
        kind=row.kind,
        implied_confidence=row.implied_confidence,
        **{name: getattr(row, name) for name in TRADE_AMOUNTS},
    )


def _elicitation_record(task: Elicitation, common: dict[str, Any]) -> dict[str, Any]:
    assert task.made_at is not None
    batch, questions = task.batch, task.batch.question_set
    # A forecast of several samples is recorded once all have ended; it follows from their calls.
    forecasts = (
        task.forecasts.filter(samples__isnull=True)
        .order_by("entry__position")
        .values_list(
            "call__sequence",
            "question__options_sha256",
            "probabilities",
            "stated",
            "normalised",
            "rationale",
            named=True,
        )
    )
    refused = RefusedForecast.objects.filter(call__elicitation=task).order_by("call__sequence", "entry__position")
    refusals = refused.values_list("call__sequence", "entry__question__options_sha256", "stated", "reason", named=True)
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
        forecasts=list(map(_forecast_entry_record, forecasts)),
        refused=list(map(_refusal_record, refusals)),
        made_at=instant_text(task.made_at),
        **common,
    )


def _forecast_entry_record(row: Any) -> dict[str, Any]:
    return forecast_entry_record(
        call=row.call__sequence,
        question=row.question__options_sha256,
        probabilities=row.probabilities,
        numbers=row.stated,
        normalised=row.normalised,
        rationale=row.rationale,
    )


def _refusal_record(row: Any) -> dict[str, Any]:
    question = row.entry__question__options_sha256
    return refusal_record(call=row.call__sequence, question=question, numbers=row.stated, reason=row.reason)
