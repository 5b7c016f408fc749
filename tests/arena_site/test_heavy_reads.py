"""Computations of readers: two at once in a process, equal ones once, and none in the way of what is cached."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event, Lock
from typing import Any

import pytest
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path

from arena_site.middleware import heavy_reads
from arena_site.middleware.heavy_reads import REMEMBERED
from tests.faults.clusters import eventually

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]
AT_ONCE_S = 1.0


class Work:
    """What the view does: it counts its calls, and holds those of each number until that is let go."""

    def __init__(self) -> None:
        self.calls = Counter[int]()
        self.lock = Lock()
        self.is_over = Event()


work = Work()


def long_page(request: HttpRequest, number: int) -> HttpResponse:
    with work.lock:
        work.calls[number] += 1
    work.is_over.wait(30)
    return HttpResponse(f"page {number}, {request.GET.get('q', '')}")


def short_page(request: HttpRequest) -> HttpResponse:
    return HttpResponse("short")


urlpatterns = [path("long/<int:number>/", long_page, name="long"), path("short/", short_page, name="short"),
               path("", include("arena_site.urls"))]  # fmt: skip


@pytest.fixture(autouse=True)
def _new_work(settings: Any) -> Iterator[None]:
    settings.PAGE_CACHE_S, settings.ARENA_API_RATE = 60, 0
    work.__init__()  # type: ignore[misc]
    yield
    work.is_over.set()


def read(address: str) -> tuple[int, float, Any]:
    """The status, the seconds that it took, and the response."""
    began = time.monotonic()
    try:
        response = Client().get(address)
        return response.status_code, time.monotonic() - began, response
    finally:
        connection.close()


@pytest.fixture
def ask() -> Iterator[Callable[[str], "Future[tuple[int, float, Any]]"]]:
    """Sends a request by a reader of its own."""
    with ThreadPoolExecutor(12) as readers:
        yield lambda address: readers.submit(read, address)
        work.is_over.set()


def test_two_are_computed_and_others_refused_at_once(ask: Any) -> None:
    first = [ask(f"/long/{number}/") for number in (1, 2)]
    eventually(lambda: work.calls.total() == 2, 20)
    others = [ask(f"/long/{number}/?q={number}").result() for number in range(3, 7)]
    for status, seconds, response in others:
        assert (status, response["Retry-After"]) == (503, "2")
        assert seconds < AT_ONCE_S
        assert b"busy" in response.content
    assert read("/api/v1/cohorts/")[2].json()["detail"] == "the arena is computing other answers; try again in a moment"
    assert [read(address)[0] for address in ("/healthz", "/readyz")] == [200, 200]
    work.is_over.set()
    assert [future.result()[0] for future in first] == [200, 200]
    assert read("/long/3/")[0] == 200


def test_cached_pages_and_short_ones_do_not_wait(ask: Any) -> None:
    for _ in range(REMEMBERED):
        assert read("/short/?cold=1")[0] == read("/short/")[0] == 200
    for number in (1, 2):
        ask(f"/long/{number}/")
    eventually(lambda: work.calls.total() == 2, 20)
    assert read("/short/")[:1] == (200,)
    assert read("/short/?cold=2")[:1] == (200,)


def test_equal_ones_are_computed_once(ask: Any) -> None:
    futures = [ask("/long/1/") for _ in range(8)]
    eventually(lambda: sum(future.done() for future in futures) == 5, 20)
    work.is_over.set()
    statuses = Counter(future.result()[0] for future in futures)
    assert statuses == {200: 3, 503: 5}, "the one that computes, two that wait, and the rest"
    assert work.calls == {1: 1}
    assert {future.result()[2].content for future in futures if future.result()[0] == 200} == {b"page 1, "}


def test_what_was_computed_is_stored_and_serves_a_busy_process_when_old(
    ask: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heavy_reads, "HEAVY_S", 0)
    settings.PAGE_CACHE_S = 0.001
    work.is_over.set()
    assert read("/long/1/?q=a")[0] == 200
    eventually(lambda: read("/long/1/?q=a")[0] == 200 and work.calls[1] > 1, 20)
    assert work.calls == {1: 2}, "it was made anew once it was old"
    work.is_over.clear()
    for number in (2, 3):
        ask(f"/long/{number}/")
    eventually(lambda: work.calls[2] + work.calls[3] == 2, 20)
    assert read("/long/1/?q=a")[2].content == b"page 1, a"
    assert read("/long/1/?q=b")[0] == 503


def test_page_is_cached_by_the_parameters_that_its_view_reads() -> None:
    work.is_over.set()
    for _ in range(2):
        assert [read(f"/long/1/?{query}")[0] for query in ("q=a", "q=b", "unread=a")] == [200] * 3
    assert work.calls == {1: 4}
