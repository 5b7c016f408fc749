"""Processes that end with the one that started them, also where that one is killed and can stop nobody."""

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
"""Of Linux: the signal that a process gets when its parent ends."""
INTERVAL_S = 1.0


def end_with_parent(signal_number: int = signal.SIGTERM) -> None:
    """Lets this process get a signal when the thread that started it ends. Only Linux knows that."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal_number)


def watch_parent(on_end: Callable[[], None]) -> None:
    """Calls a function, in a thread, once the process that started this one has ended."""
    threading.Thread(target=_watch, args=(os.getppid(), on_end), name="parent watch", daemon=True).start()


def _watch(parent: int, on_end: Callable[[], None]) -> None:
    while os.getppid() == parent:
        time.sleep(INTERVAL_S)
    on_end()
