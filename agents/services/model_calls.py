"""Requests to a model: each stored before it leaves, with bounded transport retries and the week's spend limit."""

import logging
import math
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.utils import timezone

from agents.gateway.client import Gateway
from agents.gateway.completions import Accounting, Completion, FailureScope, GatewayFailure
from agents.gateway.finish_reasons import AnswerEnd
from agents.gateway.searches import search_parameters
from agents.model_ids import same_model
from agents.models import ModelCall, Task
from agents.models.task import PromptParts
from agents.services.answer_storage import store_answer
from agents.services.claims import Claim
from agents.services.costs import response_cost, search_price, worst_case
from agents.services.spending import week_spending
from arena_verifier.answer_texts import Malformed
from arena_verifier.searches import read_searches
from foundation import draining
from foundation.failpoints import failpoint
from foundation.site_hosts import site_hosts

MAX_PAUSE_S = 30
"""If a gateway asks for a longer pause, a later run tries again."""
FIRST_PAUSE_S = 0.5
LARGER = 2
"""How many times the tokens are allowed after an answer was cut."""
FORMAT_REFUSED = (400, 404, 422)
"""Statuses after which a request is sent again without the answer's schema, which some endpoints refuse."""

log = logging.getLogger(__name__)


class NoAnswer(Exception):
    """The model gave no answer for now. The task fails and may be retried; this is never a HOLD."""

    def __init__(self, reason: str, scope: FailureScope = FailureScope.REQUEST) -> None:
        super().__init__(reason)
        self.scope = scope


@dataclass(frozen=True, slots=True)
class AnswerReading:
    """The result of a call, with the parsed answer or the error."""

    result: ModelCall.Result
    error: str = ""
    parsed: Any = None


@dataclass(frozen=True, slots=True)
class CallSettings:
    """The gateway of a run, its default spend limit in US dollars per week, its retries and its lease."""

    gateway: Gateway
    spend_limit: Decimal
    transport_retries: int
    lease: timedelta
    asking_ends_s: float = math.inf
    """When a run asks nobody new any more, on the monotonic clock."""
    clock: Callable[[], datetime] | None = None
    """Dates the answers of a live run, whose models may think for long after it began; without it the run's instant."""
    pause: Callable[[float], None] = time.sleep

    def write_time(self, at: datetime) -> datetime:
        """The instant at which an answer of the run of `at` is written."""
        return at if self.clock is None else max(at, self.clock())


def token_budget(task: Task, calls: list[ModelCall]) -> int:
    """The most tokens of the next answer: more once one was cut, within the release's maximum."""
    budget = task.methodology.max_tokens * (LARGER if any(call.result == call.Result.CUT for call in calls) else 1)
    return min(budget, task.release.max_completion_tokens or budget)


def request_parameters(task: Task, max_tokens: int, *, formatted: bool = True) -> dict[str, Any]:
    """The methodology's parameters that the release honours, and the answer's schema if it states support for one."""
    methodology, release = task.methodology, task.release
    provider = methodology.provider_routing | methodology.provider_pins.get(release.model_id, {})
    parameters: dict[str, Any] = {"max_tokens": max_tokens}
    if release.honours("temperature"):
        parameters["temperature"] = task.temperature
    if methodology.reasoning and release.honours("reasoning"):
        parameters["reasoning"] = methodology.reasoning
    if task.search_tool is not None:
        parameters |= search_parameters(task.search_tool, site_hosts())
        formatted = formatted and release.schema_beside_search is not False
    formatted = formatted and not methodology.free_form_answers
    if formatted and "structured_outputs" in (release.supported_parameters or ()):
        schema = {"name": task.PROTOCOL, **task.answer_schema}
        parameters["response_format"] = {"type": "json_schema", "json_schema": schema}
        # Other endpoints of the model would drop the format silently.
        provider = provider | {"require_parameters": True}
    if provider:
        parameters["provider"] = provider
    return parameters


