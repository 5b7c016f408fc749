"""Requests to a model: each stored before it leaves, with bounded transport retries and the week's spend limit."""

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
from agents.services.answer_storage import store_answer
from agents.services.call_costs import response_cost, worst_case
from agents.services.claims import Claim
from agents.services.request_parameters import request_parameters
from agents.services.universe_costs import add_call_cost
from markets.foundation.failpoints import failpoint

MAX_PAUSE_S = 30
"""If a gateway asks for a longer pause, a later run tries again."""
FIRST_PAUSE_S = 0.5
CUT_REASONS = ("length", "max_tokens")
FORMAT_REFUSED = (400, 404, 422)
"""Statuses after which a request is sent again without the answer's schema, which some endpoints refuse."""

TASK_MODELS: dict[str, type[Task]] = {task.PROTOCOL: task for task in (Decision, Elicitation)}
"""The task of each protocol."""

log = logging.getLogger(__name__)


class NoAnswer(Exception):
    """The model gave no answer for now. The task fails and may be retried; this is never a HOLD."""


@dataclass(frozen=True, slots=True)
class CallSettings:
    """The gateway of a run, its spend limit in US dollars per week, its retries and its lease."""

    gateway: Gateway
    spend_limit: Decimal
    transport_retries: int
    lease: timedelta
    pause: Callable[[float], None] = time.sleep


def spent_in_week(protocol: str, week_start: datetime) -> Decimal:
    """The cost of all calls of a protocol in a week, failed and unanswered ones included, in US dollars."""
    task = TASK_MODELS[protocol]
    tasks = task._default_manager.filter(task.in_week(week_start))
    return tasks.aggregate(spent=Sum("calls__cost_usd"))["spent"] or Decimal(0)


def request_answer(
    settings: CallSettings, claim: Claim[Any], prompt: Prompt, attempt: int, *, max_tokens: int
) -> ModelCall:
    """Asks the model and returns the stored call, its answer classified.

    Raises NoAnswer if the transport failed or the spend limit is reached, and ClaimLost if another worker holds the
    task by now; the answer is stored in any case.
    """
    formatted = True
    for transport_try in range(settings.transport_retries + 1):
        _check_spend_limit(settings, claim)
        claim.renew()
        parameters = request_parameters(claim.task, max_tokens, formatted=formatted)
        booked = worst_case(prompt.system, prompt.user, max_tokens, claim.task.token_prices)
        call = _create_call(claim, prompt, attempt, parameters=parameters, booked=booked)
        log.info("asked", extra=claim.task.log_context | {"model": call.model, "attempt": attempt})
        failpoint("call.sent")
        try:
            completion = settings.gateway.complete(
                model=call.model,
                system=prompt.system,
                user=prompt.user,
                parameters=parameters,
                idempotency_key=call.idempotency_key,
            )
        except GatewayFailure as failure:
            _store_response(call, claim, failure, result=ModelCall.Result.FAILED, error=failure.reason)
            pause = _pause_s(failure, transport_try)
            unsupported = failure.status in FORMAT_REFUSED and "response_format" in parameters
            formatted = formatted and not unsupported
            if (
                not (failure.retryable or unsupported)
                or transport_try == settings.transport_retries
                or pause > MAX_PAUSE_S
            ):
                raise NoAnswer(failure.reason) from failure
            settings.pause(pause)
            continue
        failpoint("call.answered")
        _store_answer(call, claim, completion)
        failpoint("call.stored")
        if call.result == ModelCall.Result.FAILED:
            raise NoAnswer(call.error)
        return call
    raise AssertionError("unreachable: the last try returns or raises")


def store_submitted_answer(claim: Claim[Any], prompt: Prompt, attempt: int, content: str) -> ModelCall:
    """The stored call of an answer that an external agent submitted, classified like any other. It costs nothing."""
    call = _create_call(claim, prompt, attempt, parameters={}, booked=None)
    completion = Completion(
        returned_model=call.model,
        cost_usd=Decimal(0),
        content=content,
        refusal=None,
        finish_reason=None,
        raw=content,
        status=None,
        latency_ms=None,
    )
    _store_answer(call, claim, completion)
    return call


def _check_spend_limit(settings: CallSettings, claim: Claim[Any]) -> None:
    spent = spent_in_week(claim.task.PROTOCOL, claim.task.week_start)
    if spent >= settings.spend_limit:
        raise NoAnswer(f"spend cap reached: ${spent:.2f} of ${settings.spend_limit:.2f} for the week")


