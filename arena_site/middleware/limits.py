"""Rate limits per client, counted by the cache: where CACHE_URL names a server all processes share them."""

import logging
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from math import ceil

from django.conf import settings
from django.core.cache import caches
from django.http import HttpRequest, HttpResponse

from arena_site.middleware import ADMIN, API, PROBES
from arena_site.middleware.clients import client_networks
from foundation.rest.problems import Problem

log = logging.getLogger(__name__)
MINUTE = 60
COUNTERS = "limits"
"""The cache that counts: no response takes a counter's place."""
POLICY = "client"
"""The name of the limit in the headers `RateLimit` and `RateLimit-Policy`."""
UNLIMITED = (ADMIN, *PROBES)


def window_end(now: float, seconds: int) -> int:
    """The end of the fixed window that contains an instant, in seconds since 1970."""
    return (int(now) // seconds + 1) * seconds


def add_to_count(limit_name: str, client: str, number: int, *, ends: int) -> int:
    """Adds to a client's count of the window that ends at `ends`, and returns it; 0 where the cache is gone."""
    counters, key = caches[COUNTERS], f"{limit_name}:{client}:{ends}"
    try:
        counters.add(key, 0, timeout=max(1, ends - time.time()))
        return int(counters.incr(key, number))
    except Exception as error:  # its server is away, or the counter has just run out
        log.warning("a request was not counted: %s", error)
        return 0


def remaining(limit_name: str, networks: Iterable[tuple[str, int]], most: int, *, ends: int) -> int:
    """Counts a request by each network of its client; the requests left, below 0 if it is one too many."""
    return min(factor * most - add_to_count(limit_name, network, 1, ends=ends) for network, factor in networks)


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
        now = time.time()
        ends = window_end(now, MINUTE)
        left = remaining("api", client_networks(request.META), most, ends=ends)
        wait = ceil(ends - now)
        response = self.get_response(request) if left >= 0 else _too_many(request, wait)
        response["RateLimit-Policy"] = f'"{POLICY}";q={most};w={MINUTE}'
        response["RateLimit"] = f'"{POLICY}";r={max(0, left)};t={wait}'
        return response


def _too_many(request: HttpRequest, seconds: int) -> HttpResponse:
    status, text = HTTPStatus.TOO_MANY_REQUESTS, f"Too many requests. Try again in {seconds} seconds."
    if request.path_info.startswith(API):
        return Problem(status, text, headers={"Retry-After": str(seconds)})
    headers = {"Retry-After": str(seconds), "Cache-Control": "no-store"}
    return HttpResponse(f"{text}\n", status=status, content_type="text/plain; charset=utf-8", headers=headers)
