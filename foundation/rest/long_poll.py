"""Long polls: a read that waits for its rows, without a connection of the database meanwhile."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import connections
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

MAX_WAIT_S = 30
WAIT_SCHEMA = {"type": "integer", "minimum": 0, "maximum": MAX_WAIT_S}
POLL_S = 1.0
MAX_WAITING = 4
"""Of one process, so that most of its threads are left to others; one more is answered at once."""

Rows = TypeVar("Rows")
_slots = threading.BoundedSemaphore(MAX_WAITING)
stopping = threading.Event()
"""Set once the process is to end: then nobody waits."""


def wait_seconds(request: Request) -> int:
    """The seconds in the parameter `wait`, 0 without it. Raises ValidationError."""
    text = request.query_params.get("wait", "0")
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and int(text) <= MAX_WAIT_S):
        raise ValidationError({"wait": [f"{text} is no whole number from 0 to {MAX_WAIT_S}"]})
    return int(text)


def wait_for_rows(read: Callable[[], list[Rows]], seconds: float) -> list[Rows]:
    """The rows that `read` finds, at once or as soon as there are any within so many seconds; else none."""
    rows = read()
    if rows or seconds <= 0 or not _slots.acquire(blocking=False):
        return rows
    try:
        until = time.monotonic() + seconds
        while not rows and (remaining := until - time.monotonic()) > 0:
            _close_connections()
            if stopping.wait(min(POLL_S, remaining)):
                break
            rows = read()
        return rows
    finally:
        _slots.release()


def _close_connections() -> None:
    """Gives this thread's connections back; a test's transaction stays open."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()
