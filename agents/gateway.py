"""The model gateway (OpenRouter, or anything that speaks its protocol): one question, one answer.

Nothing is tried again here: the caller keeps each request as a row of its own, and decides.
"""

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn, Self

from agents.catalogue import ModelCatalogue, catalogue_of
from markets.http import (
    MIB,
    RETRYABLE_STATUSES,
    Exchange,
    HttpService,
    UpstreamError,
    looks_like_html,
    one_line,
    retry_after_s,
)

LARGEST_BODY = 8 * MIB
LONGEST_REASON, LONGEST_WORD, LONGEST_FINISH_REASON = 300, 200, 60
"""Characters; a database refuses longer ones with the whole answer."""
MOST_TOKENS = 10**9
HIGHEST_COST = Decimal(10_000)
"""Dollars for one answer, above which a stated cost is a fault and not a price."""

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
"""What an error's stable type means where it comes without a code."""

KEYS = re.compile(r"\bsk-[\w-]{12,}", re.ASCII)
USER_IDS = re.compile(r'(\\*"user_id\\*"\s*:\s*\\*")[^"\\]*')
DATES = re.compile(r"(?<![^-])(\d{4}-\d\d-\d\d|\d{8}|\d{6}|\d\d-\d{4}|\d{4}|\d\d-\d\d)(?![^-])")


@dataclass(frozen=True, slots=True)
class Accounting:
    """Who answered and what it cost, as far as the body tells."""

    returned_model: str | None = None
    provider: str | None = None
    generation_id: str | None = None
    tokens_input: int | None = None
    tokens_output: int | None = None
    tokens_reasoning: int | None = None
    cost_usd: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion(Accounting):
    """A model's answer; its content may be empty, and says nothing about being right."""

    content: str
    refusal: str | None
    finish_reason: str | None
    raw: str
    status: int | None
    latency_ms: int | None


