"""The one way out: HTTP with a total deadline, bounded retries and errors that say what happened.

`HttpService` speaks to one service over one connection pool. `get_json` and `post_json` judge the
answer and try again where that is sensible; `exchange` makes one request and judges nothing, for
callers that keep every request as a row of their own.
"""

import json
import math
import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Any, Self
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx
import stamina

USER_AGENT = "forecaster-arena/0.1 (+research benchmark; paper trading only)"
MIB = 1024 * 1024
RETRYABLE_STATUSES = frozenset({408, 425, 429})
"""The 4xx that may pass by themselves; every 5xx may too."""

FIRST_WAIT_S, LONGEST_BACKOFF_S = 0.2, 5.0
BODY_SHOWN, MESSAGE_SHOWN = 500, 200
ERROR_ONLY_KEYS = frozenset({"error", "type", "code", "status", "message"})


class UpstreamError(Exception):
    """What went wrong with one request to a service, in one line, and whether to try again."""

    def __init__(
        self,
        service: str,
        reason: str,
        *,
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        body: str = "",
    ) -> None:
        super().__init__(f"{service}: {reason}")
        self.service = service
        self.reason = reason
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after
        self.body = body


@dataclass(frozen=True, slots=True)
class Exchange:
    """One answered request, whatever its status says."""

    status: int
    headers: httpx.Headers
    body: bytes
    latency_ms: int


