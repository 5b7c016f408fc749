"""The way out: what is tried again, what is not, and that nothing can hold it for ever."""

import json
import math
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from time import monotonic

import pytest
import stamina
from pytest_httpserver import HTTPServer
from stamina.instrumentation import RetryDetails, set_on_retry_hooks
from werkzeug import Request, Response

from foundation.http import USER_AGENT, HttpService, UpstreamError, retry_after_s

NOON = datetime(2026, 3, 8, 12, 0, tzinfo=UTC)
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

pytestmark = pytest.mark.usefixtures("retries_without_waits")


# ── servers that misbehave below HTTP ─────────────────────────────────────────────────────────────

Act = Callable[[socket.socket, threading.Event], None]


@contextmanager
def misbehaving(*behaviours: Act) -> Iterator[str]:
    """The address of a server that treats its nth request as the nth act says, and the rest as the last."""
    over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for turn in range(1000):
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                try:
                    _read_request(connection)
                    behaviours[min(turn, len(behaviours) - 1)](connection, over)
                except OSError:
                    continue  # the client has gone, as it should

    server = threading.Thread(target=serve)
    server.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        server.join()


def _read_request(connection: socket.socket) -> None:
    received = b""
    while b"\r\n\r\n" not in received:
        received += _received(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    length = next(
        (int(header[15:]) for header in head.lower().split(b"\r\n") if header.startswith(b"content-length:")), 0
    )
    while len(body) < length:
        body += _received(connection)


def _received(connection: socket.socket) -> bytes:
    """The next bytes; ConnectionError if the client has closed the connection, as one does whose time is over."""
    if not (received := connection.recv(65536)):
        raise ConnectionError("the client has gone")
    return received


def saying(answer: bytes) -> Act:
    return lambda connection, over: connection.sendall(answer)


def whole(body: bytes) -> Act:
    return saying(OK + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def dripping(first: bytes, drop: bytes) -> Act:
    def act(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(first)
        while not over.wait(0.02):
            connection.sendall(drop)

    return act


def silent(connection: socket.socket, over: threading.Event) -> None:
    connection.recv(1)  # until the client has had enough


def reset(connection: socket.socket, over: threading.Event) -> None:
    # Linger for zero seconds: closing sends a reset, not a farewell.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


truncated = saying(OK + b"Content-Length: 100\r\n\r\n" + b'{"half": ')
drips_its_body = dripping(OK + b"Content-Length: 100000\r\n\r\n[", b" ")
drips_its_header = dripping(OK, b"X")


# ── the tests ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def service(httpserver: HTTPServer) -> Iterator[HttpService]:
    with HttpService("venue", httpserver.url_for("/api"), timeout_s=5) as service:
        yield service


def failure(service: HttpService, path: str = "/x") -> UpstreamError:
    with pytest.raises(UpstreamError) as caught:
        service.get_json(path)
    return caught.value


def test_answer_keeps_its_decimals_and_the_request_names_who_asks(httpserver: HTTPServer, service: HttpService) -> None:
    httpserver.expect_request(
        "/api/markets", query_string="limit=5", headers={"User-Agent": USER_AGENT}
    ).respond_with_data('{"price": 0.10, "n": 3}', content_type="application/json")
    answer = service.get_json("/markets", {"limit": 5})
    assert answer == {"price": Decimal("0.10"), "n": 3}
    assert str(answer["price"]) == "0.10"


def test_post_sends_its_json(httpserver: HTTPServer, service: HttpService) -> None:
    httpserver.expect_request("/api/books", method="POST", json=[{"token_id": "7"}]).respond_with_json([])
    assert service.post_json("/books", [{"token_id": "7"}]) == []


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 524])
def test_status_that_may_pass_is_tried_again(httpserver: HTTPServer, service: HttpService, status: int) -> None:
    httpserver.expect_ordered_request("/api/x").respond_with_data("no", status=status)
    httpserver.expect_ordered_request("/api/x").respond_with_json({"ok": 1})
    assert service.get_json("/x") == {"ok": 1}


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 405, 422])
def test_status_that_will_not_pass_is_final(httpserver: HTTPServer, service: HttpService, status: int) -> None:
    httpserver.expect_request("/api/x").respond_with_json({"error": "no\nsuch thing"}, status=status)
    error = failure(service)
    assert (error.status, error.retryable, len(httpserver.log)) == (status, False, 1)
    assert str(error) == f"venue: GET /x answered {status}: no such thing"


