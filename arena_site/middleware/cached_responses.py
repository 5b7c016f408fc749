"""Cached responses of pages, the leaderboard and the performance curves, invalidated by version.

A response is cached under the versions of the data that it was made from, which are read from the database for each
request: all web processes agree on them, and no response is older than the data that a reader could have read. The
version of a page is the last change of any data; while a run is changing data, no page is cached.
"""

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError
from django.db.models import Max
from django.http import HttpRequest, HttpResponse, QueryDict
from django.middleware.gzip import re_accepts_gzip
from django.utils import timezone

from arena_site.middleware import ADMIN, API, PROBES
from arena_site.middleware.heavy_reads import busy
from arena_site.middleware.last_change import last_change
from arena_site.middleware.read_deadlines import MAX_READ_S
from cohorts.models import Cohort
from markets.services.cache_versions import Scope, current_versions
from scoring.models import Snapshot

LEADERBOARD, PERFORMANCE = "/api/v1/leaderboard/", "/api/v1/performance/"
CACHED = {LEADERBOARD: (Scope.LEADERBOARDS,), PERFORMANCE: (Scope.COMPETITION, Scope.SNAPSHOTS)}
"""The scopes of data that a response of the API is made from, by path. Unknown parameters are refused."""
PAST = "as_of"
"""A parameter with which these responses are made from more."""
UNCACHED = (ADMIN, API, "/data/", "/og/", "/static/", *PROBES)
"""Beginnings of the addresses that are no pages."""
ACCEPTED = {"", "*/*", "application/json", "application/json, text/plain, */*", "text/csv"}
"""Values of `Accept` with which a response of the API is cached."""
LIFETIME_S = 600
"""The longest that a response is cached. A page is given again for PAGE_CACHE_S, later only by a busy process."""
QUICK_S = 0.15
"""A request waits for an equal one that is computed for as long as most take, before it needs a place."""
MOST_WAITING = 2
"""The requests of a process that wait longer for equal ones: its other threads are left to cached responses."""
_waiting = threading.BoundedSemaphore(MOST_WAITING)

log = logging.getLogger(__name__)


class ReadParameters(QueryDict):
    """A request's parameters, and the names of those that were read: a page is made from no others."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.read: set[str] = set()
        super().__init__(*args, **options)
        self.read.clear()  # filling it asks for the names

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.read.add(str(name))
        return super().__contains__(name)

    def getlist(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return super().getlist(name, default)

    def dict(self) -> Any:
        return {name: super(ReadParameters, self).__getitem__(name) for name in self}


class CachedResponse(NamedTuple):
    content: bytes
    headers: dict[str, str]
    fresh_until: float

    def as_response(self) -> HttpResponse:
        return HttpResponse(self.content, headers=self.headers)


class Computation:
    """A response that a thread of this process computes, and that equal requests wait for."""

    def __init__(self) -> None:
        self.is_done = threading.Event()
        self.result: CachedResponse | None = None

    def wait(self) -> bool:
        """Waits for the end; false where too many wait already."""
        if self.is_done.wait(QUICK_S):
            return True
        if not _waiting.acquire(blocking=False):
            return False
        try:
            return self.is_done.wait(MAX_READ_S)
        finally:
            _waiting.release()


_computations: dict[str, Computation] = {}


class CachedResponses:
    """Middleware that repeats cached responses, headers and compression included, until what they show changes."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # Before the response is made: a change in between then belongs to versions that no longer hold.
        versions = _versions(request)
        if versions is None:
            return self.get_response(request)
        key = _key(request, versions)
        cached = _read(key)
        if cached is not None and cached.fresh_until > time.time():
            return cached.as_response()
        own = Computation()
        computation = _computations.setdefault(key, own)  # atomic
        if computation is own:
            response = self._compute(request, key, own)
            is_busy = hasattr(response, "is_busy")
        elif is_done := computation.wait():
            if computation.result is not None:
                return computation.result.as_response()
            response, is_busy = self.get_response(request), False
        else:
            response, is_busy = busy(request), not is_done
        return cached.as_response() if is_busy and cached is not None else response

    def _compute(self, request: HttpRequest, key: str, computation: Computation) -> HttpResponse:
        """The response, which is stored even if nobody waits for it any longer."""
        parameters = ReadParameters(request.META.get("QUERY_STRING", ""), encoding=request.encoding)
        request.GET = parameters  # type: ignore[assignment]
        try:
            response = self.get_response(request)
            is_known = _is_api_read(request) or parameters.keys() <= parameters.read
            if is_known and _is_shared(response) and _is_lasting(request):
                fresh_s = LIFETIME_S if _is_api_read(request) else settings.PAGE_CACHE_S
                result = CachedResponse(response.content, dict(response.items()), time.time() + fresh_s)
                computation.result = result
                _write(key, result)
            return response
        finally:
            del _computations[key]
            computation.is_done.set()


def _versions(request: HttpRequest) -> tuple[str, ...] | None:
    """The versions of the data that the response is made from; None where it is not to be cached."""
    if request.method != "GET":
        return None
    if not request.path_info.startswith(UNCACHED):
        changed = last_change(timezone.now()) if settings.PAGE_CACHE_S else None
        return None if changed is None else (changed.isoformat(),)
    scopes = CACHED.get(request.path_info, ())
    if not scopes or PAST in request.GET or request.META.get("HTTP_ACCEPT", "") not in ACCEPTED:
        return None
    try:
        current = current_versions()
    except DatabaseError:  # the view reports it
        return None
    return tuple(current[scope] for scope in scopes) if current.keys() >= set(scopes) else None


def _is_api_read(request: HttpRequest) -> bool:
    """Whether the API answers, else a page."""
    return request.path_info in CACHED


def _key(request: HttpRequest, versions: Sequence[str]) -> str:
    parts = (request.scheme, request.get_host(), request.path_info, request.META.get("QUERY_STRING", ""), *versions)
    accepted = request.META.get("HTTP_ACCEPT", "") if _is_api_read(request) else ""
    negotiated = (accepted, str(bool(re_accepts_gzip.search(request.META.get("HTTP_ACCEPT_ENCODING", "")))))
    return hashlib.sha256("\n".join([*parts, *negotiated]).encode()).hexdigest()


def _read(key: str) -> CachedResponse | None:
    try:
        cached: CachedResponse | None = cache.get(key)
    except Exception as error:
        log.warning("the cache could not be read: %s", error)
        return None
    return cached


def _write(key: str, response: CachedResponse) -> None:
    try:
        cache.set(key, response, LIFETIME_S)
    except Exception as error:
        log.warning("the cache could not be written: %s", error)


def _is_shared(response: HttpResponse) -> bool:
    """Whether every visitor gets this response: a whole one, that no cookie changes."""
    varies = response.get("Vary", "").lower()
    is_complete = response.status_code == HTTPStatus.OK and not response.streaming
    return is_complete and not response.cookies and "cookie" not in varies


def _is_lasting(request: HttpRequest) -> bool:
    """Whether time alone changes nothing: it does once it reaches rows that were recorded for a later instant."""
    if request.path_info != PERFORMANCE:
        return True
    # The maxima, since PostgreSQL would look for rows later than now by going through a third of the table.
    instants = [
        Snapshot.objects.aggregate(last=Max("taken_at"))["last"],
        Cohort.objects.aggregate(last=Max("started_at"))["last"],
    ]
    return all(instant is None or instant <= timezone.now() for instant in instants)