def request_answer(
    settings: CallSettings, claim: Claim[Any], parts: PromptParts, attempt: int, *, max_tokens: int
) -> ModelCall:
    """Asks the model and returns the stored call, its answer classified.

    Raises NoAnswer if the transport failed or the spend limit is reached, and ClaimLost if another worker holds the
    task by now; the answer is stored in any case.
    """
    system, user = claim.task.system_prompt, claim.task.user_prompt(parts)
    formatted = True
    for transport_try in range(settings.transport_retries + 1):
        if draining.is_stopping():
            raise NoAnswer(draining.STOPPING)
        _check_spend_limit(settings, claim)
        claim.renew()
        parameters = request_parameters(claim.task, max_tokens, formatted=formatted)
        booked = worst_case(system, user, max_tokens, claim.task.token_prices, claim.task.search_tool)
        call = _create_call(claim, parts, attempt, parameters=parameters, booked=booked)
        log.info("asked", extra=claim.task.log_context | {"model": call.model, "attempt": attempt})
        failpoint("call.sent")
        try:
            completion = settings.gateway.complete(
                model=call.model,
                system=system,
                user=user,
                parameters=parameters,
                idempotency_key=call.idempotency_key,
                is_answer=claim.task.is_answer,
            )
        except GatewayFailure as failure:
            call.result, call.error = ModelCall.Result.FAILED, failure.reason
            _store_response(call, claim, failure, failure.accounting, billable=failure.billable)
            pause = _pause_s(failure, transport_try)
            unsupported = failure.status in FORMAT_REFUSED and "response_format" in parameters
            formatted = formatted and not unsupported
            if (
                not (failure.retryable or unsupported)
                or transport_try == settings.transport_retries
                or pause > MAX_PAUSE_S
            ):
                raise NoAnswer(failure.reason, FailureScope.REQUEST if unsupported else failure.scope) from failure
            settings.pause(pause)
            continue
        failpoint("call.answered")
        _store_answer(call, claim, completion, read_answer(claim.task, completion))
        failpoint("call.stored")
        if call.result == ModelCall.Result.FAILED:
            raise NoAnswer(call.error)
        return call
    raise AssertionError("unreachable: the last try returns or raises")


def submitted_completion(task: Task, content: str) -> Completion:
    """An answer that an external agent submitted. It costs nothing."""
    return Completion(returned_model=task.model_id, cost_usd=Decimal(0), content=content, raw=content)


def store_submitted_answer(
    claim: Claim[Any], parts: PromptParts, attempt: int, completion: Completion, reading: AnswerReading
) -> ModelCall:
    """The stored call of a submitted answer."""
    call = _create_call(claim, parts, attempt, parameters={}, booked=None)
    _store_answer(call, claim, completion, reading)
    return call


def _check_spend_limit(settings: CallSettings, claim: Claim[Any]) -> None:
    spending = week_spending(claim.task.PROTOCOL, claim.task.week_start, default_cap=settings.spend_limit)
    if spending.is_reached:
        raise NoAnswer(spending.message)


def _create_call(
    claim: Claim[Any], parts: PromptParts, attempt: int, *, parameters: dict[str, Any], booked: Decimal | None
) -> ModelCall:
    """The call's row, written before the request leaves; the worst case counts as its cost until more is known."""
    task = claim.task
    fingerprint = ModelCall.fingerprint(task.system_prompt, task.user_prompt(parts))
    call: ModelCall = task.calls.model(
        **{task.calls.field.name: task},
        sequence=task.calls.count() + 1,
        attempt=attempt,
        # The same for every request of an attempt, whichever worker sends it; another prompt gets another key.
        idempotency_key=ModelCall.fingerprint(f"{task.stable_key}:{attempt}", fingerprint),
        model=task.model_id,
        **asdict(parts),
        parameters=parameters,
        prompt_sha256=fingerprint,
        cost_usd=booked or Decimal(0),
        cost_source=ModelCall.CostSource.COMPUTED if booked is None else ModelCall.CostSource.BOOKED,
        booked_usd=booked,
        sent_at=timezone.now(),
    )
    call.save(force_insert=True)
    return call