@pytest.mark.parametrize("body", ['{"half": [1, 2', "", "<!doctype html><p>Just a moment…"])
def test_body_that_is_no_json_is_tried_again(httpserver: HTTPServer, service: HttpService, body: str) -> None:
    httpserver.expect_ordered_request("/api/x").respond_with_data(body)
    httpserver.expect_ordered_request("/api/x").respond_with_json([1])
    assert service.get_json("/x") == [1]


def test_retries_are_bounded_and_the_last_failure_is_told(httpserver: HTTPServer, service: HttpService) -> None:
    httpserver.expect_request("/api/x").respond_with_json(
        {"type": "service unavailable", "error": "keyset pagination is not configured"}, status=503
    )
    error = failure(service)
    assert len(httpserver.log) == 1 + service.retries
    assert str(error) == "venue: GET /x answered 503: keyset pagination is not configured"
    assert error.retryable
    assert "service unavailable" in error.body


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e99999999999999999999", "9" * 5000])
def test_number_that_can_not_be_held_costs_nothing_beside_it(
    httpserver: HTTPServer, service: HttpService, number: str
) -> None:
    httpserver.expect_request("/api/x").respond_with_data(f'[{{"price": {number}}}, {{"price": 0.40}}]')
    broken, whole_row = service.get_json("/x")
    assert not math.isfinite(broken["price"])
    assert whole_row == {"price": Decimal("0.40")}


def test_absurd_nesting_is_broken_json_and_no_crash(httpserver: HTTPServer, service: HttpService) -> None:
    httpserver.expect_request("/api/deep").respond_with_data("[" * 200_000)
    assert "broken or truncated JSON" in failure(service, "/deep").reason


def test_text_that_no_address_can_carry_is_a_failure_and_no_crash(service: HttpService) -> None:
    with pytest.raises(UpstreamError, match="could not be sent: the request is invalid"):
        service.get_json("/x", {"after_cursor": "\ud800"})


@pytest.mark.parametrize(
    ("message", "requests"), [("Too Many Requests", 4), ("rate limit exceeded", 4), ("no such thing", 1)]
)
def test_ok_that_holds_only_an_error_is_one(
    httpserver: HTTPServer, service: HttpService, message: str, requests: int
) -> None:
    httpserver.expect_request("/api/x").respond_with_json({"error": message})
    error = failure(service)
    assert error.reason == f"GET /x answered 200 with only an error: {message}"
    assert len(httpserver.log) == requests


def test_answer_with_an_empty_error_beside_its_data_is_an_answer(httpserver: HTTPServer, service: HttpService) -> None:
    httpserver.expect_request("/api/x").respond_with_json({"error": None, "data": [1]})
    assert service.get_json("/x")["data"] == [1]


def test_retry_after_sets_the_wait(httpserver: HTTPServer, service: HttpService) -> None:
    waits: list[float] = []

    def note(details: RetryDetails) -> None:
        waits.append(details.wait_for)

    httpserver.expect_ordered_request("/api/x").respond_with_data("", 429, headers={"Retry-After": "0.7"})
    httpserver.expect_ordered_request("/api/x").respond_with_json({})
    set_on_retry_hooks([note])
    try:
        with stamina.set_testing(False):
            service.get_json("/x")
    finally:
        set_on_retry_hooks(None)
    assert 0.7 <= waits[0] <= 0.9


def test_retry_after_beyond_patience_fails_at_once(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/x").respond_with_data("", 503, headers={"Retry-After": "21"})
    with HttpService("venue", httpserver.url_for("/")) as service:
        error = failure(service)
    assert (error.retry_after, len(httpserver.log)) == (21.0, 1)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        (format_datetime(NOON + timedelta(seconds=90), usegmt=True), 90.0),
        (format_datetime(NOON - timedelta(days=1), usegmt=True), 0.0),
        ("", None),
        ("-5", None),
        ("soon", None),
        ("٣", None),
        ("9" * 12, 999999999999.0),
        ("Fri, 01 Jan 99999999999 00:00:00 GMT", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(header: str, seconds: float | None) -> None:
    assert retry_after_s({"Retry-After": header}, now=NOON) == seconds


@pytest.mark.parametrize("act", [reset, truncated, silent, drips_its_body, drips_its_header])
def test_broken_transport_is_tried_again(act: Act) -> None:
    with misbehaving(act, whole(b'{"ok": 1}')) as url, HttpService("venue", url, timeout_s=0.3) as service:
        assert service.get_json("/x") == {"ok": 1}


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (reset, "failed: [Errno 104] Connection reset by peer"),
        (truncated, "was cut off before the response was complete"),
        (silent, "did not finish within 0.3 s"),
        (drips_its_body, "did not finish within 0.3 s"),
        (drips_its_header, "did not finish within 0.3 s"),
    ],
)
def test_broken_transport_ends_in_time_and_is_named(act: Act, reason: str) -> None:
    started_at = monotonic()
    with (
        misbehaving(act) as url,
        HttpService("venue", url, timeout_s=0.3, retries=0) as service,
        pytest.raises(UpstreamError) as caught,
    ):
        service.exchange("GET", "/x")
    assert monotonic() - started_at < 2
    assert (caught.value.reason, caught.value.retryable) == (f"GET /x {reason}", True)


