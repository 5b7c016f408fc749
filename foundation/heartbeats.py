"""Heartbeats of long work, written by the working code itself: work that stalls stops beating.

The code beats before each database query, while it waits for a service's bytes, and where it calls `beat`.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

from django.db import Error, connection

from foundation import draining
from foundation.consistent_reads import second_connection

INTERVAL_S = 10
"""Work counts as lost after six missed heartbeats."""

Argument = TypeVar("Argument")
Result = TypeVar("Result")

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
            draining.is_database_gone = False
        except Error as error:
            log.info("no heartbeat could be written: %s", error)
            draining.is_database_gone = True
            if not before_query:
                connection.close()  # it may be broken; the next query opens another
        finally:
            _work.writers = writers


def _beat_before_query(execute: Callable[..., Any], *arguments: Any) -> Any:
    beat(before_query=True)
    return execute(*arguments)


def parallel_results(
    request: Callable[[Argument], Result], arguments: Iterable[Argument], at_once: int
) -> Iterator[Result]:
    """The result of `request` for each of the arguments, in their order; so many are under way `at_once`.

    `request` must not use the database: its thread would open a connection of its own. After the first error, which is
    raised, no further request begins.
    """
    with ThreadPoolExecutor(at_once) as threads:
        try:
            for future in [threads.submit(request, argument) for argument in arguments]:
                while not future.done():
                    wait([future], timeout=INTERVAL_S)
                    beat()
                yield future.result()
        finally:
            threads.shutdown(cancel_futures=True)
