"""Deadlines of reads: a page or a read of the API that takes too long is answered with 503, and its statement ended.

Statements are cancelled from a thread that watches them: SQLite has no time-out of statements, and behind a PgBouncer
PostgreSQL's would be left to the session's next client.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.db import DEFAULT_DB_ALIAS, DatabaseError, OperationalError, connections
from django.http import HttpRequest, HttpResponse

from arena_site.middleware import READS
from arena_site.middleware.outages import unavailable

MAX_READ_S = 8.0
"""A reader has an answer within ten seconds: the rest is for what no statement takes."""
WATCH_S = 0.2
CANCEL_S = 1.0
"""The longest that PostgreSQL may take to accept a cancellation."""
TOO_SLOW = f"the read took longer than {MAX_READ_S:g} seconds and was ended; ask for less at a time"
log = logging.getLogger(__name__)


class ReadTimedOut(OperationalError):
    """A read's time is over before its next statement."""


class ReadDeadline:
    """The instant, on the monotonic clock, at which a request's statements on one connection are ended."""

    def __init__(self, database: Any, seconds: float) -> None:
        self.database, self.at = database, time.monotonic() + seconds
        self.lock = threading.Lock()

    @property
    def has_passed(self) -> bool:
        return time.monotonic() >= self.at

    def lift(self) -> None:
        """Lets later statements run. Waits for a cancellation under way, which could hit one of them."""
        with self.lock:
            self.at = float("inf")

    def check(self, execute: Callable[..., Any], *statement: Any) -> Any:
        """Executes a statement if there is time left."""
        if self.has_passed:
            raise ReadTimedOut(TOO_SLOW)
        return execute(*statement)

    def enforce(self) -> None:
        """Cancels the connection's statement, if any, once the instant has passed."""
        with self.lock:
            connection = self.database.connection
            if not self.has_passed or connection is None:
                return
            with suppress(Exception):  # the connection is closed already
                if self.database.vendor == "sqlite":
                    connection.interrupt()
                else:
                    connection.cancel_safe(timeout=CANCEL_S)


class _Watch:
    """One thread of this process, which enforces the deadlines of all requests."""

    def __init__(self) -> None:
        self.deadlines: set[ReadDeadline] = set()
        self.lock = threading.Lock()
        self.thread: threading.Thread | None = None

    def add(self, deadline: ReadDeadline) -> None:
        with self.lock:
            self.deadlines.add(deadline)
            if self.thread is None or not self.thread.is_alive():  # as after a fork
                self.thread = threading.Thread(target=self._run, name="read-deadlines", daemon=True)
                self.thread.start()

    def remove(self, deadline: ReadDeadline) -> None:
        with self.lock:
            self.deadlines.discard(deadline)

    def _run(self) -> None:
        while True:
            time.sleep(WATCH_S)
            with self.lock:
                passed = [deadline for deadline in self.deadlines if deadline.has_passed]
            # Again each time: a statement may begin just after the first.
            for deadline in passed:
                deadline.enforce()


_watch = _Watch()


@contextmanager
def read_deadline(seconds: float) -> Iterator[ReadDeadline]:
    """Ends the statements of this thread's default connection once the block has run for so long."""
    database = connections[DEFAULT_DB_ALIAS]
    deadline = ReadDeadline(database, seconds)
    _watch.add(deadline)
    try:
        with database.execute_wrapper(deadline.check):
            yield deadline
    finally:
        deadline.lift()
        _watch.remove(deadline)


class ReadDeadlines:
    """Middleware that ends the statements of reads which take too long. Writes take the time that they take."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method not in READS:
            return self.get_response(request)
        with read_deadline(MAX_READ_S) as deadline:
            request.read_deadline = deadline  # type: ignore[attr-defined]
            return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        deadline: ReadDeadline | None = getattr(request, "read_deadline", None)
        if deadline is None or not deadline.has_passed or not isinstance(error, DatabaseError):
            return None
        deadline.lift()
        log.warning("a read took too long: %s", request.path_info)
        return unavailable(request, TOO_SLOW, "too_slow.html")