def read_answer(task: Task, completion: Completion) -> AnswerReading:
    """An answer parsed: answered, malformed, cut, declined, or failed by provider or model."""
    results = ModelCall.Result
    if not same_model(task.model_id, completion.returned_model, task.release.canonical_slug):
        return AnswerReading(results.FAILED, f"asked {task.model_id}, answered by {completion.returned_model}")
    try:
        return AnswerReading(results.ANSWERED, parsed=task.parse(completion.content))
    except Malformed as malformed:
        if completion.refusal and completion.end != AnswerEnd.FAILURE:
            return AnswerReading(results.DECLINED, f"the model refused: {completion.refusal}")
        result, error = _unreadable(completion, str(malformed), offers_tool=task.search_tool is not None)
        parsed = task.parse_cut(completion.content) if result == results.CUT else None
        return AnswerReading(result, error, parsed)


def _store_answer(call: ModelCall, claim: Claim[Any], completion: Completion, reading: AnswerReading) -> None:
    call.result, call.error, call.parsed = reading.result, reading.error, reading.parsed
    call.content, call.refusal = completion.content, completion.refusal or ""
    call.finish_reason = completion.finish_reason or ""
    _store_response(call, claim, completion, completion, billable=True)


def _unreadable(completion: Completion, fault: str, *, offers_tool: bool) -> tuple[ModelCall.Result, str]:
    """The result and the error of an answer that is empty or can not be read: told by its end."""
    results = ModelCall.Result
    reasons = " and ".join(filter(None, (completion.finish_reason, completion.native_finish_reason))) or "none"
    match completion.end:
        case AnswerEnd.CUT:
            return results.CUT, f"out of tokens before the answer was complete: {_spent(completion)}"
        case AnswerEnd.TOOL_CALL if offers_tool:
            return results.FAILED, "the model went on searching, and the gateway ended its answer"
        case AnswerEnd.TOOL_CALL:
            return results.MALFORMED, f"the answer calls a tool, and none was offered; {fault}"
        case AnswerEnd.REFUSAL:
            return results.DECLINED, f"the model refused: {reasons.replace('_', ' ')}"
        case AnswerEnd.NORMAL if completion.content.strip():
            return results.MALFORMED, fault
        case AnswerEnd.NORMAL if completion.took_output:
            return results.MALFORMED, f"the answer was empty, though tokens were spent: {_spent(completion)}"
        case AnswerEnd.NORMAL:
            return results.DECLINED, f"the answer was empty (finish reason {reasons})"
    return results.FAILED, f"the provider failed: the answer ended with {reasons} as finish reason"


def _spent(completion: Completion) -> str:
    if completion.tokens_output is None:
        return "it does not say how many it took"
    return f"{completion.tokens_output} taken, {completion.tokens_reasoning or 0} of them to reason"


def _store_response(
    call: ModelCall, claim: Claim[Any], response: Completion | GatewayFailure, accounting: Accounting, *, billable: bool
) -> None:
    """Writes a response to its call, and renews the claim in the same transaction.

    If the claim is lost, the call is stored as late and ClaimLost is raised.
    """
    for name in ("returned_model", "provider", "quantization", "generation_id"):
        setattr(call, name, getattr(accounting, name) or "")
    for name in ("tokens_input", "tokens_output", "tokens_reasoning"):
        setattr(call, name, getattr(accounting, name))
    call.raw_response, call.http_status, call.latency_ms = response.raw, response.status, response.latency_ms
    for name, value in read_searches(call.parameters, call.raw_response).items():
        setattr(call, name, value)
    tool, searches_usd = claim.task.search_tool, Decimal(0)
    if tool is not None and call.searches:
        searches_usd = call.searches * search_price(tool, dearest=True)
    cost = response_cost(accounting, claim.task.token_prices, billable=billable, searches_usd=searches_usd)
    if cost is not None:
        call.cost_usd, call.cost_source = cost
    claim.spent.append(call.cost_usd)
    if call.cost_source == ModelCall.CostSource.BOOKED:
        claim.booked.append(call.cost_usd)
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
