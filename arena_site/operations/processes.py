"""A small process tree: starts commands side by side, stops them cleanly, and tunes long-lived ones."""

import ctypes
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

PROJECT = Path(__file__).resolve().parents[2]
PATIENCE_S = 25
"""The time that a process may take to stop before it is killed, besides that for answers under way."""
POLL_S = 0.2
ALLOCATION_THRESHOLD = 10_000
"""New objects between two collections; Python's default of 700 suits small programs."""


class StopRequested(Exception):
    """A SIGTERM or SIGINT."""


def manage_command(*arguments: str) -> list[str]:
    return [sys.executable, str(PROJECT / "manage.py"), *arguments]


def web_server(port: int, *, host: str = "127.0.0.1", workers: int = 2) -> list[str]:
    """gunicorn with threads. A slow client holds one of them: a front that buffers stands before an open port."""
    return [
        *(sys.executable, "-m", "gunicorn", "arena_site.wsgi", "--preload", "--worker-class", "gthread"),
        *("--workers", str(workers), "--threads", "8", "--no-control-socket", "--bind", f"{host}:{port}"),
        *("--access-logfile", "/dev/null", "--log-level", "warning"),
    ]


def start(command: Sequence[str], env: Mapping[str, str] | None = None, **options: object) -> subprocess.Popen[str]:
    """Starts a command in a session of its own: a Ctrl-C reaches us alone, and we stop it by its main pid.

    django-q's cluster hangs when its whole process group gets the SIGTERM. It gets one too when we are killed.
    """
    return subprocess.Popen(  # noqa: S603 - our own command lines
        command,
        env={**os.environ, **(env or {})},
        cwd=PROJECT,
        start_new_session=True,
        preexec_fn=end_with_parent,
        text=True,
        **options,  # type: ignore[call-overload]
    )


def stop(process: subprocess.Popen[str], patience_s: float = PATIENCE_S) -> None:
    """Asks a process to stop; what is left of its session after a while is killed."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def stoppable() -> Iterator[None]:
    """Turns SIGTERM and SIGINT into `StopRequested` while the block runs."""

    def raise_stop(signum: int, frame: FrameType | None) -> None:
        raise StopRequested

    before = {name: signal.signal(name, raise_stop) for name in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def watch(processes: Mapping[str, subprocess.Popen[str]]) -> str:
    """Waits until one of the named processes ends, and returns its name."""
    while True:
        for name, process in processes.items():
            if process.poll() is not None:
                return name
        time.sleep(POLL_S)


def freeze_loaded_objects() -> None:
    """Exempts the objects loaded so far from collection: modules, models and settings.

    Traversing them again and again took a tenth of a long job's time, and delayed single requests by 0.2 s.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(ALLOCATION_THRESHOLD)


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
