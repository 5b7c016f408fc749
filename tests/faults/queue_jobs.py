"""Jobs for a queue of a test: one that counts itself, and one that dies with the lock of the results in its hand."""

import os
import sys
from pathlib import Path


def count(file: str, name: str) -> None:
    with Path(file).open("a") as lines:
        lines.write(f"{name}\n")


def die_with_lock() -> None:
    """What the kernel does to a worker that writes a result in the instant in which memory runs out."""
    frame = sys._getframe()
    while "result_queue" not in frame.f_locals:
        assert frame.f_back is not None
        frame = frame.f_back
    frame.f_locals["result_queue"]._wlock.acquire()
    os._exit(9)
