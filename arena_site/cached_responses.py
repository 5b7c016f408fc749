"""Cached responses of the leaderboard and the performance curves, invalidated by version.

A response is cached under the versions of the data that it was made from, which are read from the database for each
request: all web processes agree on them, and no response is older than the data that a reader could have read.
"""

import hashlib
import logging
from collections.abc import Callable, Sequence
from http import HTTPStatus

from django.core.cache import cache
from django.db import DatabaseError
from django.db.models import Max
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from cohorts.models import Cohort
from markets.services.cache_versions import Scope, current_versions
from scoring.models import Snapshot

LEADERBOARD, PERFORMANCE = "/api/v1/leaderboard/", "/api/v1/performance/"
CACHED = {
    LEADERBOARD: ((Scope.LEADERBOARDS,), {"protocol", "methodology", "arm", "fields", "format", "page", "page_size"}),
    PERFORMANCE: ((Scope.COMPETITION, Scope.SNAPSHOTS), {"range", "cohort", "family"}),
}
"""By path: the scopes of data that a response is made from, and the parameters with which it is made of these alone."""
LIFETIME_S = 3600
"""How long a cache keeps a response whose versions no longer hold; nobody reads it any more."""

log = logging.getLogger(__name__)


class CachedResponses:
    """Middleware that repeats cached responses, headers and compression included, until what they show changes."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        scopes = _scopes(request)
        # Before the response is made: a change in between then belongs to versions that no longer hold.
        versions = None if scopes is None else _versions(scopes)
        if versions is None:
            return self.get_response(request)
        key = _key(request, versions)
        cached = _read(key)
        if cached is not None:
            content, headers = cached
            return HttpResponse(content, headers=headers)
        response = self.get_response(request)
        if response.status_code == HTTPStatus.OK and not response.cookies and _is_lasting(request):
            _write(key, (response.content, dict(response.items())))
        return response


def _scopes(request: HttpRequest) -> Sequence[Scope] | None:
    """The scopes that the response is made from; None where it is not to be cached."""
    entry = CACHED.get(request.path_info)
    if entry is None or request.method != "GET" or not request.GET.keys() <= entry[1]:
        return None
    return entry[0]


def _versions(scopes: Sequence[Scope]) -> tuple[str, ...] | None:
    try:
        current = current_versions()
    except DatabaseError:  # the view reports it
        return None
    return tuple(current[scope] for scope in scopes) if current.keys() >= set(scopes) else None


def _key(request: HttpRequest, versions: Sequence[str]) -> str:
    parts = (request.scheme, request.get_host(), request.path_info, request.META.get("QUERY_STRING", ""), *versions)
    negotiated = (request.META.get(header, "") for header in ("HTTP_ACCEPT", "HTTP_ACCEPT_ENCODING"))
    return hashlib.sha256("\n".join([*parts, *negotiated]).encode()).hexdigest()


def _read(key: str) -> tuple[bytes, dict[str, str]] | None:
    try:
        cached: tuple[bytes, dict[str, str]] | None = cache.get(key)
    except Exception as error:
        log.warning("the cache could not be read: %s", error)
        return None
    return cached


def _write(key: str, response: tuple[bytes, dict[str, str]]) -> None:
    try:
        cache.set(key, response, LIFETIME_S)
    except Exception as error:
        log.warning("the cache could not be written: %s", error)


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
