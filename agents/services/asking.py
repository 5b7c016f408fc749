"""Asking a model: one stored row for each request, bounded retries of the transport, the week's spend cap."""

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from agents.answers import Malformed
from agents.gateway import Completion, Gateway, GatewayFailure, same_model
from agents.models import Decision, Elicitation, ModelCall, Task
from agents.prompts import Prompt
from agents.services.claims import Claim, ClaimLost
from cohorts.models import Methodology
from markets.failpoints import reached

LONGEST_PAUSE_S = 30
"""A gateway that asks for more patience than this is left for a later run."""
FIRST_PAUSE_S = 0.5

log = logging.getLogger(__name__)


class Unanswered(Exception):
    """No answer could be had for now: a retryable failure, never a HOLD."""


@dataclass(frozen=True, slots=True)
class Asking:
    """How a run asks: through which gateway, how patiently, for how much money in its week."""

    gateway: Gateway
    spend_limit: Decimal
    transport_retries: int
    lease: timedelta
    pause: Callable[[float], None] = time.sleep


TASKS: dict[str, type[Task]] = {task.PROTOCOL: task for task in (Decision, Elicitation)}
"""The task of each protocol."""


def spent_in_week(protocol: str, week_start: datetime) -> Decimal:
    """What every call of a protocol cost in a week, whatever came of it, in US dollars."""
    task = TASKS[protocol]
    tasks = task._default_manager.filter(task.of_week(week_start))
    return tasks.aggregate(spent=Sum("calls__cost_usd"))["spent"] or Decimal(0)


def ask(asking: Asking, claim: Claim[Any], prompt: Prompt, attempt: int) -> ModelCall:
    """The stored call that brought an answer, judged for its form.

    Raises Unanswered when the transport failed for now or the spend cap is reached, and ClaimLost when another
    worker took over in the meantime; the answer is stored all the same.
    """
    methodology = claim.task.methodology
    for transport_try in range(asking.transport_retries + 1):
        _check_spend(asking, claim)
        claim.renew()
        call = _sent(claim, prompt, attempt)
        log.info("asked", extra=claim.task.about | {"model": call.model, "attempt": attempt})
        reached("call.sent")
        try:
            completion = _complete(asking.gateway, call, prompt, methodology)
        except GatewayFailure as failure:
            _store(call, claim, failure, result=ModelCall.Result.FAILED, error=failure.reason)
            pause = _pause(failure, transport_try)
            if not failure.retryable or transport_try == asking.transport_retries or pause > LONGEST_PAUSE_S:
                raise Unanswered(failure.reason) from failure
            asking.pause(pause)
            continue
        reached("call.answered")
        _judge(call, claim, completion)
        reached("call.stored")
        if call.result == ModelCall.Result.FAILED:
            raise Unanswered(call.error)
        return call
    raise AssertionError("unreachable: the last try returns or raises")


def hear(claim: Claim[Any], prompt: Prompt, attempt: int, content: str) -> ModelCall:
    """The stored call of an answer that nobody had to ask for, judged for its form as any other. It costs nothing."""
    call = _sent(claim, prompt, attempt)
    said = Completion(
        returned_model=call.model,
        cost_usd=Decimal(0),
        content=content,
        refusal=None,
        finish_reason=None,
        raw=content,
        status=None,
        latency_ms=None,
    )
    _judge(call, claim, said)
    return call


def _check_spend(asking: Asking, claim: Claim[Any]) -> None:
    spent = spent_in_week(claim.task.PROTOCOL, claim.task.week_start)
    if spent >= asking.spend_limit:
        raise Unanswered(f"spend cap reached: ${spent:.2f} of ${asking.spend_limit:.2f} for the week")


