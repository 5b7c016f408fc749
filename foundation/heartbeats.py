"""Heartbeats of long work, written by the working code itself: work that stalls stops beating.

The code beats before each database query, while it waits for a service's bytes, and where it calls `beat`.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from django.db import Error, connection

from foundation.consistent_reads import second_connection

INTERVAL_S = 10
"""Work counts as lost after six missed heartbeats."""

log = logging.getLogger(__name__)


class _Work(threading.local):
    """The heartbeats that this thread writes, and when it last wrote them on the monotonic clock."""

    def __init__(self) -> None:
        self.writers: list[Callable[[], object]] = []
        self.written_s = 0.0


_work = _Work()


@contextmanager
def heartbeat(write: Callable[[], object]) -> Iterator[None]:
    """Calls `write` every INTERVAL_S while the block works; its start is the first heartbeat."""
    _work.written_s = time.monotonic()
    _work.writers.append(write)
    with ExitStack() as stack:
        stack.callback(_work.writers.remove, write)
        if len(_work.writers) == 1:
            stack.enter_context(connection.execute_wrapper(_beat_before_query))
        yield


def beat(*, before_query: bool = False) -> None:
    """Writes this thread's heartbeats if the last ones are INTERVAL_S old. A failure to write them is harmless.

    Before a query, which has its cursor already, the connection stays open whatever becomes of the heartbeats.
    """
    if not _work.writers or time.monotonic() - _work.written_s < INTERVAL_S:
        return
    # What is written in a transaction is seen when it ends, and it would hold a lock until then.
    with second_connection() as usable:
        if not usable:
            return
        _work.written_s = time.monotonic()
        writers, _work.writers = _work.writers, []  # their own queries are no reason to beat
        try:
            for write in writers:
                write()
        except Error as error:
            log.info("no heartbeat could be written: %s", error)
            if not before_query:
                connection.close()  # it may be broken; the next query opens another
        finally:
            _work.writers = writers


def _beat_before_query(execute: Callable[..., Any], *arguments: Any) -> Any:
    beat(before_query=True)
    return execute(*arguments)
