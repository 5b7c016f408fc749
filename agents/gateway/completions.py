"""Parses the gateway's response to a request: a completion, or a failure with what it cost all the same."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, auto
from typing import Any, NoReturn

from agents.account_errors import KEY_LIMIT
from agents.gateway.finish_reasons import AnswerEnd, answer_end
from agents.gateway.streams import StreamedBody, parse_stream
from arena_verifier.answer_texts import content_of, content_text, without_nul
from foundation.http import MIB, RETRYABLE_STATUSES, Exchange, looks_like_html, one_line, retry_after_s
from markets.sources.field_parsers import number_or_none

MAX_REASON, MAX_NAME, MAX_FINISH_REASON, MAX_QUANTIZATION = 300, 200, 60, 40
"""Characters, as the columns of `ModelCall` hold them."""
MAX_BODY = 8 * MIB
MAX_TOKENS = 10**9
DONE = re.compile(rb"(?<![\s\]])(?:\s*+(?:data:)?\s*+\[DONE\])+\s*+\Z")
"""The end of a stream, which some gateways also write behind a whole body."""
MAX_COST = Decimal(10_000)
"""US dollars for one answer; a higher stated cost is taken for an error."""
MAX_CREDITS = 999_999

DAILY_LIMIT = "openrouter_free_tier_daily"
TIMEOUTS = (408, 504, 524)
"""Statuses of a gateway, or of the proxy before it, that gave up waiting for an answer under way."""
STATUS_OF_TYPE = {
    "authentication": 401,
    "content_policy_violation": 403,
    "context_length_exceeded": 400,
    "invalid_request": 400,
    "not_found": 404,
    "payment_required": 402,
    "permission_denied": 403,
    "provider_overloaded": 529,
    "provider_unavailable": 503,
    "rate_limit_exceeded": 429,
    "refusal": 403,
    "server": 500,
    "server_error": 500,
    "timeout": 408,
}
"""The HTTP status of an error that states its type but no code."""


@dataclass(frozen=True, slots=True)
class Accounting:
    """The model and provider that answered, the tokens and the cost, as far as the body states them."""

    returned_model: str | None = None
    provider: str | None = None
    quantization: str | None = None
    generation_id: str | None = None
    tokens_input: int | None = None
    tokens_output: int | None = None
    tokens_reasoning: int | None = None
    cost_usd: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion(Accounting):
    """A model's answer; its content may be empty."""

    content: str
    raw: str
    refusal: str | None = None
    finish_reason: str | None = None
    native_finish_reason: str | None = None
    end: AnswerEnd = AnswerEnd.NORMAL
    took_output: bool = False
    """Whether tokens were spent on it, to reason at least."""
    status: int | None = None
    latency_ms: int | None = None


class FailureScope(Enum):
    """The reach of a failure: the later requests that fail with it."""

    REQUEST = auto()
    MODEL = auto()
    """The model, or its provider, answers nobody for now."""
    RELEASE = auto()
    """The gateway has no such model any more, or no provider of it."""
    ACCOUNT = auto()
    """No request with this key succeeds until a person, or the next day, changes that."""


@dataclass(eq=False)
class GatewayFailure(Exception):
    """A request without an answer: the reason, whether to retry soon, and the cost if one is stated.

    It is `billable` unless it never left, or the gateway said itself that the request failed before an answer began:
    an answer that is lost on the way is billed all the same.
    """

    reason: str
    status: int | None = None
    retryable: bool = False
    retry_after: float | None = None
    raw: str = ""
    latency_ms: int = 0
    accounting: Accounting = Accounting()
    billable: bool = True
    scope: FailureScope = FailureScope.REQUEST

    def __str__(self) -> str:
        return self.reason


SCOPE_OF_STATUS = {401: FailureScope.ACCOUNT, 402: FailureScope.ACCOUNT, 429: FailureScope.MODEL}


