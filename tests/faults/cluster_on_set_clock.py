"""A cluster on a clock that a test sets: `python -m tests.faults.cluster_on_set_clock CLOCK LOCK_S`.

CLOCK is a file of eight bytes: how many nanoseconds the clock is ahead of the real one. All of a cluster's processes
read it at each look at the clock, so that they jump together, as they would on one machine. LOCK_S is how long they
wait for SQLite's lock. They look for messages and for what is due more often than real ones, for tests' sake, and
begin with the modules that each worker would import by itself.
"""

import mmap
import multiprocessing.synchronize
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import time_machine

SLICE_S = 0.1
POLL_S = 0.5
SCHEDULER_INTERVAL_S = 1
MODULES = (
    *("httpx", "stamina", "foundation.deadlines", "cohorts.forecast_rules"),
    *("scoring.services.scores", "scoring.services.snapshots"),
)
"""Modules that most jobs import. Polars is left out: it starts threads, with which a fork may hang."""
steady_wait: Callable[..., bool] = multiprocessing.synchronize.Event.wait


def wait(event: multiprocessing.synchronize.Event, timeout: float | None = None) -> bool:
    """Waits as the real one does, until an instant of the wall clock: set back, it holds for that much longer."""
    if timeout is None:
        return steady_wait(event)
    end = time.time() + timeout
    while not (happened := steady_wait(event, SLICE_S)) and time.time() < end:
        pass
    return happened


def main(clock: Path, lock_s: int) -> None:
    import django
    from django.conf import settings
    from django.core.management import execute_from_command_line

    with clock.open("r+b") as file:
        ahead = mmap.mmap(file.fileno(), 8)
    real = time_machine.escape_hatch.time
    traveller = time_machine.travel(0).start()
    traveller.time_ns = lambda: real.time_ns() + int.from_bytes(ahead[:], "little", signed=True)  # type: ignore[method-assign]
    multiprocessing.synchronize.Event.wait = wait  # type: ignore[method-assign]
    options = settings.DATABASES["default"]["OPTIONS"]
    if "init_command" in options:
        options["timeout"] = lock_s
        options["init_command"] += f"PRAGMA busy_timeout={lock_s * 1000};"
    settings.Q_CLUSTER["poll"] = POLL_S
    django.setup()
    for module in MODULES:
        import_module(module)

    from arena_site.operations import scheduler

    scheduler.SCHEDULER_INTERVAL_S = SCHEDULER_INTERVAL_S
    execute_from_command_line(["manage.py", "qcluster"])


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
