"""Faults of an upstream: the error that a client makes of each, and the outcome of each job that meets it."""

from collections.abc import Iterator
from decimal import Decimal
from operator import itemgetter
from typing import Any

import pytest
import stamina
from django.db import transaction
from django.test import override_settings
from pytest_httpserver import HTTPServer

from agents.gateway.client import Gateway
from agents.gateway.completions import GatewayFailure
from agents.services import model_calls
from agents.services.gone_releases import RELEASE_GONE
from foundation.http import HttpService, UpstreamError
from foundation.models import Alert
from foundation.services.alerts import acknowledge_alerts
from tests.faults.entry_points import ENTRY_POINTS, HOUR, EntryPoint, facts
from tests.faults.upstream import FAULTS, TIMEOUT_S, TINY_TIMEOUT_S, Act, faulty, whole
from tests.sandbox import Venue, addresses
from tests.selection import one_per_rule


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[None]:
    """One retry of what may pass, at venues and at the gateway alike, and no wait before it."""
    settings.ARENA_LLM_TRANSPORT_RETRIES = 1
    monkeypatch.setattr(model_calls, "FIRST_PAUSE_S", 0)
    with stamina.set_testing(True, attempts=2, cap=True):
        yield


# ── the clients ───────────────────────────────────────────────────────────────────────────────────

SLOW = f"did not finish within {TINY_TIMEOUT_S} s"
LARGE = "answered more than 33554432 bytes"
BROKEN = "answered 200 with broken or truncated JSON"
AGAIN, FINAL = True, False
BOOKED, FREE = True, False
"""Whether a request to a model counts at its worst case, or at nothing."""
CLIENTS = {
    # fault: (requests of a venue's client that tries twice, its reason; whether a model may be asked again, its cost)
    "takes no connection": (0, SLOW, AGAIN, FREE),
    "refuses the connection": (0, "failed: [Errno 111] Connection refused", AGAIN, FREE),
    "resets the connection": (2, "failed: [Errno 104] Connection reset by peer", AGAIN, BOOKED),
    "never answers": (2, SLOW, AGAIN, BOOKED),
    "drips its headers": (2, SLOW, AGAIN, BOOKED),
    "drips its body": (2, SLOW, AGAIN, BOOKED),
    "breaks off in the body": (2, "was cut off before the response was complete", AGAIN, BOOKED),
    "sends without end": (1, LARGE, FINAL, BOOKED),
    "sends 40 MiB": (1, LARGE, FINAL, BOOKED),
    **{status: (1, f"answered {status}: scripted {status}", FINAL, FREE) for status in ("400", "401", "402", "403")},
    **{status: (1, f"answered {status}: scripted {status}", FINAL, FREE) for status in ("404", "405", "422")},
    **{status: (2, f"answered {status}: scripted {status}", AGAIN, FREE) for status in ("408", "425", "429")},
    "429, retry at once": (2, "answered 429: scripted 429", AGAIN, FREE),
    "429, retry in 30 years": (1, "answered 429: scripted 429", AGAIN, FREE),
    **{status: (2, f"answered {status}: scripted {status}", AGAIN, FREE) for status in ("500", "502", "503", "504")},
    "524": (2, "answered 524: scripted 524", AGAIN, FREE),
    "503, retry in 30 years": (1, "answered 503: an HTML page", AGAIN, FREE),
    "301 to elsewhere": (1, "answered 301: an HTML page", AGAIN, FREE),
    "HTML with 200": (2, "answered 200 with an HTML page", AGAIN, FREE),
    "nothing with 200": (2, BROKEN, AGAIN, FREE),
    "half a JSON with 200": (2, BROKEN, AGAIN, BOOKED),
    "an error with 200": (1, "answered 200 with only an error: no such thing", AGAIN, FREE),
    "a rate limit with 200": (2, "answered 200 with only an error: Too Many Requests", AGAIN, FREE),
    "a rate limit in other words": (2, "answered 200 with only an error: rate limit exceeded", AGAIN, FREE),
    "other JSON with 200": (2, "answered no list of rows", AGAIN, FREE),
    "bytes that are no text": (2, BROKEN, AGAIN, BOOKED),
    "compressed badly": (2, "failed: Error -3 while decompressing data: incorrect header check", AGAIN, BOOKED),
    "40 MiB, compressed": (1, LARGE, FINAL, BOOKED),
}


def test_every_fault_is_one_of_the_table() -> None:
    assert CLIENTS.keys() == FAULTS.keys()


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_one_error_of_a_venues_client(name: str) -> None:
    fault, (requests, reason, *_) = FAULTS[name], CLIENTS[name]
    timeout_s = TINY_TIMEOUT_S if fault.hangs else TIMEOUT_S
    with (
        faulty(fault) as upstream,
        HttpService("venue", upstream.url, timeout_s=timeout_s, retries=1) as service,
        pytest.raises(UpstreamError) as caught,
    ):
        service.post_for_list("/rows", {}, "rows")
    assert (str(caught.value), upstream.requests) == (f"venue: POST /rows {reason}", requests)


