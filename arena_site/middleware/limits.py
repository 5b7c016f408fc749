"""Rate limits per client, counted in the database so that all processes on all machines share them."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from math import ceil
from threading import Lock

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import F
from django.http import HttpRequest, HttpResponse

from arena_site.middleware import ADMIN, API, PROBES
from arena_site.middleware.clients import client_key
from arena_site.models import RateLimitCounter
from foundation.rest.problems import Problem

log = logging.getLogger(__name__)
MINUTE = 60
RESERVED_FRACTION = 16
"""A process reserves 1/16 of the remaining requests at a time, so that few requests cost a write."""
SQLITE_LOCK_TIMEOUT_MS = 100
"""The longest that a request waits for a job that holds SQLite's write lock."""


def window_end(now: float, seconds: int) -> int:
    """The end of the fixed window that contains an instant, in seconds since 1970."""
    return (int(now) // seconds + 1) * seconds


def increment(limit_name: str, client: str, number: int, *, ends: int) -> int:
    """Adds `number` to a client's counter for the window that ends at `ends`, and returns the new count.

    It is one statement, so that concurrent processes can not lose a count. A client's first deletes old windows.
    """
    table = connection.ops.quote_name(RateLimitCounter._meta.db_table)
    sql = (
        f"INSERT INTO {table} (limit_name, client, window_end, count) VALUES (%s, %s, %s, %s) "  # noqa: S608 - our table
        "ON CONFLICT (limit_name, client, window_end) "
        f"DO UPDATE SET count = {table}.count + excluded.count RETURNING count"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [limit_name, client, ends, number])
        total = int(cursor.fetchone()[0])
    if total == number:
        RateLimitCounter.objects.filter(limit_name=limit_name, window_end__lt=ends).delete()
    return total


@dataclass(slots=True)
class _Allowance:
    """Requests that a process has reserved for a client, and those that remained when it last reserved."""

    reserved: int = 0
    remaining: int = 0


@dataclass
class SharedLimit:
    """A limit per client and window, shared by all processes, each of which reserves a part at a time.

    Reserved requests that go unused are lost to the client until the window ends; the parts shrink with the remainder.
    """

    name: str
    seconds: int
    _ends: int = 0
    _clients: dict[str, _Allowance] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def remaining(self, client: str, most: int, *, now: float) -> int:
        """The requests that the client has left, as far as this process knows of those of others."""
        with self._lock:
            allowance = self._clients.get(client) if self._ends == window_end(now, self.seconds) else None
            return most if allowance is None else allowance.reserved + allowance.remaining

    def acquire(self, client: str, most: int, *, now: float) -> float | None:
        """None if the request is allowed, else the seconds to wait."""
        ends = window_end(now, self.seconds)
        with self._lock:
            if self._ends != ends:
                self._ends = ends
                self._clients.clear()
            allowance = self._clients.setdefault(client, _Allowance(remaining=most))
            if allowance.reserved:
                allowance.reserved -= 1
                return None
            if not allowance.remaining:
                return ends - now
            number = max(1, allowance.remaining // RESERVED_FRACTION)
        with short_lock_timeout():
            before = increment(self.name, client, number, ends=ends) - number
        with self._lock:
            granted = max(0, min(number, most - before))
            allowance.remaining = max(0, most - before - number)
            allowance.reserved += granted - 1 if granted else 0
        return None if granted else ends - now


API_LIMIT = SharedLimit("api", MINUTE)


POLICY = "client"
"""The name of the limit in the headers `RateLimit` and `RateLimit-Policy`."""
UNLIMITED = (ADMIN, "/static/", *PROBES)


class RateLimits:
    """Middleware: ARENA_API_RATE requests per minute and client of the API, pages, feeds and files; 0 means no limit.

    The headers are those of draft-ietf-httpapi-ratelimit-headers-10.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        most = settings.ARENA_API_RATE
        if not most or request.path_info.startswith(UNLIMITED):
            return self.get_response(request)
        client, now = client_key(request.META), time.time()
        try:
            wait = API_LIMIT.acquire(client, most, now=now)
        except DatabaseError as error:
            # A request is not refused for a counter that is locked: readers do not wait for writers.
            log.warning("a request was not counted: %s", error)
            wait = None
        remainder = API_LIMIT.remaining(client, most, now=now)
        response = self.get_response(request) if wait is None else _too_many(request, ceil(wait))
        response["RateLimit-Policy"] = f'"{POLICY}";q={most};w={API_LIMIT.seconds}'
        response["RateLimit"] = f'"{POLICY}";r={remainder};t={ceil(window_end(now, API_LIMIT.seconds) - now)}'
        return response


def _too_many(request: HttpRequest, seconds: int) -> HttpResponse:
    status, text = HTTPStatus.TOO_MANY_REQUESTS, f"Too many requests. Try again in {seconds} seconds."
    if request.path_info.startswith(API):
        return Problem(status, text, headers={"Retry-After": str(seconds)})
    headers = {"Retry-After": str(seconds), "Cache-Control": "no-store"}
    return HttpResponse(f"{text}\n", status=status, content_type="text/plain; charset=utf-8", headers=headers)


@contextmanager
def short_lock_timeout() -> Iterator[None]:
    """Gives up on SQLite's write lock after 0.1 s instead of 30 s. PostgreSQL locks rows and needs nothing."""
    if connection.vendor != "sqlite":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        (timeout,) = cursor.fetchone()
        cursor.execute(f"PRAGMA busy_timeout = {SQLITE_LOCK_TIMEOUT_MS}")
        try:
            yield
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {timeout}")


def decrement(limit_name: str, client: str, *, ends: int) -> None:
    """Takes back an attempt that was counted in advance."""
    counters = RateLimitCounter.objects.filter(limit_name=limit_name, client=client, window_end=ends, count__gt=0)
    counters.update(count=F("count") - 1)