class GatewayFailure(Exception):
    """A request that brought no answer: why, whether a quick retry makes sense, and what it still cost."""

    def __init__(
        self,
        reason: str,
        *,
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        error_type: str | None = None,
        raw: str = "",
        latency_ms: int = 0,
        accounting: Accounting | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after
        self.error_type = error_type
        self.raw = raw
        self.latency_ms = latency_ms
        known = accounting or Accounting()
        self.returned_model = known.returned_model
        self.provider = known.provider
        self.generation_id = known.generation_id
        self.tokens_input = known.tokens_input
        self.tokens_output = known.tokens_output
        self.tokens_reasoning = known.tokens_reasoning
        self.cost_usd = known.cost_usd


class Gateway:
    """The client of one gateway with one key."""

    def __init__(self, base_url: str, api_key: str | None = None, timeout_s: float = 300) -> None:
        self._key = (api_key or "").strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise ValueError("gateway: api_key holds characters that no HTTP header can carry")
        headers = {"X-Title": "Forecaster Arena", "HTTP-Referer": "https://forecaster-arena.invalid/"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        self._http = HttpService(
            "gateway", base_url, timeout_s=timeout_s, retries=0, max_bytes=LARGEST_BODY, headers=headers
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def complete(
        self,
        *,
        model: str,
        system: str,
        user: str,
        temperature: float,
        max_tokens: int,
        reasoning: Mapping[str, Any] | None = None,
        provider: Mapping[str, Any] | None = None,
        idempotency_key: str,
    ) -> Completion:
        """The model's answer to one system and one user message; GatewayFailure where there is none."""
        question = {
            "model": model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            "temperature": temperature,
            # Left out, the model's whole maximum is priced beforehand, and a small balance refused.
            "max_tokens": max_tokens,
            "stream": False,
            "usage": {"include": True},
        }
        question |= {"reasoning": dict(reasoning)} if reasoning is not None else {}
        question |= {"provider": dict(provider)} if provider is not None else {}
        started = time.monotonic()
        try:
            answer = self._http.exchange(
                "POST", "/chat/completions", json=question, headers={"Idempotency-Key": idempotency_key}
            )
        except UpstreamError as error:
            raise GatewayFailure(
                self._redacted(str(error)),
                status=error.status,
                retryable=error.retryable,
                raw=self._redacted(error.body),
                latency_ms=round((time.monotonic() - started) * 1000),
            ) from None
        return _Answer(answer, self._redacted).completion()

    def models(self) -> ModelCatalogue:
        """The gateway's catalogue of models; GatewayFailure where there is none."""
        try:
            answer = self._http.get_json("/models")
        except UpstreamError as error:
            raise GatewayFailure(self._redacted(str(error)), status=error.status, retryable=error.retryable) from None
        rows = answer.get("data") if isinstance(answer, dict) else None
        catalogue = catalogue_of(rows if isinstance(rows, list) else [])
        if not catalogue.models:
            raise GatewayFailure("gateway listed no model that could be read")
        return catalogue

    def _redacted(self, text: str) -> str:
        """The text as it may be kept: no key, no account, nothing that a database refuses."""
        if self._key:
            text = text.replace(self._key, "[redacted]")
        return USER_IDS.sub(r"\1[redacted]", KEYS.sub("[redacted]", text)).replace("\0", "")


class _Answer:
    """One HTTP answer on its way to becoming a completion or a failure."""

    def __init__(self, answer: Exchange, redacted: Callable[[str], str]) -> None:
        self.http = answer
        self.redacted = redacted
        self.raw = redacted(answer.body.decode(errors="replace"))
        self.accounting = Accounting()

    def completion(self) -> Completion:
        body = self._body()
        self.accounting = _accounting(body)
        # An error may come with status 200, once the model had started: it is looked for first.
        if error := body.get("error"):
            self._fail_with(error, body)
        if self.http.status >= 400:
            self._fail_with(body, body)
        choice, message = self._choice(body)
        content = message.get("content")
        if (text := _text(content)) is None:
            self._fail(f"answered content that is no text but {type(content).__name__}")
        return Completion(
            content=text,
            refusal=_words(message.get("refusal"), limit=None),
            finish_reason=_words(choice.get("finish_reason"), LONGEST_FINISH_REASON),
            raw=self.raw,
            status=self.http.status,
            latency_ms=self.http.latency_ms,
            returned_model=self.accounting.returned_model,
            provider=self.accounting.provider,
            generation_id=self.accounting.generation_id,
            tokens_input=self.accounting.tokens_input,
            tokens_output=self.accounting.tokens_output,
            tokens_reasoning=self.accounting.tokens_reasoning,
            cost_usd=self.accounting.cost_usd,
        )

    def _body(self) -> dict[str, Any]:
        try:
            body = json.loads(self.http.body, parse_float=Decimal, parse_constant=lambda _: None)
        except (ValueError, ArithmeticError, RecursionError):
            body = None
        if isinstance(body, dict):
            return body
        what = "an HTML page" if looks_like_html(self.raw) else "no complete JSON object"
        retryable = self.http.status < 400 or _may_pass(self.http.status)
        return self._fail(f"answered {self.http.status} with {what}", retryable=retryable)

    def _choice(self, body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        choices = body.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            self._fail("answered without choices", retryable=True)
        if error := choice.get("error"):
            self._fail_with(error, body)
        if choice.get("finish_reason") == "error":
            self._fail("broke off with finish_reason error", retryable=True)
        message = choice.get("message")
        if not isinstance(message, dict):
            self._fail("answered a choice without a message", retryable=True)
        return choice, message

    def _fail(self, what: str, *, retryable: bool = False) -> NoReturn:
        raise GatewayFailure(
            f"gateway {what}",
            status=self.http.status,
            retryable=retryable,
            retry_after=retry_after_s(self.http.headers, now=datetime.now(UTC)),
            raw=self.raw,
            latency_ms=self.http.latency_ms,
            accounting=self.accounting,
        )

    def _fail_with(self, error: Any, body: dict[str, Any]) -> NoReturn:
        error = _unwrapped(error)
        metadata, availability = _object(error.get("metadata")), _object(error.get("availability"))
        error_type = _error_type(error, metadata, body)
        status = _status(error, error_type, self.http.status)
        message = one_line(error.get("message") or "no message")
        detail = one_line(metadata.get("raw") or "")
        provider = _words(metadata.get("provider_name"))
        whose = ": ".join(part for part in (provider, detail) if part)
        daily = metadata.get("limit_source") == "openrouter_free_tier_daily" or "per-day" in message
        may_pass = _may_pass(status) and not daily and availability.get("retryable") is not False
        reason = f"gateway answered {status}: {message}" + (f" ({whose})" if whose else "")
        raise GatewayFailure(
            one_line(self.redacted(reason), LONGEST_REASON),
            status=status,
            retryable=may_pass,
            retry_after=self._retry_after(metadata, availability),
            error_type=error_type,
            raw=self.raw,
            latency_ms=self.http.latency_ms,
            accounting=self.accounting,
        )

    def _retry_after(self, metadata: dict[str, Any], availability: dict[str, Any]) -> float | None:
        """The seconds to wait: from the header, else the body, else the instant at which a quota returns."""
        now = datetime.now(UTC)
        quoted = {str(key): str(value) for key, value in _object(metadata.get("headers")).items()}
        stated = retry_after_s({"Retry-After": str(availability.get("retry_after", ""))}, now=now)
        for wait in (retry_after_s(self.http.headers, now=now), stated, retry_after_s(quoted, now=now)):
            if wait is not None:
                return wait
        for reset in (self.http.headers.get("X-RateLimit-Reset", ""), quoted.get("X-RateLimit-Reset", "")):
            if re.fullmatch(r"\d{13}", reset, re.ASCII):  # epoch milliseconds
                return max(0.0, int(reset) / 1000 - now.timestamp())
        return None


def same_model(asked: str, returned: str | None) -> bool:
    """Whether the answer is by the model that was asked: its dated snapshot is, another family is not.

    A gateway that names no model, or no vendor, is taken at its word.
    """
    if not returned:
        return True
    (asked_vendor, asked_name), (vendor, name) = _vendor_and_words(asked), _vendor_and_words(returned)
    return asked_name == name and (asked_vendor == vendor or not (asked_vendor and vendor))


def _vendor_and_words(model: str) -> tuple[str, list[str]]:
    vendor, _, name = model.strip().lower().partition(":")[0].rpartition("/")
    # Words in any order: claude-opus-4.5 comes back as claude-4.5-opus-20251124.
    return vendor, sorted(word for word in DATES.sub("", name).split("-") if word)


def _accounting(body: dict[str, Any]) -> Accounting:
    usage = _object(body.get("usage"))
    details = _object(usage.get("completion_tokens_details"))
    return Accounting(
        returned_model=_words(body.get("model")),
        provider=_words(body.get("provider")),
        generation_id=_words(body.get("id")),
        tokens_input=_tokens(usage.get("prompt_tokens")),
        tokens_output=_tokens(usage.get("completion_tokens")),
        tokens_reasoning=_tokens(details.get("reasoning_tokens")),
        cost_usd=_cost(usage.get("cost")),
    )


def _text(content: Any) -> str | None:
    """The text of a content, whole or in parts; None if it is something else."""
    if content is None:
        return ""
    if isinstance(content, str):
        return _storable(content)
    if not isinstance(content, list):
        return None
    parts = [part.get("text") if isinstance(part, dict) else part for part in content]
    texts = [part for part in parts if isinstance(part, str)]
    return _storable("".join(texts)) if texts or not content else None


def _unwrapped(error: Any) -> dict[str, Any]:
    """The innermost error object, with what only the outer ones say; mere text becomes its message."""
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
    stated = (metadata.get("error_type"), error.get("error_type"), body.get("error_type"), error.get("code"))
    return next((word for raw in stated if (word := _words(raw)) and not word.isdigit()), None)


def _status(error: dict[str, Any], error_type: str | None, http_status: int) -> int:
    """The status that the error means, which the HTTP status may hide behind a 200."""
    for raw in (error.get("code"), error.get("http_status")):
        if re.fullmatch(r"[45]\d\d", str(raw), re.ASCII):
            return int(str(raw))
    if http_status >= 400:
        return http_status
    return STATUS_OF_TYPE.get(error_type or "", 502)


def _may_pass(status: int) -> bool:
    return status in RETRYABLE_STATUSES or status >= 500


def _object(raw: Any) -> dict[str, Any]:
    return raw if isinstance(raw, dict) else {}


def _words(raw: Any, limit: int | None = LONGEST_WORD) -> str | None:
    return (_storable(raw).strip()[:limit] or None) if isinstance(raw, str) else None


def _tokens(raw: Any) -> int | None:
    return raw if type(raw) is int and 0 <= raw <= MOST_TOKENS else None


def _cost(raw: Any) -> Decimal | None:
    try:
        cost = Decimal(raw) if isinstance(raw, str | int | Decimal) and not isinstance(raw, bool) else None
    except InvalidOperation:
        return None
    return cost if cost is not None and cost.is_finite() and 0 <= cost <= HIGHEST_COST else None


def _storable(text: str) -> str:
    # PostgreSQL refuses NUL, and UTF-8 has no form for half a surrogate pair.
    return re.sub(r"[\ud800-\udfff]", "\ufffd", text.replace("\0", ""))
