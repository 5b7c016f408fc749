"""Outages of the database: every page and read is answered at once, with 503, and as usual once it is back."""

import logging
from collections.abc import Callable

from django.db import InterfaceError, OperationalError, connection
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from arena_site.middleware import API, PROBES
from foundation.database_connection import GONE, check_connection
from foundation.rest.problems import Problem

WITHOUT_DATABASE = (*PROBES, "/static/")
"""Paths that answer without it, or say themselves that it is gone."""

log = logging.getLogger(__name__)


class DatabaseOutages:
    """Middleware that answers 503 while the database is gone, whatever is cached."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path_info.startswith(WITHOUT_DATABASE):
            return self.get_response(request)
        try:
            check_connection()
        except (OperationalError, InterfaceError):
            return unavailable(request)
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """The same for a database that goes while it is read, or that refuses (a lock that is held too long)."""
        if not isinstance(error, OperationalError | InterfaceError):
            return None
        log.warning("the database failed: %s", str(error).partition("\n")[0])
        if not connection.in_atomic_block:
            connection.close()
        return unavailable(request)


def unavailable(request: HttpRequest, detail: str = GONE, page: str = "503.html") -> HttpResponse:
    """A 503: problem details under /api/, a plain page elsewhere."""
    headers = {"Retry-After": "5", "Cache-Control": "no-store", "Content-Security-Policy": "default-src 'self'"}
    if request.path_info.startswith(API):
        return Problem(503, detail, headers=headers)
    return HttpResponse(render_to_string(page), status=503, headers=headers)
