"""Reads that take long: two at a time in a process, so that its other threads answer whoever asks for less."""

import statistics
import threading
import time
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from django.http import FileResponse, HttpRequest, HttpResponse

from arena_site.middleware import ADMIN, PROBES, READS, SUBMISSIONS
from arena_site.middleware.outages import unavailable

MOST = 2
HEAVY_S = 0.15
"""A read of a kind that took longer lately is heavy; one of a kind that was never read may be."""
PATIENCE_S = 0.1
"""A reader waits for a place no longer than it would notice."""
REMEMBERED = 5
"""The last reads of each kind whose median counts, so that neither a slow moment nor one quick answer decides."""
RETRY_S = 2
BUSY = "the arena is computing other answers; try again in a moment"
UNCOUNTED = (ADMIN, SUBMISSIONS, "/static/", *PROBES)
_places = threading.BoundedSemaphore(MOST)
_durations: dict[tuple[str, bool], deque[float]] = {}
"""In seconds, by the view and whether it was given parameters."""


def busy(request: HttpRequest) -> HttpResponse:
    response = unavailable(request, BUSY, "busy.html")
    response["Retry-After"] = str(RETRY_S)
    response.is_busy = True  # type: ignore[attr-defined]
    return response


class HeavyReads:
    """Middleware that computes at most two heavy reads at once, and refuses others within a moment."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        read: _Read | None = getattr(request, "heavy_read", None)
        if read is None:
            return response
        read.is_whole = response.status_code == HTTPStatus.OK
        if response.streaming and not isinstance(response, FileResponse):
            # Its rows are read while it is sent.
            response._resource_closers.append(read.end)  # type: ignore[attr-defined]
        else:
            read.end()
        return response

    def process_view(self, request: HttpRequest, view: Any, arguments: Any, options: Any) -> HttpResponse | None:
        if request.method not in READS or request.path_info.startswith(UNCOUNTED) or request.resolver_match is None:
            return None
        read = _Read((request.resolver_match.view_name, bool(request.GET)))
        if not read.begin():
            return busy(request)
        request.heavy_read = read  # type: ignore[attr-defined]
        return None


class _Read:
    """A read of some kind from the call of its view to its last row."""

    def __init__(self, kind: tuple[str, bool]) -> None:
        self.durations = _durations.setdefault(kind, deque(maxlen=REMEMBERED))
        self.is_heavy = not self.durations or statistics.median(self.durations.copy()) > HEAVY_S
        self.is_whole = False

    def begin(self) -> bool:
        """Whether there is a place for it."""
        if self.is_heavy and not _places.acquire(timeout=PATIENCE_S):
            return False
        self.begun_s = time.perf_counter()
        return True

    def end(self) -> None:
        if self.is_whole:
            self.durations.append(time.perf_counter() - self.begun_s)
        if self.is_heavy:
            _places.release()
