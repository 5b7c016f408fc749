"""Cached responses of pages, the leaderboard and the performance curves, invalidated by version.

A response is cached under the versions of the data that it was made from, which are read from the database for each
request: all web processes agree on them, and no response is older than the data that a reader could have read. The
version of a page is the last change of any data; while a run is changing data, no page is cached.
"""

import hashlib
import logging
from collections.abc import Callable, Sequence
from http import HTTPStatus

from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError
from django.db.models import Max
from django.http import HttpRequest, HttpResponse
from django.middleware.gzip import re_accepts_gzip
from django.utils import timezone

from agents.models.sealed_rows import read_seals
from arena_site.middleware import ADMIN, API, PROBES
from arena_site.middleware.last_change import last_change
from cohorts.models import Cohort
from foundation import clock
from markets.services.cache_versions import Scope, current_versions
from scoring.models import Snapshot

LEADERBOARD, PERFORMANCE = "/api/v1/leaderboard/", "/api/v1/performance/"
CACHED = {
    LEADERBOARD: ((Scope.LEADERBOARDS,), {"protocol", "methodology", "arm", "fields", "format", "page", "page_size"}),
    PERFORMANCE: ((Scope.COMPETITION, Scope.SNAPSHOTS), {"range", "cohort", "family"}),
}
"""By path: the scopes of data that a response is made from, and the parameters with which it is made of these alone."""
UNCACHED = (ADMIN, API, "/data/", "/og/", "/static/", *PROBES)
"""Beginnings of the addresses that are no pages."""
PAGE_PARAMETERS = {
    "action", "all", "arm", "as_of", "asked_from", "asked_to", "category", "closes_from", "closes_to", "cohort",
    "finding", "first", "from", "gamma", "methodology", "model", "page", "period", "played", "protocol", "q", "range",
    "second", "sort", "source", "status", "to", "track", "week",
}  # fmt: skip
"""Parameters of pages. A page with another is not cached: anyone could fill the cache with them."""
ACCEPTED = {"", "*/*", "application/json", "application/json, text/plain, */*", "text/csv"}
"""Values of `Accept` with which a response of the API is cached."""
LIFETIME_S = 600
"""The longest that a response of the API is cached. A page is cached for PAGE_CACHE_S."""

log = logging.getLogger(__name__)


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
        if cached is not None:
            content, headers = cached
            return HttpResponse(content, headers=headers)
        response = self.get_response(request)
        if _is_shared(response) and _is_lasting(request):
            _write(key, (response.content, dict(response.items())), _lifetime_s(request))
        return response


def _versions(request: HttpRequest) -> tuple[str, ...] | None:
    """The versions of the data that the response is made from; None where it is not to be cached."""
    if request.method != "GET":
        return None
    if not request.path_info.startswith(UNCACHED):
        return _page_versions() if request.GET.keys() <= PAGE_PARAMETERS else None
    scopes, parameters = CACHED.get(request.path_info, ((), set()))
    if not scopes or not request.GET.keys() <= parameters or request.META.get("HTTP_ACCEPT", "") not in ACCEPTED:
        return None
    try:
        current = current_versions()
    except DatabaseError:  # the view reports it
        return None
    return tuple(current[scope] for scope in scopes) if current.keys() >= set(scopes) else None


def _page_versions() -> tuple[str, ...] | None:
    """The last change, and the time in steps of PAGE_CACHE_S: a page also tells how old its data is."""
    if not settings.PAGE_CACHE_S:
        return None
    now = timezone.now()
    changed = last_change(now)
    return None if changed is None else (changed.isoformat(), str(now.timestamp() // settings.PAGE_CACHE_S))


def _is_api_read(request: HttpRequest) -> bool:
    """Whether the API answers, else a page."""
    return request.path_info in CACHED


def _key(request: HttpRequest, versions: Sequence[str]) -> str:
    parts = (request.scheme, request.get_host(), request.path_info, request.META.get("QUERY_STRING", ""), *versions)
    accepted = request.META.get("HTTP_ACCEPT", "") if _is_api_read(request) else ""
    negotiated = (accepted, str(bool(re_accepts_gzip.search(request.META.get("HTTP_ACCEPT_ENCODING", "")))))
    return hashlib.sha256("\n".join([*parts, *negotiated]).encode()).hexdigest()


def _read(key: str) -> tuple[bytes, dict[str, str]] | None:
    try:
        cached: tuple[bytes, dict[str, str]] | None = cache.get(key)
    except Exception as error:
        log.warning("the cache could not be read: %s", error)
        return None
    return cached


def _lifetime_s(request: HttpRequest) -> float:
    """The time that a response holds: a page as long as its key, none longer than a seal, whose end shows more."""
    ends = [(until - clock.now()).total_seconds() for _, until in read_seals().one_by_one()]
    return min([LIFETIME_S if _is_api_read(request) else settings.PAGE_CACHE_S, *ends])


def _write(key: str, response: tuple[bytes, dict[str, str]], lifetime_s: float) -> None:
    try:
        cache.set(key, response, lifetime_s)
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
