"""Outages of the database: every page and read is answered at once, with 503, and as usual once it is back."""

import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from select import POLLIN, poll
from typing import Any

from django.db import InterfaceError, OperationalError, connection
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from arena_site.middleware import API, PROBES
from foundation.rest.problems import Problem

WITHOUT_DATABASE = (*PROBES, "/static/")
"""Paths that answer without it, or say themselves that it is gone."""
GONE = "the database is not available; try again in a moment"
SILENT_S = 1.5
"""The time for an answer to an empty query: more than a server at work needs, less than a reader waits."""
RETRY_S = 3
"""For this time after a failure others are answered without another try: a connection to a silent server takes 2 s."""


class DatabaseGone(OperationalError):
    """The database's file is not there: opening it would make an empty one."""


class _Outage:
    """When this process last found the database gone, on the monotonic clock."""

    found_s = float("-inf")


class _OpenFile(threading.local):
    """Which SQLite file this thread's connection has open."""

    identity: tuple[int, int] | None = None


_open_file = _OpenFile()
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


def check_connection() -> None:
    """Opens or checks this thread's connection. Raises OperationalError where the database is, or was just, gone."""
    if time.monotonic() - _Outage.found_s < RETRY_S:
        raise OperationalError(GONE)
    try:
        _connect()
    except (OperationalError, InterfaceError) as error:
        log.warning("the database is gone: %s", type(error.__cause__ or error).__name__)
        _Outage.found_s = time.monotonic()
        raise


def _connect() -> None:
    if connection.vendor == "sqlite":
        _check_file()
    elif connection.connection is not None:
        _check_server(connection.connection.pgconn)
    connection.ensure_connection()
    connection.health_check_done = True  # type: ignore[attr-defined] # Django's would wait for a silent server


def _check_server(libpq: Any) -> None:
    """Closes a connection that the server has ended, or that is silent. Raises OperationalError for a silent one."""
    try:
        with connection.wrap_database_errors:
            answer = poll()
            answer.register(libpq.socket, POLLIN)
            libpq.send_query(b"")
            is_silent = not answer.poll(SILENT_S * 1000)
            has_ended = not is_silent and any(result.error_message for result in iter(libpq.get_result, None))
    except OperationalError:
        is_silent, has_ended = False, True
    if is_silent or has_ended:
        connection.close()
    if is_silent:
        raise OperationalError("the database server does not answer")


def _check_file() -> None:
    """An open file can be read after it was moved away; a connection opened since then is to another file."""
    name = str(connection.settings_dict["NAME"])
    if connection.is_in_memory_db():  # type: ignore[attr-defined]
        return
    try:
        status = os.stat(Path(name))
    except OSError as error:
        connection.close()
        raise DatabaseGone(f"{name}: {error.strerror}") from error
    identity = (status.st_dev, status.st_ino)
    if _open_file.identity not in (None, identity):
        connection.close()
    _open_file.identity = identity


def unavailable(request: HttpRequest, detail: str = GONE, page: str = "503.html") -> HttpResponse:
    """A 503: problem details under /api/, a plain page elsewhere."""
    headers = {"Retry-After": "5", "Cache-Control": "no-store", "Content-Security-Policy": "default-src 'self'"}
    if request.path_info.startswith(API):
        return Problem(503, detail, headers=headers)
    return HttpResponse(render_to_string(page), status=503, headers=headers)