def _create_call(
    claim: Claim[Any], prompt: Prompt, attempt: int, *, parameters: dict[str, Any], booked: Decimal | None
) -> ModelCall:
    """The call's row, written before the request leaves; the worst case counts as its cost until more is known."""
    task = claim.task
    fingerprint = ModelCall.fingerprint(prompt.system, prompt.user)
    call: ModelCall = task.calls.model(
        **{task.calls.field.name: task},
        sequence=task.calls.count() + 1,
        attempt=attempt,
        # The same for every request of an attempt, whichever worker sends it; another prompt gets another key.
        idempotency_key=ModelCall.fingerprint(f"{task.stable_key}:{attempt}", fingerprint),
        model=task.model_id,
        portfolio_block=prompt.parts.portfolio,
        positions_block=prompt.parts.positions,
        awaiting=prompt.parts.awaiting,
        retry_note=prompt.parts.retry_note,
        questions_block=prompt.parts.questions,
        parameters=parameters,
        prompt_sha256=fingerprint,
        cost_usd=booked or Decimal(0),
        cost_source=ModelCall.CostSource.COMPUTED if booked is None else ModelCall.CostSource.BOOKED,
        booked_usd=booked,
        sent_at=timezone.now(),
    )
    with transaction.atomic():
        call.save(force_insert=True)
        add_call_cost(call, call.cost_usd)
    return call


def _store_answer(call: ModelCall, claim: Claim[Any], completion: Completion) -> None:
    """Stores an answer with its result: answered, malformed, cut, declined, or failed if another model gave it."""
    result, error, parsed = ModelCall.Result.ANSWERED, "", None
    if not same_model(call.model, completion.returned_model, call.task.release.canonical_slug):
        result = ModelCall.Result.FAILED
        error = f"asked {call.model}, answered by {completion.returned_model}"
    elif completion.refusal or completion.finish_reason == "content_filter":
        result = ModelCall.Result.DECLINED
        error = f"the model refused: {completion.refusal or 'content filter'}"
    elif completion.finish_reason in CUT_REASONS:
        try:
            parsed = claim.task.parse(completion.content)
        except Malformed:
            result, error = ModelCall.Result.CUT, f"out of tokens before the answer was complete: {_spent(completion)}"
            parsed = claim.task.parse_cut(completion.content)
    elif not completion.content.strip():
        result = ModelCall.Result.DECLINED
        error = f"the answer was empty (finish reason {completion.finish_reason or 'unknown'})"
    else:
        try:
            parsed = claim.task.parse(completion.content)
        except Malformed as malformed:
            result, error = ModelCall.Result.MALFORMED, str(malformed)
    _store_response(
        call,
        claim,
        completion,
        result=result,
        error=error,
        parsed=parsed,
        content=completion.content,
        refusal=completion.refusal or "",
    )


def _spent(completion: Completion) -> str:
    if completion.tokens_output is None:
        return "it does not say how many it took"
    return f"{completion.tokens_output} taken, {completion.tokens_reasoning or 0} of them to reason"


def _store_response(
    call: ModelCall, claim: Claim[Any], response: Completion | GatewayFailure, **judgement: Any
) -> None:
    """Writes a response to its call, and renews the claim in the same transaction.

    If the claim is lost, the call is stored as late and ClaimLost is raised.
    """
    for name, value in judgement.items():
        setattr(call, name, value)
    call.returned_model = response.returned_model or ""
    call.provider = response.provider or ""
    call.quantization = response.quantization or ""
    call.generation_id = response.generation_id or ""
    call.finish_reason = getattr(response, "finish_reason", None) or ""
    call.raw_response = response.raw
    call.http_status = response.status
    call.latency_ms = response.latency_ms
    call.tokens_input, call.tokens_output = response.tokens_input, response.tokens_output
    call.tokens_reasoning = response.tokens_reasoning
    if (cost := response_cost(response, claim.task.token_prices)) is not None:
        call.cost_usd, call.cost_source = cost
    claim.spent.append(call.cost_usd)
    try:
        store_answer(call, claim)
    finally:
        log.info(
            "answered" if isinstance(response, Completion) else "failed",
            extra=claim.task.log_context
            | {"result": call.result, "late": call.late, "ms": call.latency_ms, "reason": call.error},
        )


def _pause_s(failure: GatewayFailure, transport_try: int) -> float:
    """Seconds until the next try: as the gateway asks, else doubling with jitter."""
    if failure.retry_after is not None:
        return failure.retry_after
    return FIRST_PAUSE_S * 2**transport_try * random.uniform(0.75, 1.25)