class CompletionParser:
    """Parser of one HTTP response; `redact` removes secrets from texts to be stored.

    `is_answer` tells whether a content is a whole answer: it counts even if its stream states no end.
    """

    def __init__(
        self, response: Exchange, redact: Callable[[str], str], is_answer: Callable[[str], bool] = lambda _: False
    ) -> None:
        self.http = response
        self.redact = redact
        self.is_answer = is_answer
        self.stream = parse_stream(response.body)
        self.body = self.stream.encoded if self.stream else DONE.sub(b"", response.body)
        self.raw = redact(self.body.decode(errors="replace"))
        self.accounting = Accounting()

    def parse(self) -> Completion:
        """The completion. Raises GatewayFailure."""
        body = self._parse_body()
        self.accounting = parse_accounting(body, self.http.headers)
        # Before the status: an error after the model has started comes with status 200.
        if error := body.get("error"):
            self._fail_with(error, body)
        if self.http.status >= 400:
            self._fail_with(body, body)
        if self.stream and not is_whole(self.stream, self.is_answer):
            self._fail("broke off the stream before the answer's end", retryable=True)
        choice, message = self._first_choice(body)
        content = message.get("content")
        if (text := content_text(content)) is None:
            self._fail(f"answered content that is no text but {type(content).__name__}")
        if (clean_text := self.redact(text)) != text:  # a secret that is split over the parts of the content
            text = message["content"] = clean_text
            self.raw = json.dumps(body, default=float)
        reason = _short_text(choice.get("finish_reason"), MAX_FINISH_REASON)
        native = _short_text(choice.get("native_finish_reason"), MAX_FINISH_REASON)
        calls_tool = bool(message.get("tool_calls") or message.get("function_call"))
        end = answer_end(reason, native, is_empty=not text.strip(), calls_tool=calls_tool)
        if end == AnswerEnd.ERROR:
            self._fail("broke off with finish_reason error", retryable=True)
        return Completion(
            content=text,
            refusal=_short_text(message.get("refusal"), limit=None),
            finish_reason=reason,
            native_finish_reason=native,
            end=end,
            took_output=self._took_output(message),
            raw=self.raw,
            status=self.http.status,
            latency_ms=self.http.latency_ms,
            **asdict(self.accounting),
        )

    def _took_output(self, message: dict[str, Any]) -> bool:
        thoughts = (message.get(name) for name in ("reasoning", "reasoning_content", "reasoning_details"))
        return bool(self.accounting.tokens_output or self.accounting.tokens_reasoning or any(thoughts))

    def _parse_body(self) -> dict[str, Any]:
        if len(self.body) > MAX_BODY:
            self.raw = self.raw[:MAX_REASON]
            self._fail(f"answered more than {MAX_BODY} bytes")
        try:
            # The redacted text: what is stored and what is parsed are the same.
            body = json.loads(self.raw, parse_float=Decimal, parse_constant=lambda _: None)
        except (ValueError, ArithmeticError, RecursionError):
            body = None
        if isinstance(body, dict):
            return body
        content = "an HTML page" if looks_like_html(self.raw) else "no complete JSON object"
        retryable = self.http.status < 400 or _is_transient(self.http.status)
        # A page is no completion; one that was cut begins as one, and one behind a time-out may have been made.
        began = bool(self.stream) or self.raw.lstrip().startswith("{") or "X-Generation-Id" in self.http.headers
        details = {} if began or self.http.status in TIMEOUTS else {"billable": False}
        return self._fail(f"answered {self.http.status} with {content}", retryable=retryable, **details)

    def _first_choice(self, body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        choices = body.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            began = {} if "choices" in body or self.accounting.generation_id else {"billable": False}
            self._fail("answered without choices", retryable=True, **began)
        if error := choice.get("error"):
            self._fail_with(error, body)
        message = choice.get("message")
        if not isinstance(message, dict):
            self._fail("answered a choice without a message", retryable=True)
        return choice, message

    def _fail(self, fault: str, **details: Any) -> NoReturn:
        defaults = {
            "status": self.http.status,
            "retry_after": retry_after_s(self.http.headers, now=datetime.now(UTC)),
            "raw": self.raw,
            "latency_ms": self.http.latency_ms,
            "accounting": self.accounting,
            "billable": not 300 <= self.http.status < 500,
            "scope": SCOPE_OF_STATUS.get(self.http.status, FailureScope.REQUEST),
        }
        raise GatewayFailure(one_line(f"gateway {fault}", MAX_REASON), **defaults | details)

    def _fail_with(self, error: Any, body: dict[str, Any]) -> NoReturn:
        error = _flatten_error(error)
        metadata, availability = parse_object(error.get("metadata")), parse_object(error.get("availability"))
        status = _status(error, _error_type(error, metadata, body), self.http.status)
        message = one_line(error.get("message") or "no message")
        detail = one_line(metadata.get("raw") or "")
        provider = _short_text(metadata.get("provider_name"))
        origin = ": ".join(part for part in (provider, detail) if part)
        daily = metadata.get("limit_source") == DAILY_LIMIT or "per-day" in message
        retryable = _is_transient(status) and not daily and availability.get("retryable") is not False
        fault = f"answered {status}: {message}" + (f" ({origin})" if origin else "")
        self._fail(
            self.redact(fault),
            status=status,
            retryable=retryable,
            retry_after=self._retry_after(metadata, availability),
            billable=bool(self.stream and self.stream.body.get("choices")),
            scope=self._scope(status, message, metadata, of_model=bool(provider or availability)),
        )

    def _scope(self, status: int, message: str, metadata: dict[str, Any], *, of_model: bool) -> FailureScope:
        """The account's for a bad key, no credit, its own spend limit or its own quota; a 429 else the model's."""
        if status == 403 and message.startswith(KEY_LIMIT):
            return FailureScope.ACCOUNT
        if status == 404:  # in the gateway's own words: the model is gone, or no provider of it is left
            return FailureScope.RELEASE
        if status != 429:
            return SCOPE_OF_STATUS.get(status, FailureScope.REQUEST)
        limits = [self.http.headers, parse_object(metadata.get("headers"))]
        used_up = any(str(headers.get("X-RateLimit-Remaining", "")).strip() == "0" for headers in limits)
        daily = metadata.get("limit_source") == DAILY_LIMIT or "per-day" in message
        return FailureScope.ACCOUNT if (used_up or daily) and not of_model else FailureScope.MODEL

    def _retry_after(self, metadata: dict[str, Any], availability: dict[str, Any]) -> float | None:
        """Seconds to wait: from the header, else the body, else the reset time of the quota."""
        now = datetime.now(UTC)
        inner_headers = {str(key): str(value) for key, value in parse_object(metadata.get("headers")).items()}
        body_delay = retry_after_s({"Retry-After": str(availability.get("retry_after", ""))}, now=now)
        for seconds in (retry_after_s(self.http.headers, now=now), body_delay, retry_after_s(inner_headers, now=now)):
            if seconds is not None:
                return seconds
        for reset in (self.http.headers.get("X-RateLimit-Reset", ""), inner_headers.get("X-RateLimit-Reset", "")):
            if re.fullmatch(r"\d{13}", reset, re.ASCII):  # epoch milliseconds
                return max(0.0, int(reset) / 1000 - now.timestamp())
        return None


def parse_accounting(body: dict[str, Any], headers: Mapping[str, str]) -> Accounting:
    """The cost and origin that a body, whole or in part, states."""
    usage = parse_object(body.get("usage"))
    details = parse_object(usage.get("completion_tokens_details"))
    return Accounting(
        returned_model=_short_text(body.get("model")),
        provider=_short_text(body.get("provider")),
        quantization=_short_text(body.get("quantization"), MAX_QUANTIZATION),
        generation_id=_short_text(body.get("id")) or _short_text(headers.get("X-Generation-Id")),
        tokens_input=parse_count(usage.get("prompt_tokens")),
        tokens_output=parse_count(usage.get("completion_tokens")),
        tokens_reasoning=parse_count(details.get("reasoning_tokens")),
        cost_usd=_billed(usage),
    )


def parse_generation(body: Any) -> Accounting | None:
    """The bill of one generation as `/generation` states it; None where it states no cost."""
    data = parse_object(parse_object(body).get("data"))
    upstream = {"upstream_inference_cost": data.get("upstream_inference_cost")}
    cost = _billed({"cost": data.get("total_cost"), "is_byok": data.get("is_byok"), "cost_details": upstream})
    if cost is None:
        return None
    return Accounting(
        tokens_input=parse_count(data.get("native_tokens_prompt")),
        tokens_output=parse_count(data.get("native_tokens_completion")),
        cost_usd=cost,
    )


def parse_credits(body: Any) -> tuple[str, Decimal] | None:
    """The label of a key and the US dollars used with it, as `/key` states them."""
    data = parse_object(parse_object(body).get("data"))
    usage, byok = _decimal(data.get("usage")), _decimal(data.get("byok_usage"))
    total = (usage or Decimal(0)) + (byok or 0)
    return None if usage is None or total > MAX_CREDITS else (_short_text(data.get("label")) or "", total)


def parse_remaining_credits(body: Any) -> Decimal | None:
    """The US dollars that a key may still spend, as `/key` states them."""
    remaining = _decimal(parse_object(parse_object(body).get("data")).get("limit_remaining"))
    return None if remaining is None or remaining > MAX_CREDITS else remaining


def parse_account_credits(body: Any) -> Decimal | None:
    """The US dollars that an account has left, as `/credits` states them."""
    data = parse_object(parse_object(body).get("data"))
    total, usage = _decimal(data.get("total_credits")), _decimal(data.get("total_usage"))
    return None if total is None or usage is None else total - usage


def is_whole(stream: StreamedBody, is_answer: Callable[[str], bool]) -> bool:
    """Whether a stream states its end, or else holds a whole answer of which no piece can be missing."""
    return stream.complete or (stream.contiguous and is_answer(content_of(json.dumps(stream.body), 200)))


def _flatten_error(error: Any) -> dict[str, Any]:
    """The innermost error object, merged over the outer ones; a plain text becomes its message."""
    if not isinstance(error, dict):
        return {"message": error}
    merged: dict[str, Any] = {}
    inner: Any = error
    while isinstance(inner, dict):
        merged |= inner
        inner = inner.get("error")
    if isinstance(inner, str):
        merged.setdefault("message", inner)
    return merged


def _error_type(error: dict[str, Any], metadata: dict[str, Any], body: dict[str, Any]) -> str | None:
    for raw in (metadata.get("error_type"), error.get("error_type"), body.get("error_type"), error.get("code")):
        word = _short_text(raw)
        if word and not word.isdigit():
            return word
    return None


def _status(error: dict[str, Any], error_type: str | None, http_status: int) -> int:
    """The status that the error states; the HTTP status may be 200 all the same."""
    for raw in (error.get("code"), error.get("http_status")):
        if re.fullmatch(r"[45]\d\d", str(raw), re.ASCII):
            return int(str(raw))
    if http_status >= 400:
        return http_status
    return STATUS_OF_TYPE.get(error_type or "", 502)


def _is_transient(status: int) -> bool:
    return status in RETRYABLE_STATUSES or status >= 500


def parse_object(raw: Any) -> dict[str, Any]:
    return raw if isinstance(raw, dict) else {}


def _short_text(raw: Any, limit: int | None = MAX_NAME) -> str | None:
    return (without_nul(raw).strip()[:limit] or None) if isinstance(raw, str) else None


def parse_count(raw: Any) -> int | None:
    return raw if type(raw) is int and 0 <= raw <= MAX_TOKENS else None


def _billed(usage: dict[str, Any]) -> Decimal | None:
    """The cost that a usage states. With one's own provider key the gateway's is its fee alone."""
    details = parse_object(usage.get("cost_details"))
    cost, upstream = parse_cost(usage.get("cost")), parse_cost(details.get("upstream_inference_cost"))
    if usage.get("is_byok") is not True:
        return cost
    return None if upstream is None else (cost or Decimal(0)) + upstream


def parse_cost(raw: Any) -> Decimal | None:
    cost = _decimal(raw)
    return cost if cost is not None and cost <= MAX_COST else None


def _decimal(raw: Any) -> Decimal | None:
    """A number of zero or more."""
    number = number_or_none(raw)
    return number if number is not None and number >= 0 else None
