"""Canonical records of completed tasks and of archives, and the hash chains over them. Needs no database.

The database and an archive give the same record of a task, and so the same hash: it identifies rows by cohort, family,
week, sequence or the venue's id of a market, never by a primary key. `docs/data.md` lists all fields.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from foundation.json_lines import json_number

TRADING, FORECAST, ARCHIVE = "trading", "forecast", "archive"
PROTOCOLS = (TRADING, FORECAST, ARCHIVE)
"""The chains of links."""
RECEIPT = "receipt"
"""The chain of receipts, which are their own links."""
TRADE_AMOUNTS = ("shares", "price", "amount", "cost_basis", "realized_pnl")
GENESIS = "0" * 64
"""The previous hash of a chain's first link."""


UNANSWERED = ("sent", "lost")
"""Results of calls that no record holds: their answer may still be stored, as a late one."""


def trading_record(
    *,
    cohort: int,
    week: int,
    family: str,
    model: str,
    methodology: str,
    universe: str | None,
    prompt: str | None,
    answer: str | None,
    action: str,
    fallback: bool,
    refusals: int,
    reasoning: str,
    error: str,
    calls: Sequence[Mapping[str, Any]],
    instructions: Sequence[Mapping[str, Any]],
    trades: Sequence[Mapping[str, Any]],
    decided_at: str,
    replicate: int = 1,
) -> dict[str, Any]:
    """The record of a decision; `universe`, `prompt` and `answer` (of the last call) and `reasoning` are SHA-256.

    It names the agent's replicate from the second on.
    """
    numbered = {"replicate": replicate} if replicate > 1 else {}
    return {
        **numbered,
        "protocol": TRADING,
        "cohort": cohort,
        "week": week,
        "family": family,
        "model": model,
        "methodology": methodology,
        "universe": universe,
        "prompt": prompt,
        "answer": answer,
        "action": action,
        "fallback": fallback,
        "refusals": refusals,
        "reasoning": reasoning,
        "error": error,
        "calls": calls,
        "instructions": instructions,
        "trades": trades,
        "decided_at": decided_at,
    }


def forecast_record(
    *,
    day: str,
    part: int,
    batch: int,
    arm: str,
    family: str,
    model: str,
    methodology: str,
    questions: str,
    prompt: str | None,
    answer: str | None,
    declined: bool,
    refusals: int,
    error: str,
    calls: Sequence[Mapping[str, Any]],
    forecasts: Sequence[Mapping[str, Any]],
    refused: Sequence[Mapping[str, Any]],
    made_at: str,
    sample: int = 1,
) -> dict[str, Any]:
    """The record of an elicitation; `questions` (of the day's set), `prompt` and `answer` are SHA-256.

    It names the sample from the second on.
    """
    numbered = {"sample": sample} if sample > 1 else {}
    return {
        **numbered,
        "protocol": FORECAST,
        "day": day,
        "part": part,
        "batch": batch,
        "arm": arm,
        "family": family,
        "model": model,
        "methodology": methodology,
        "questions": questions,
        "prompt": prompt,
        "answer": answer,
        "declined": declined,
        "refusals": refusals,
        "error": error,
        "calls": calls,
        "forecasts": forecasts,
        "refused": refused,
        "made_at": made_at,
    }


def call_record(
    *,
    sequence: int,
    attempt: int,
    model: str,
    returned_model: str,
    provider: str,
    quantization: str,
    result: str,
    finish_reason: str,
    error: str,
    prompt_sha256: str,
    raw_response: str,
) -> dict[str, Any]:
    """The part of a task's record about one of its calls that has an answer, or failed, in time."""
    return {
        "sequence": sequence,
        "attempt": attempt,
        "model": model,
        "returned_model": returned_model,
        "provider": provider,
        "quantization": quantization,
        "result": result,
        "finish_reason": finish_reason,
        "error": error,
        "prompt_sha256": prompt_sha256,
        "raw_response": sha256(raw_response),
    }


def instruction_record(
    *, call: int, sequence: int, kind: str, payload: Mapping[str, Any], executed: bool, reason: str
) -> dict[str, Any]:
    """The part of a decision's record about an instruction; `call` is the sequence of its call."""
    return {
        "call": call,
        "sequence": sequence,
        "kind": kind,
        "payload": payload,
        "executed": executed,
        "reason": reason,
    }


def trade_record(
    *,
    sequence: int,
    market: str,
    side: str,
    kind: str,
    implied_confidence: float | None,
    **amounts: Decimal,
) -> dict[str, Any]:
    """The part of a decision's record about a trade: `market` as `venue:id`, amounts (TRADE_AMOUNTS) as plain text."""
    identity = {"sequence": sequence, "market": market, "side": side, "kind": kind}
    return {
        **identity,
        "implied_confidence": implied_confidence,
        **{name: json_number(amounts[name]) for name in TRADE_AMOUNTS},
    }


def forecast_entry_record(
    *,
    call: int,
    question: str,
    probabilities: Mapping[str, float],
    numbers: Mapping[str, str],
    normalised: bool,
    rationale: str,
) -> dict[str, Any]:
    """The part of an elicitation's record about a forecast; `question` is the hash of its options."""
    return {
        "call": call,
        "question": question,
        "probabilities": probabilities,
        "stated": numbers,
        "normalised": normalised,
        "rationale": sha256(rationale),
    }


def refusal_record(*, call: int, question: str, numbers: Mapping[str, str], reason: str) -> dict[str, Any]:
    """The part of an elicitation's record about a refused forecast."""
    return {"call": call, "question": question, "stated": numbers, "reason": reason}


def canonical(value: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def record_sha256(record: Mapping[str, Any]) -> str:
    return sha256(canonical(record))


def link_sha256(previous: str, record: str) -> str:
    """The hash of a link, over the previous link's hash and the hash of its record.

    It takes the record's hash, not its text, so that the chain can be verified without all records.
    """
    return sha256(f"{previous}\n{record}")