@pytest.mark.parametrize("name", [name for name, (requests, *_) in CLIENTS.items() if requests == 2])
def test_fault_that_passes_costs_a_request(name: str) -> None:
    fault, rows = FAULTS[name], whole(b'{"rows": [0.10]}')
    timeout_s = 2 * TINY_TIMEOUT_S if fault.hangs else TIMEOUT_S
    with faulty(fault, after=rows) as upstream, HttpService("venue", upstream.url, timeout_s=timeout_s) as service:
        assert service.post_for_list("/rows", {}, "rows") == [Decimal("0.10")]
    assert upstream.requests == 2


@pytest.mark.parametrize("name", [name for name in FAULTS if "40 MiB" not in name])  # one without end is as large
def test_fault_of_the_gateway_is_final_or_not_and_counts_where_it_may_be_billed(name: str) -> None:
    fault, (*_, retryable, billable) = FAULTS[name], CLIENTS[name]
    timeout_s = TINY_TIMEOUT_S if fault.hangs else TIMEOUT_S
    with (
        faulty(fault) as upstream,
        Gateway(upstream.url, timeout_s=timeout_s) as gateway,
        pytest.raises(GatewayFailure) as caught,
    ):
        gateway.complete(model="x/y", system="", user="", parameters={}, idempotency_key="1")
    assert (caught.value.retryable, caught.value.billable) == (retryable, billable)
    assert caught.value.retry_after == (0 if "at once" in name else 10**9 if "years" in name else None)
    assert upstream.requests == (fault.act is not None)


# ── the jobs ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def entered(
    request: pytest.FixtureRequest, venue_server: HTTPServer, django_db_setup: None, django_db_blocker: Any
) -> Iterator[tuple[EntryPoint, list[Act]]]:
    """An entry point, its state built once: what a test does to it is undone with the test's own transaction."""
    entry_point: EntryPoint = request.param
    venue_server.clear()
    with django_db_blocker.unblock(), override_settings(**addresses(venue_server)), transaction.atomic():
        venue = Venue(venue_server)
        entry_point.prepare(venue)
        yield entry_point, [entry_point.before(venue)] if entry_point.before else []
        transaction.set_rollback(True)


TIMEOUTS = {"OPENROUTER_BASE_URL": "ARENA_LLM_TIMEOUT_S"}
RESULTS = {
    # entry point: (fault, word for its result, requests)
    "catalogue": [("resets the connection", "fails", 2)],
    "page two": [("503", "part", 2), ("refuses the connection", "fails", 0)],
    "look-up": [("429", "fails", 2), ("404", "gone", 1), ("other JSON with 200", "skips", 1)],
    "winner": [("HTML with 200", "fails", 2), ("404", "waits", 1)],
    "jump": [("500", "stale", 2), ("400", "bookless", 3)],
    "midpoints": [("drips its body", "stale", 2)],
    "books": [("sends 40 MiB", "stale", 1), ("404", "bookless", 4), ("refuses the connection", "all stale", 0)],
    "freeze": [("502", "stale", 2)],
    "model": [("401", "fails", 1), ("429, retry in 30 years", "fails", 1), ("resets the connection", "books", 2)],
}
CELLS = one_per_rule([(point, *cell) for point in ENTRY_POINTS for cell in RESULTS[point.name]], itemgetter(0))


def test_each_result_of_a_fault_has_a_case() -> None:
    words = {name: {word for _, word, _ in cells} for name, cells in RESULTS.items()}
    assert words == {point.name: set(point.results) for point in ENTRY_POINTS}


@pytest.mark.django_db
@pytest.mark.parametrize(("entered", "name", "word", "requests"), CELLS, indirect=["entered"], ids=str)
def test_fault_costs_its_job_what_the_word_says_and_the_next_run_nothing(
    entered: tuple[EntryPoint, list[Act]], name: str, word: str, requests: int, settings: Any
) -> None:
    (entry_point, before), fault = entered, FAULTS[name]
    address = getattr(settings, entry_point.setting)
    # With time for the requests before the fault, though the machine be busy.
    tiny_s = 8 * TINY_TIMEOUT_S if before else TINY_TIMEOUT_S
    with faulty(fault, *before) as upstream:
        setattr(settings, entry_point.setting, upstream.url)
        timeout = TIMEOUTS.get(entry_point.setting, "ARENA_VENUE_TIMEOUT_S")
        setattr(settings, timeout, tiny_s if fault.hangs else TIMEOUT_S)
        assert facts(entry_point, entry_point.at, entry_point.results[word]) == entry_point.results[word]
    assert upstream.requests == (len(before) + requests if requests else 0)
    setattr(settings, entry_point.setting, address)
    acknowledge_alerts(Alert.objects.filter(kind=RELEASE_GONE), at=entry_point.at)  # so that the release is asked again
    assert facts(entry_point, entry_point.at + HOUR, entry_point.an_hour_later) == entry_point.an_hour_later
