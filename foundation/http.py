"""HTTP client for outside services: a total deadline for each request, bounded retries, one error class.

`HttpService.get_json` and `post_json` check the response and retry what may succeed later. `exchange` makes one
request without checks or retries, for callers that record each request themselves.
"""

import json
import math
import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Self

from foundation import draining
from foundation.redaction import redact
from foundation.version import VERSION

if TYPE_CHECKING:
    import httpx

USER_AGENT = f"forecaster-arena/{VERSION} (+research benchmark; paper trading only)"
MIB = 1024 * 1024
RETRYABLE_STATUSES = frozenset({408, 425, 429})
"""Statuses below 500 after which a retry may succeed; after any 5xx it may too."""

MIN_BACKOFF_S, MAX_BACKOFF_S, MAX_RETRY_AFTER_S = 0.2, 5.0, 20
BODY_EXCERPT, MAX_MESSAGE = 500, 200
ERROR_ONLY_KEYS = frozenset({"error", "type", "code", "status", "message"})


@dataclass(eq=False)
class UpstreamError(Exception):
    """A failed request to a service: the reason in one line, and whether a retry may succeed.

    `sent` is false if the request never left; `partial` is the response as far as it came.
    """

    service: str
    reason: str
    _: KW_ONLY
    status: int | None = None
    retryable: bool = False
    retry_after: float | None = None
    body: str = ""
    is_sent: bool = True
    partial: "Exchange | None" = None

    def __str__(self) -> str:
        return f"{self.service}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A response of any status, and its latency."""

    status: int
    headers: "httpx.Headers"
    body: bytes
    latency_ms: int


@dataclass(slots=True)
class Traffic:
    """Requests to a service: how many, how many failed, and the seconds that they took together."""

    requests: int = 0
    failures: int = 0
    seconds: float = 0.0


_traffic: defaultdict[str, Traffic] = defaultdict(Traffic)


def take_traffic() -> dict[str, Traffic]:
    """The requests of this process by service since the last call."""
    traffic = dict(_traffic)
    _traffic.clear()
    return traffic