def test_silence_after_a_drip_does_not_begin_the_deadline_anew() -> None:
    def drips_then_falls_silent(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(OK + b"Content-Length: 9\r\n\r\n[")
        over.wait(0.9)
        connection.sendall(b"1")
        silent(connection, over)

    started_at = monotonic()
    with misbehaving(drips_then_falls_silent) as url, HttpService("venue", url, timeout_s=1, retries=0) as service:
        assert failure(service).reason == "GET /x did not finish within 1 s"
    assert monotonic() - started_at < 1.6


def test_deadline_of_one_request_does_not_shorten_the_next() -> None:
    with misbehaving(silent, whole(b"[1]")) as url, HttpService("venue", url, timeout_s=0.3, retries=0) as service:
        assert failure(service).retryable
        assert service.get_json("/x") == [1]


def test_total_limit_ends_the_request_under_way_its_retries_and_later_ones() -> None:
    started_at = monotonic()
    with misbehaving(silent) as url, HttpService("venue", url, timeout_s=20).limit_total(0.5) as service:
        first, later = failure(service), failure(service)
    assert monotonic() - started_at < 1.5
    assert (first.reason, first.retryable) == ("GET /x did not finish within the 0.5 s for all requests", False)
    assert (later.reason, later.is_sent) == ("GET /x was not sent: the 0.5 s for all requests are over", False)


def test_retries_end_with_the_total_limit_where_each_is_answered() -> None:
    def busy(connection: socket.socket, over: threading.Event) -> None:
        over.wait(0.05)
        connection.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")

    started_at = monotonic()
    with misbehaving(busy) as url, HttpService("venue", url, retries=90).limit_total(0.5) as service:
        failure(service)
    assert monotonic() - started_at < 1.5


def test_refused_connection_is_retryable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with HttpService("venue", f"http://127.0.0.1:{port}", retries=1) as service:
        error = failure(service)
    assert (error.status, error.retryable) == (None, True)


def test_huge_body_is_cut_short(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/x").respond_with_data("1" * 200_000)
    with HttpService("venue", httpserver.url_for("/"), max_bytes=100_000) as service:
        error = failure(service)
    assert error.reason == "GET /x answered more than 100000 bytes"
    assert (error.retryable, len(httpserver.log)) == (False, 1)


def test_exchange_judges_nothing(httpserver: HTTPServer, service: HttpService) -> None:
    def answer(request: Request) -> Response:
        return Response(json.dumps(request.headers["Idempotency-Key"]), status=503, headers={"X-Request-Id": "r1"})

    httpserver.expect_request("/api/x", method="POST").respond_with_handler(answer)
    exchange = service.exchange("POST", "/x", json={}, headers={"Idempotency-Key": "k-1"})
    assert (exchange.status, exchange.body, exchange.headers["x-request-id"]) == (503, b'"k-1"', "r1")
    assert exchange.latency_ms >= 0
    assert len(httpserver.log) == 1


def test_key_is_not_quoted_when_its_header_can_not_be_sent(httpserver: HTTPServer) -> None:
    headers = {"Authorization": "Bearer s3cret\r\nX: y"}
    with HttpService("venue", httpserver.url_for("/"), headers=headers) as service:
        error = failure(service)
    assert "s3cret" not in str(error)
    assert not error.retryable


@pytest.mark.parametrize("base_url", ["", "gamma.example", "ftp://gamma.example", "http://"])
def test_base_url_that_leads_nowhere_is_refused_at_once(base_url: str) -> None:
    with pytest.raises(ValueError, match="venue: base_url must be an http"):
        HttpService("venue", base_url)
