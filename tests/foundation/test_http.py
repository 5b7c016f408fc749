"""The HTTP client: what it sends, what it makes of answers, and that nothing can hold it for ever.

`tests.faults.test_upstream` has the table of an upstream's faults.
"""

import json
import math
import socket
import threading
from collections.abc import Iterator
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
from tests.faults.upstream import OK, misbehaving, silent, whole

NOON = datetime(2026, 3, 8, 12, 0, tzinfo=UTC)

pytestmark = pytest.mark.usefixtures("retries_without_waits")


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


def test_message_of_an_error_is_one_line(httpserver: HTTPServer, service: HttpService) -> None:
    httpserver.expect_request("/api/x").respond_with_json({"error": "no\nsuch thing"}, status=403)
    error = failure(service)
    assert (error.status, error.retryable) == (403, False)
    assert str(error) == "venue: GET /x answered 403: no such thing"


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
