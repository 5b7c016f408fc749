"""Several requests at a time, each in a thread, while the thread that waits for them keeps its work's heartbeat."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from markets.foundation import heartbeats

Argument = TypeVar("Argument")
Result = TypeVar("Result")

AT_ONCE = 4
"""Requests under way to one service: far below the limits that Polymarket states (300 in ten seconds)."""


def parallel_results(request: Callable[[Argument], Result], arguments: Iterable[Argument]) -> Iterator[Result]:
    """The result of `request` for each of the arguments, in their order.

    `request` must not use the database: its thread would open a connection of its own. After the first error, which is
    raised, no further request begins.
    """
    with ThreadPoolExecutor(AT_ONCE) as threads:
        try:
            for future in [threads.submit(request, argument) for argument in arguments]:
                while not future.done():
                    wait([future], timeout=heartbeats.INTERVAL_S)
                    heartbeats.beat()
                yield future.result()
        finally:
            threads.shutdown(cancel_futures=True)
