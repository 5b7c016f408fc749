"""Draining: once a process is asked to stop it begins nothing new, and what is under way ends within a grace period."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

WITHOUT_DATABASE_S = 15
"""The grace period while no heartbeat can be written: the answer would have to be held in a file all the same."""
STOPPING = "the process is stopping; the next run goes on"


def _never() -> bool:
    return False


grace_s = 120
"""`ARENA_DRAIN_S`, once Django has started."""
is_stopping: Callable[[], bool] = _never
"""Whether this process was asked to stop; replaced in a worker's process and by `drained`."""
_noticed_s: list[float] = []
"""When that was noticed first, on the monotonic clock."""
is_database_gone = False
"""Set by heartbeats that could not be written, and cleared by the next that is."""


def grace_left_s() -> float:
    """The seconds that are left for what is under way; without end until the process is asked to stop."""
    if not is_stopping():
        return float("inf")
    if not _noticed_s:
        _noticed_s.append(time.monotonic())
    seconds = min(grace_s, WITHOUT_DATABASE_S) if is_database_gone else grace_s
    return _noticed_s[0] + seconds - time.monotonic()


@contextmanager
def drained() -> Iterator[None]:
    """Lets a first SIGTERM drain the block, and a second one end it; a worker's process has a sign of its own."""
    global is_stopping
    if is_stopping is not _never or threading.current_thread() is not threading.main_thread():
        yield
        return
    signals: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    before = signal.signal(signal.SIGTERM, stop)
    is_stopping = lambda: bool(signals)  # noqa: E731 - a name of its own would say no more
    try:
        yield
    finally:
        is_stopping = _never
        _noticed_s.clear()
        signal.signal(signal.SIGTERM, before)
        if signals and before not in (signal.SIG_DFL, None):  # of whoever called this command, and stops too
            signal.raise_signal(signal.SIGTERM)
