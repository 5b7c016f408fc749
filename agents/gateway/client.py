"""The HTTP client of the gateway: one request, one answer or failure.

It never retries: the caller stores each request as a row of its own, and decides. Answers are streamed, so that a
request that is given up stops costing: the connection is closed. A gateway that does not stream is understood too.
"""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any

from agents.gateway.catalogue import ModelCatalogue, parse_catalogue
from agents.gateway.completions import (
    Accounting,
    Completion,
    CompletionParser,
    GatewayFailure,
    is_whole,
    parse_account_credits,
    parse_accounting,
    parse_credits,
    parse_generation,
    parse_remaining_credits,
)
from agents.gateway.streams import parse_stream
from foundation.http import MIB, HttpService, UpstreamError
from foundation.redaction import redact

MAX_STREAM = 32 * MIB
"""A chunk of some 300 bytes carries a token or two."""


class Gateway(HttpService):
    """The client of one gateway, with one API key."""

    def __init__(self, base_url: str, api_key: str | None = None, timeout_s: float = 900, stall_s: float = 120) -> None:
        key = (api_key or "").strip()
        if not (key.isascii() and key.isprintable()):
            raise ValueError("gateway: api_key holds characters that no HTTP header can carry")
        headers = {"X-Title": "Forecaster Arena", "HTTP-Referer": "https://forecaster-arena.invalid/"}
        headers["Accept"] = "text/event-stream, application/json"
        if key:
            headers["Authorization"] = f"Bearer {key}"
        super().__init__(
            "gateway",
            base_url,
            timeout_s=timeout_s,
            stall_s=stall_s,
            retries=0,
            max_bytes=MAX_STREAM,
            headers=headers,
            keys=[key],
        )

    @property
    def has_key(self) -> bool:
        return bool(self.keys)

    def complete(
        self,
        *,
        model: str,
        system: str,
        user: str,
        parameters: Mapping[str, Any],
        idempotency_key: str,
        is_answer: Callable[[str], bool] = lambda _: False,
    ) -> Completion:
        """The model's answer to one system and one user message. Raises GatewayFailure.

        An answer whose stream breaks off is lost, unless `is_answer` recognises its content as a whole one.

        `parameters` should hold `max_tokens`: without it the gateway reserves the price of the model's maximum, and
        refuses a small balance.
        """
        body = {
            "model": model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            **parameters,
            "stream": True,
            "usage": {"include": True},
        }
        start = time.monotonic()
        try:
            response = self.exchange(
                "POST", "/chat/completions", json=body, headers={"Idempotency-Key": idempotency_key}
            )
        except UpstreamError as error:
            partial = error.partial
            stream = parse_stream(partial.body) if partial else None
            if partial is None or stream is None or not is_whole(stream, is_answer):
                body = stream.body if stream else {}
                raise self._failure(
                    error,
                    raw=self._redact(json.dumps(body)) if stream else error.body,
                    latency_ms=round((time.monotonic() - start) * 1000),
                    accounting=parse_accounting(body, partial.headers if partial else {}),
                    billable=error.is_sent,
                ) from None
            response = partial  # only the goodbye is missing
        return CompletionParser(response, self._redact, is_answer).parse()

    def models(self) -> ModelCatalogue:
        """The gateway's catalogue of models. Raises GatewayFailure, also for one without a readable model."""
        try:
            body = self.get_json("/models")
        except UpstreamError as error:
            raise self._failure(error) from None
        rows = body.get("data") if isinstance(body, dict) else None
        catalogue = parse_catalogue(rows if isinstance(rows, list) else [])
        if not catalogue.models:
            raise GatewayFailure("gateway listed no model that could be read")
        return catalogue

    def generation(self, generation_id: str) -> Accounting | None:
        """The tokens and the cost of a generation; None while, or where, the gateway does not tell them."""
        return parse_generation(self._find("/generation", {"id": generation_id}))

    def credits(self) -> tuple[str, Decimal] | None:
        """The label of our key and the US dollars used with it; None where the gateway does not tell."""
        return parse_credits(self._find("/key"))

    def remaining_credits(self) -> Decimal | None:
        """The US dollars that our key and its account may still spend; None where the gateway tells neither."""
        amounts = [parse_remaining_credits(self._find("/key"))]
        with suppress(GatewayFailure):  # some keys may not read their account
            amounts.append(parse_account_credits(self._find("/credits")))
        return min((amount for amount in amounts if amount is not None), default=None)

    def _find(self, path: str, params: Mapping[str, str] | None = None) -> Any:
        try:
            return self.find_json(path, params)
        except UpstreamError as error:
            raise self._failure(error) from None

    def _failure(self, error: UpstreamError, **details: Any) -> GatewayFailure:
        return GatewayFailure(str(error), error.status, error.retryable, **details)

    def _redact(self, text: str) -> str:
        """The text without secrets and NUL, as it may be stored."""
        return redact(text.replace("\0", ""), *self.keys)
