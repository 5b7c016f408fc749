"""Several requests at a time, each in a thread, while the thread that waits for them keeps its work's heartbeat."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from foundation import heartbeats

Argument = TypeVar("Argument")
Result = TypeVar("Result")


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
                    wait([future], timeout=heartbeats.INTERVAL_S)
                    heartbeats.beat()
                yield future.result()
        finally:
            threads.shutdown(cancel_futures=True)
