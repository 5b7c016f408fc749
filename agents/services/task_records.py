"""Canonical records of completed tasks, from their rows.

The database and an archive give the same record of a task, and so the same hash: it identifies rows by cohort, family,
week, sequence or the venue's id of a market, never by a primary key. Texts by models, prompts and sets are there as
their SHA-256. `docs/data.md` lists all fields.
"""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet, Value
from django.db.models.functions import Concat

from agents.models import Decision, Elicitation, Envelope, Instruction, ModelCall, RefusedForecast, Task
from agents.records import FORECAST, TRADING, sha256
from arena_verifier.chains import AMOUNTS, CALL, INSTRUCTION
from foundation.json_lines import instant_text, json_number

UNANSWERED = ("sent", "lost")
"""Results of calls that no record holds: their answer may still be stored, as a late one."""


def task_record(task: Task, call: ModelCall | None) -> dict[str, Any]:
    """The canonical record of a completed task that ended with a call."""
    in_time = task.calls.filter(late=False).exclude(result__in=UNANSWERED).order_by("sequence")
    calls = list(in_time.values(*CALL, "raw_response"))
    for row in calls:
        row["raw_response"] = sha256(row["raw_response"])
    common = {
        "nonce": task.nonce,
        "prompt": call.prompt_sha256 if call else None,
        "answer": sha256(call.raw_response) if call else None,
        "refusals": task.refusals,
        "error": task.error,
        "calls": calls,
    }
    if isinstance(task, Decision):
        return common | _decision_record(task)
    assert isinstance(task, Elicitation)
    return common | _elicitation_record(task)


def envelope_record(envelope: Envelope) -> dict[str, Any]:
    """The canonical record of a sealed answer."""
    task = envelope.task
    common = {
        "nonce": envelope.nonce,
        "number": envelope.number,
        "answer": sha256(envelope.call.raw_response),
        "prompt": envelope.call.prompt_sha256,
        "verdict": envelope.verdict,
        "received_at": instant_text(envelope.received_at),
        "sealed_until": instant_text(envelope.sealed_until),
        "methodology": task.methodology.version,
        "model": task.model_id,
    }
    if isinstance(task, Decision):
        family = task.agent.family.slug
        return common | {"protocol": TRADING, "family": family, "cohort": task.cohort.number, "week": task.week}
    assert isinstance(task, Elicitation)
    batch, questions = task.batch, task.batch.question_set
    return common | {
        "protocol": FORECAST,
        "family": task.family.slug,
        "day": instant_text(questions.day),
        "part": questions.part,
        "batch": batch.number,
        "arm": batch.arm,
        "sample": task.sample,
    }


def _decision_record(decision: Decision) -> dict[str, Any]:
    """The part of a decision's record that an elicitation's has not."""
    assert decision.decided_at is not None
    cohort, agent = decision.cohort, decision.agent
    instructions = Instruction.objects.filter(call__decision=decision).order_by("call__sequence", "sequence")
    trades = _parts(
        decision.trades.order_by("sequence"),
        ("sequence", "kind", "implied_confidence", *AMOUNTS),
        market=Concat("market__source", Value(":"), "market__external_id"),
        side="outcome__side",
    )
    for trade in trades:
        for name in AMOUNTS:
            trade[name] = json_number(trade[name])
    return {
        "protocol": TRADING,
        "cohort": cohort.number,
        "week": decision.week,
        "family": agent.family.slug,
        "model": agent.model_id,
        "methodology": cohort.methodology.version,
        "universe": decision.universe.sha256 if decision.universe else None,
        "action": str(decision.action),
        "fallback": decision.fallback,
        "reasoning": sha256(decision.reasoning),
        "instructions": _parts(instructions, INSTRUCTION, call="call__sequence"),
        "trades": trades,
        "decided_at": instant_text(decision.decided_at),
    }


def _elicitation_record(task: Elicitation) -> dict[str, Any]:
    """The part of an elicitation's record that a decision's has not: the sample is named from the second on."""
    assert task.made_at is not None
    batch, questions = task.batch, task.batch.question_set
    # A forecast of several samples is recorded once all have ended; it follows from their calls.
    forecasts = _parts(
        task.forecasts.filter(samples__isnull=True).order_by("entry__position"),
        ("probabilities", "stated", "normalised", "rationale"),
        call="call__sequence",
        question="question__options_sha256",
    )
    for forecast in forecasts:
        forecast["rationale"] = sha256(forecast["rationale"])
    refused = RefusedForecast.objects.filter(call__elicitation=task).order_by("call__sequence", "entry__position")
    return {
        **({"sample": task.sample} if task.sample > 1 else {}),
        "protocol": FORECAST,
        "day": instant_text(questions.day),
        "part": questions.part,
        "batch": batch.number,
        "arm": batch.arm,
        "family": task.family.slug,
        "model": task.model_id,
        "methodology": task.methodology.version,
        "questions": questions.sha256,
        "declined": task.declined,
        "forecasts": forecasts,
        "refused": _parts(
            refused, ("stated", "reason"), call="call__sequence", question="entry__question__options_sha256"
        ),
        "made_at": instant_text(task.made_at),
    }


def _parts(rows: QuerySet[Any], names: Sequence[str], **columns: Any) -> list[dict[str, Any]]:
    """The part of a record about each row: the columns of the same name, and those that the record names otherwise."""
    parts = []
    for row in rows.values_list(*names, *columns.values()):
        parts.append(dict(zip([*names, *columns], row, strict=True)))
    return parts