def _sent(claim: Claim[Any], prompt: Prompt, attempt: int) -> ModelCall:
    """The call's row, written before the request leaves."""
    task = claim.task
    fingerprint = ModelCall.fingerprint(prompt.system, prompt.user)
    return task.calls.create(
        sequence=task.calls.count() + 1,
        attempt=attempt,
        # Stable for an attempt whatever dies in between, new as soon as anything else is asked.
        idempotency_key=ModelCall.fingerprint(f"{task.identity}:{attempt}", fingerprint),
        model=task.model_id,
        portfolio_block=prompt.portfolio,
        positions_block=prompt.positions,
        awaiting=prompt.awaiting,
        retry_note=prompt.retry_note,
        prompt_sha256=fingerprint,
        sent_at=timezone.now(),
    )


def _complete(gateway: Gateway, call: ModelCall, prompt: Prompt, methodology: Methodology) -> Completion:
    return gateway.complete(
        model=call.model,
        system=prompt.system,
        user=prompt.user,
        temperature=methodology.temperature,
        max_tokens=methodology.max_tokens,
        reasoning=methodology.reasoning or None,
        provider=methodology.provider_routing or None,
        idempotency_key=call.idempotency_key,
    )


def _judge(call: ModelCall, claim: Claim[Any], completion: Completion) -> None:
    """Stores an answer with its verdict: answered, malformed, declined, or failed for being another model's."""
    said: dict[str, Any] = {"content": completion.content, "refusal": completion.refusal or ""}
    if not same_model(call.model, completion.returned_model):
        error = f"asked {call.model}, answered by {completion.returned_model}"
        _store(call, claim, completion, result=ModelCall.Result.FAILED, error=error, **said)
    elif completion.refusal or completion.finish_reason == "content_filter":
        error = f"the model refused: {completion.refusal or 'content filter'}"
        _store(call, claim, completion, result=ModelCall.Result.DECLINED, error=error, **said)
    elif not completion.content.strip():
        error = f"the answer was empty (finish reason {completion.finish_reason or 'unknown'})"
        _store(call, claim, completion, result=ModelCall.Result.DECLINED, error=error, **said)
    else:
        try:
            parsed = claim.task.read(completion.content)
        except Malformed as malformed:
            error = str(malformed)
            _store(call, claim, completion, result=ModelCall.Result.MALFORMED, error=error, **said)
            return
        _store(call, claim, completion, result=ModelCall.Result.ANSWERED, error="", parsed=parsed, **said)


def _store(call: ModelCall, claim: Claim[Any], heard: Completion | GatewayFailure, **verdict: Any) -> None:
    """Writes what came back, in one short transaction that also finds out whether we still hold the claim.

    A zombie's answer is stored and marked late, then ClaimLost is raised.
    """
    for name, value in verdict.items():
        setattr(call, name, value)
    call.returned_model = heard.returned_model or ""
    call.provider = heard.provider or ""
    call.generation_id = heard.generation_id or ""
    call.finish_reason = getattr(heard, "finish_reason", None) or ""
    call.raw_response = heard.raw
    call.http_status = heard.status
    call.latency_ms = heard.latency_ms
    call.tokens_input, call.tokens_output = heard.tokens_input, heard.tokens_output
    call.tokens_reasoning = getattr(heard, "tokens_reasoning", None)
    call.cost_stated = heard.cost_usd is not None
    price_prompt, price_completion = claim.task.token_prices
    call.cost_usd = (
        heard.cost_usd.quantize(Decimal("0.000000000001"))
        if heard.cost_usd is not None
        else (heard.tokens_input or 0) * price_prompt + (heard.tokens_output or 0) * price_completion
    )
    claim.spent.append(call.cost_usd)
    with transaction.atomic():
        lost = None
        try:
            claim.renew()
        except ClaimLost as error:
            call.late, lost = True, error
        call.save()
    log.info(
        "answered" if isinstance(heard, Completion) else "failed",
        extra=claim.task.about
        | {"result": call.result, "late": call.late, "ms": call.latency_ms, "reason": call.error},
    )
    if lost is not None:
        raise lost


def _pause(failure: GatewayFailure, transport_try: int) -> float:
    """Seconds to wait before the next try: what the gateway asks for, else doubling with jitter."""
    if failure.retry_after is not None:
        return failure.retry_after
    return FIRST_PAUSE_S * 2**transport_try * random.uniform(0.75, 1.25)