class HttpService:
    """A client of one service, with a connection pool.

    A request is given up after `timeout_s` seconds, and after `stall_s` (the same unless stated) without a byte. All
    requests together, with their retries, end by the instant that `limit_total` sets. Messages and bodies of errors
    are without secrets, and without the `keys` that the requests hold.
    """

    def __init__(
        self,
        service: str,
        base_url: str,
        *,
        timeout_s: float = 20,
        stall_s: float | None = None,
        retries: int = 3,
        max_bytes: int = 32 * MIB,
        headers: Mapping[str, str] | None = None,
        keys: Sequence[str] = (),
    ) -> None:
        import httpx  # loads rich and click

        from foundation.deadlines import Deadline, DeadlinedTransport

        url = httpx.URL(base_url)
        if url.scheme not in {"http", "https"} or not url.host:
            raise ValueError(f"{service}: base_url must be an http(s) address")
        self.service = service
        self.keys = [key for key in keys if key]
        self.timeout_s = timeout_s
        self.stall_s = timeout_s if stall_s is None else stall_s
        self.total_s = self._ends_s = float("inf")
        self.retries = retries
        self.max_bytes = max_bytes
        self.bytes_received = 0
        self._deadline = Deadline()
        self._client = httpx.Client(
            base_url=url,
            transport=DeadlinedTransport(url, self._deadline),
            timeout=self.stall_s,
            headers={"User-Agent": USER_AGENT, "Accept": "application/json", **(headers or {})},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def limit_total(self, seconds: float) -> Self:
        """Gives all requests from now on so many seconds together."""
        self.total_s, self._ends_s = seconds, time.monotonic() + seconds
        return self

    def get_json(self, path: str, params: Mapping[str, Any] | None = None) -> Any:
        """The parsed JSON of a GET, with exact decimals. Raises UpstreamError when the retries are used up."""
        return self._with_retries(lambda: self._checked_json("GET", path, params=params))

    def find_json(self, path: str, params: Mapping[str, Any] | None = None, missing: Container[int] = (404,)) -> Any:
        """As `get_json`, but None if the service answers with a status in `missing`."""
        try:
            return self.get_json(path, params)
        except UpstreamError as error:
            if error.status in missing:
                return None
            raise

    def post_json(self, path: str, json: Any) -> Any:
        """The parsed JSON of a POST. Only for requests that are safe to repeat."""
        return self._with_retries(lambda: self._checked_json("POST", path, json=json))

    def post_for_list(self, path: str, json: Any, name: str) -> list[Any]:
        """The list of this name in the answer to a POST; one without it is asked for again, as broken JSON is."""
        return self._with_retries(lambda: self._list_of(name, "POST", path, json=json))

    def exchange(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Exchange:
        """The response to one request. Raises UpstreamError if it is given up; the connection is then closed."""
        import httpx

        start = time.monotonic()
        deadline = min(start + self.timeout_s, self._ends_s)
        self._deadline.set(deadline)
        response: httpx.Response | None = None
        body = bytearray()

        def received(response: httpx.Response) -> Exchange:
            latency_ms = round((time.monotonic() - start) * 1000)
            return Exchange(response.status_code, response.headers, bytes(body), latency_ms)

        def error(reason: str, *, retryable: bool, is_sent: bool = True) -> UpstreamError:
            return UpstreamError(
                self.service,
                f"{method} {path} {reason}",
                status=None if response is None else response.status_code,
                retryable=retryable,
                body=self._excerpt(bytes(body[: 4 * BODY_EXCERPT]).decode(errors="replace")),
                is_sent=is_sent,
                partial=None if response is None else received(response),
            )

        if self._is_over():
            raise error(
                f"was not sent: the {self.total_s:g} s for all requests are over", retryable=False, is_sent=False
            )
        try:
            with self._client.stream(method, path, params=params, json=json, headers=dict(headers or {})) as response:
                for chunk in response.iter_bytes():
                    body += chunk
                    self.bytes_received += len(chunk)
                    if len(body) > self.max_bytes:
                        raise error(f"answered more than {self.max_bytes} bytes", retryable=False)
        except httpx.TimeoutException as cause:
            is_sent = not isinstance(cause, httpx.ConnectTimeout | httpx.PoolTimeout)
            stalled = time.monotonic() < deadline
            limit = f"sent nothing for {self.stall_s:g} s" if stalled else f"did not finish within {self.timeout_s:g} s"
            if self._is_over():
                limit = f"did not finish within the {self.total_s:g} s for all requests"
            is_given_up = draining.grace_left_s() <= 0
            if is_given_up:
                limit = f"was given up: {draining.STOPPING}"
            raise error(limit, retryable=not (self._is_over() or is_given_up), is_sent=is_sent) from None
        except (httpx.LocalProtocolError, httpx.UnsupportedProtocol, httpx.InvalidURL, UnicodeError):
            # Their text quotes the request, which may contain a key.
            raise error("could not be sent: the request is invalid", retryable=False, is_sent=False) from None
        except httpx.RemoteProtocolError:
            raise error("was cut off before the response was complete", retryable=True) from None
        except httpx.HTTPError as cause:
            is_sent = not isinstance(cause, httpx.ConnectError | httpx.ProxyError)
            reason = one_line(redact(str(cause), *self.keys)) or type(cause).__name__
            raise error(f"failed: {reason}", retryable=True, is_sent=is_sent) from cause
        return received(response)

    def _message(self, text: str) -> str:
        return error_message(redact(text, *self.keys))

    def _excerpt(self, text: str) -> str:
        return redact(text.replace("\0", ""), *self.keys)[:BODY_EXCERPT]

    def _is_over(self) -> bool:
        return time.monotonic() >= self._ends_s

    def _with_retries(self, request: Callable[[], Any]) -> Any:
        import stamina

        def counted() -> Any:
            traffic, start = _traffic[self.service], time.monotonic()
            traffic.requests += 1
            try:
                return request()
            except UpstreamError as error:
                traffic.failures += error.status != HTTPStatus.NOT_FOUND
                raise
            finally:
                took = time.monotonic() - start
                traffic.seconds += took  # in one step: requests may run side by side

        caller = stamina.RetryingCaller(
            attempts=self.retries + 1,
            timeout=None,
            wait_initial=MIN_BACKOFF_S,
            wait_max=MAX_BACKOFF_S,
            wait_jitter=MIN_BACKOFF_S,
        )
        return caller(self._pause, counted)

    def _pause(self, error: Exception) -> bool | float:
        """Stamina's decision on a retry: False for none, True after the usual backoff, or seconds to wait."""
        if not isinstance(error, UpstreamError) or not error.retryable:
            return False
        if error.retry_after is None:
            return not self._is_over()
        if error.retry_after > MAX_RETRY_AFTER_S:
            return False
        return error.retry_after + random.uniform(0, MIN_BACKOFF_S)

    def _list_of(self, name: str, method: str, path: str, **request: Any) -> list[Any]:
        answer = self._checked_json(method, path, **request)
        rows = answer.get(name) if isinstance(answer, dict) else None
        if not isinstance(rows, list):
            reason = f"{method} {path} answered no list of {name}"
            raise UpstreamError(self.service, reason, status=HTTPStatus.OK, retryable=True)
        return rows

    def _checked_json(self, method: str, path: str, **request: Any) -> Any:
        response = self.exchange(method, path, **request)
        text = response.body.decode(errors="replace")

        def error(reason: str, *, retryable: bool) -> UpstreamError:
            return UpstreamError(
                self.service,
                f"{method} {path} answered {reason}",
                status=response.status,
                retryable=retryable,
                retry_after=retry_after_s(response.headers, now=datetime.now(UTC)),
                body=self._excerpt(text[: 4 * BODY_EXCERPT]),
            )

        if not 200 <= response.status < 300:
            retryable = response.status in RETRYABLE_STATUSES or response.status >= 500
            raise error(f"{response.status}: {self._message(text)}", retryable=retryable)
        try:
            parsed = parse_json(response.body)
        except ValueError:
            content = "an HTML page" if looks_like_html(text) else "broken or truncated JSON"
            raise error(f"{response.status} with {content}", retryable=True) from None
        if isinstance(parsed, dict) and parsed.get("error") and parsed.keys() <= ERROR_ONLY_KEYS:
            message = self._message(text)
            retryable = bool(re.search(r"too many requests|rate.?limit", message, re.IGNORECASE))
            raise error(f"{response.status} with only an error: {message}", retryable=retryable)
        return parsed


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text, with fractions as Decimal. Raises ValueError for text that is not JSON.

    A number too large to represent becomes NaN, which the parsers of rows refuse: it costs its row, not the page.
    """
    try:
        return json.loads(text, parse_float=_or_nan(Decimal), parse_int=_or_nan(int))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _or_nan(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    def parse_or_nan(text: str) -> Any:
        try:
            return parse(text)
        except (ValueError, ArithmeticError):
            return math.nan

    return parse_or_nan


def retry_after_s(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """The seconds in `Retry-After`, which holds seconds or an HTTP date; None if it is absent or invalid."""
    raw = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", raw, re.ASCII):
        return float(raw)
    try:
        date = parsedate_to_datetime(raw)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds())


def error_message(text: str) -> str:
    """The error message in a response body, on one line, whatever JSON or text it is in."""
    if looks_like_html(text):
        return "an HTML page"
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        message = text
    while isinstance(message, dict):
        message = message.get("error") or message.get("message") or next(iter(message.values()), "")
    return one_line(message) or "no message"


def looks_like_html(text: str) -> bool:
    return text.lstrip("\ufeff \t\r\n")[:1] == "<"


def one_line(message: object, limit: int = MAX_MESSAGE) -> str:
    """A message without line breaks and control characters, cut to `limit` characters."""
    line = " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", " ", str(message)).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