class HttpService:
    """One upstream service: a pooled client that retries what may pass and names what does not."""

    def __init__(
        self,
        service: str,
        base_url: str,
        *,
        timeout_s: float = 20,
        retries: int = 3,
        max_bytes: int = 32 * MIB,
        headers: Mapping[str, str] | None = None,
        max_wait_s: float = 20,
    ) -> None:
        url = httpx.URL(base_url)
        if url.scheme not in {"http", "https"} or not url.host:
            raise ValueError(f"{service}: base_url must be an http(s) address, not {base_url!r}")
        self.service = service
        self.timeout_s = timeout_s
        self.retries = retries
        self.max_bytes = max_bytes
        self.max_wait_s = max_wait_s
        self._deadline = _Deadline()
        self._client = httpx.Client(
            base_url=url,
            transport=_DeadlinedTransport(url, self._deadline),
            timeout=timeout_s,
            headers={"User-Agent": USER_AGENT, "Accept": "application/json", **(headers or {})},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def get_json(self, path: str, params: Mapping[str, Any] | None = None) -> Any:
        """The parsed JSON of a GET, with decimals exact; UpstreamError once the retries are spent."""
        return self._persistently(lambda: self._judged("GET", path, params=params))

    def post_json(self, path: str, json: Any) -> Any:
        """The parsed JSON of a POST. Only for requests that are safe to repeat."""
        return self._persistently(lambda: self._judged("POST", path, json=json))

    def exchange(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Exchange:
        """One request, answered within `timeout_s` in all; UpstreamError only for transport trouble."""
        started = time.monotonic()
        self._deadline.set(started + self.timeout_s)
        status: int | None = None
        body = bytearray()

        def trouble(what: str, *, retryable: bool) -> UpstreamError:
            return UpstreamError(
                self.service,
                f"{method} {path} {what}",
                status=status,
                retryable=retryable,
                body=first_part(bytes(body[: 4 * BODY_SHOWN]).decode(errors="replace")),
            )

        try:
            with self._client.stream(method, path, params=params, json=json, headers=dict(headers or {})) as response:
                status = response.status_code
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > self.max_bytes:
                        raise trouble(f"answered more than {self.max_bytes} bytes", retryable=False)
        except httpx.TimeoutException:
            raise trouble(f"did not finish within {self.timeout_s:g} s", retryable=True) from None
        except (httpx.LocalProtocolError, httpx.UnsupportedProtocol, httpx.InvalidURL, UnicodeError):
            # Their text quotes the request, and with it possibly a key.
            raise trouble("could not be sent: it is no valid request", retryable=False) from None
        except httpx.RemoteProtocolError:
            raise trouble("was cut off before its answer was complete", retryable=True) from None
        except httpx.HTTPError as error:
            raise trouble(f"failed: {one_line(error) or type(error).__name__}", retryable=True) from error
        return Exchange(
            status=status,
            headers=response.headers,
            body=bytes(body),
            latency_ms=round((time.monotonic() - started) * 1000),
        )

    def _persistently(self, ask: Callable[[], Any]) -> Any:
        attempts = stamina.retry_context(
            on=self._pause,
            attempts=self.retries + 1,
            timeout=None,
            wait_initial=FIRST_WAIT_S,
            wait_max=LONGEST_BACKOFF_S,
            wait_jitter=FIRST_WAIT_S,
        )
        for attempt in attempts:
            with attempt:
                return ask()
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _pause(self, error: Exception) -> bool | float:
        """Whether to ask again (True: after the usual backoff), or after how many seconds."""
        if not isinstance(error, UpstreamError) or not error.retryable:
            return False
        if error.retry_after is None:
            return True
        if error.retry_after > self.max_wait_s:
            return False
        return error.retry_after + random.uniform(0, FIRST_WAIT_S)

    def _judged(self, method: str, path: str, **request: Any) -> Any:
        answer = self.exchange(method, path, **request)
        text = answer.body.decode(errors="replace")

        def trouble(what: str, *, retryable: bool) -> UpstreamError:
            return UpstreamError(
                self.service,
                f"{method} {path} answered {what}",
                status=answer.status,
                retryable=retryable,
                retry_after=retry_after_s(answer.headers, now=datetime.now(UTC)),
                body=first_part(text),
            )

        if not 200 <= answer.status < 300:
            retryable = answer.status in RETRYABLE_STATUSES or answer.status >= 500
            raise trouble(f"{answer.status}: {error_message(text)}", retryable=retryable)
        try:
            parsed = parse_json(answer.body)
        except ValueError:
            what = "an HTML page" if looks_like_html(text) else "broken or truncated JSON"
            raise trouble(f"{answer.status} with {what}", retryable=True) from None
        if isinstance(parsed, dict) and parsed.get("error") and parsed.keys() <= ERROR_ONLY_KEYS:
            message = error_message(text)
            raise trouble(f"{answer.status} with only an error: {message}", retryable=is_rate_limit(message))
        return parsed


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text, its fractions as Decimal; ValueError if it is none.

    A number that can not be held is NaN, which is refused where it is read: it costs its own row, not the whole page.
    """
    try:
        return json.loads(text, parse_float=_held(Decimal), parse_int=_held(int))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _held(read: Callable[[str], Any]) -> Callable[[str], Any]:
    def held(written: str) -> Any:
        try:
            return read(written)
        except (ValueError, ArithmeticError):
            return math.nan

    return held


def retry_after_s(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """The seconds that `Retry-After` asks for, given as seconds or as an HTTP date; None if it does not."""
    raw = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", raw, re.ASCII):
        return float(raw)
    try:
        date = parsedate_to_datetime(raw)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds())


def error_message(text: str) -> str:
    """The service's own words for a failure, on one line, from whatever form its body has."""
    if looks_like_html(text):
        return "an HTML page"
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = text
    while isinstance(found, dict):
        found = found.get("error") or found.get("message") or next(iter(found.values()), "")
    return one_line(found) or "no message"


def is_rate_limit(message: str) -> bool:
    return bool(re.search(r"too many requests|rate.?limit", message, re.IGNORECASE))


def looks_like_html(text: str) -> bool:
    return text.lstrip("\ufeff \t\r\n")[:1] == "<"


def one_line(said: object, limit: int = MESSAGE_SHOWN) -> str:
    """What was said, without line breaks or control characters, cut to a readable length."""
    line = " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", " ", str(said)).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def first_part(text: str) -> str:
    return text.replace("\0", "")[:BODY_SHOWN]


class _Deadline(threading.local):
    """The instant by which this thread's request must be over."""

    at = float("inf")

    def set(self, at: float) -> None:
        self.at = at

    def left(self, timeout: float | None, expired: type[Exception]) -> float:
        left = self.at - time.monotonic()
        if left <= 0:
            raise expired("the request's deadline has passed")
        return left if timeout is None else min(left, timeout)


class _DeadlinedStream(httpcore.NetworkStream):
    """A connection whose every read and write ends with the request's deadline.

    httpx's own timeouts begin anew with each byte, so that a dripping header or body never ends.
    """

    def __init__(self, stream: httpcore.NetworkStream, deadline: _Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.left(timeout, httpcore.WriteTimeout))

    def start_tls(self, ssl_context: Any, server_hostname: Any = None, timeout: Any = None) -> Any:
        left = self._deadline.left(timeout, httpcore.ConnectTimeout)
        stream = self._stream.start_tls(ssl_context, server_hostname, left)
        return _DeadlinedStream(stream, self._deadline)

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _DeadlinedBackend(httpcore.SyncBackend):
    def __init__(self, deadline: _Deadline) -> None:
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        left = self._deadline.left(timeout, httpcore.ConnectTimeout)
        stream = super().connect_tcp(host, port, left, local_address, socket_options)
        return _DeadlinedStream(stream, self._deadline)


class _DeadlinedTransport(httpx.HTTPTransport):
    """httpx's transport on a pool that keeps the deadline, through the environment's proxy if it names one.

    Its own `__init__` does nothing but build a pool, and offers no way to name the network backend.
    """

    def __init__(self, url: httpx.URL, deadline: _Deadline) -> None:
        address = None if proxy_bypass(url.host) else getproxies().get(url.scheme)
        proxy = httpx.Proxy(address) if address else None
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context() if url.scheme == "https" else None,
            proxy=httpcore.Proxy(str(proxy.url), auth=proxy.raw_auth) if proxy else None,
            keepalive_expiry=5.0,
            network_backend=_DeadlinedBackend(deadline),
        )
