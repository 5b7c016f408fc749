"""A real cluster on a real database: messages, a gateway that can be held, a clock that can be set, an outage."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import psutil
import psycopg
import time_machine
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.databases import PROJECT
from tests.faults.processes import SUNDAY, CommandRunner

DECIDING = SUNDAY + timedelta(minutes=5, seconds=1)
PATIENCE_S = 420
LOCK_S = 2
"""How long a cluster waits for SQLite's lock in an outage, which then need not last half a minute, as the real one."""
OUTAGE_S = 10
PROCESSES = 6
"""The guard, three workers, the monitor and the pusher."""
HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


def eventually(condition: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
    """The value, once it is true."""
    end = time.monotonic() + patience_s
    while not (came := condition()):
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.5)  # whoever looks is a process as large as this one
    return came


class Clock:
    """A clock that runs ahead of the real one by as much as a file says."""

    def __init__(self, path: Path, now: datetime) -> None:
        self.path = path
        self.path.write_bytes(bytes(8))
        self.set(now)

    @property
    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def set(self, now: datetime) -> None:
        self._ahead = now - datetime.now(UTC)
        with self.path.open("r+b") as file:  # in place: others have it mapped
            file.write((self._ahead // timedelta(microseconds=1) * 1000).to_bytes(8, "little", signed=True))


class Gateway:
    """Passes requests on to the sandbox's models; holds the next one back until it is over, once told to."""

    def __init__(self, server: HTTPServer, models: str) -> None:
        self.url, self.port, self.models = server.url_for("/gateway"), server.port, models
        self.hold, self.held, self.over = Event(), Event(), Event()
        self.client = httpx.Client()
        server.expect_request("/gateway/chat/completions").respond_with_handler(self._answer)

    def _answer(self, request: Request) -> Response:
        if self.hold.is_set() and not self.held.is_set():
            self.held.set()
            self.over.wait(PATIENCE_S)
        headers = {name: request.headers[name] for name in ("Idempotency-Key",) if name in request.headers}
        response = self.client.post(f"{self.models}/chat/completions", content=request.get_data(), headers=headers)
        return Response(response.content, response.status_code, content_type="application/json")


@dataclass(frozen=True)
class Stopped:
    """How a cluster ended: its exit code, which of its processes are left, how long it took."""

    code: int
    survivors: list[int]
    seconds: float


class Queue:
    """A database at the end of a first week, Sunday 00:05, and the messages and clusters on it."""

    def __init__(self, arena: CommandRunner, name: str, gateway: Gateway, clock: Clock) -> None:
        self.arena, self.name, self.gateway, self.clock = arena, name, gateway, clock
        self.stopped: Stopped

    def ask(self, task: Callable[[], Any]) -> Any:
        """The result of a function on the database, by the moved clock."""

        def at_that_time() -> Any:
            with time_machine.travel(self.clock.now, tick=True):
                return task()

        return self.arena.read(self.name, at_that_time)

    def set_clock(self, now: datetime) -> None:
        """Makes the clock jump, ours, the cluster's and the venue's."""
        self.arena.set_clock(now)
        self.clock.set(now)

    def enqueue(self, *jobs: str) -> None:
        self.ask(lambda: _enqueue(jobs))

    def done(self, tasks: int) -> Counter[tuple[str, bool]]:
        """Which jobs ended, and how, once so many have."""
        return eventually(lambda: (tasks_ended := self.ask(ended)).total() >= tasks and tasks_ended)

    @contextlib.contextmanager
    def cluster(self, llm_timeout_s: int = 3, lock_s: int = 30) -> Iterator[psutil.Process]:
        settings = {
            "DATABASE_URL": self.arena.database.address(self.name),
            "GAMMA_BASE_URL": self.arena.addresses["gamma"],
            "CLOB_BASE_URL": self.arena.addresses["clob"],
            "OPENROUTER_BASE_URL": self.gateway.url,
            "ARENA_LLM_TIMEOUT_S": str(llm_timeout_s),
            "ARENA_LEASE_S": str(llm_timeout_s + 1),
            "ARENA_LLM_TRANSPORT_RETRIES": "0",
            "DJANGO_SETTINGS_MODULE": "arena_site.settings",
        }
        command = [sys.executable, "-m", "tests.faults.cluster_on_set_clock", str(self.clock.path), str(lock_s)]
        with subprocess.Popen(command, cwd=PROJECT, env=os.environ | settings, start_new_session=True) as process:
            main = psutil.Process(process.pid)
            try:
                eventually(lambda: len(main.children(recursive=True)) >= PROCESSES)
                yield main
                family = main.children(recursive=True)
                started_at = time.monotonic()
                process.send_signal(signal.SIGTERM)  # its main pid alone
                code = process.wait(PATIENCE_S)
                survivors = [child.pid for child in family if child.is_running() and child.status() != "zombie"]
                self.stopped = Stopped(code, survivors, time.monotonic() - started_at)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        """PostgreSQL ends every session and lets nobody in; SQLite's file is locked by somebody else's shell."""
        if not self.arena.database.is_postgres:
            command = [sys.executable, "-c", HOLDER, self.name]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
                assert holder.stdout is not None
                assert holder.stdout.readline() == "locked\n"
                yield
                holder.communicate("")
            return
        with psycopg.connect(self.arena.database.url, autocommit=True) as server:
            server.execute(f'ALTER DATABASE "{self.name}" ALLOW_CONNECTIONS false')
            server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (self.name,))
            try:
                yield
            finally:
                server.execute(f'ALTER DATABASE "{self.name}" ALLOW_CONNECTIONS true')


@contextlib.contextmanager
def queue_of(arena: CommandRunner, prepared: str, folder: Path) -> Iterator[Queue]:
    name = arena.database.fresh(prepared)
    arena.set_clock(DECIDING)
    with HTTPServer(threaded=True) as server:
        gateway = Gateway(server, arena.addresses["openrouter"])
        yield Queue(arena, name, gateway, Clock(folder / f"{Path(name).stem}.clock", DECIDING))
        gateway.over.set()
    arena.database.drop(name)


def _enqueue(jobs: tuple[str, ...]) -> None:
    from django_q.tasks import async_task

    for job in jobs:
        async_task(f"arena_site.jobs.{job}")


def ended() -> Counter[tuple[str, bool]]:
    from django_q.models import Task

    return Counter((func.rpartition(".")[2], success) for func, success in Task.objects.values_list("func", "success"))
