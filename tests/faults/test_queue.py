"""The queue is a doorbell: messages doubled, lost, or dropped by a killed worker change no book.

A real cluster on a real database rings real jobs against the sandbox. Its clock is moved to a Sunday, since that is
when things happen.
"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import psutil
import pytest
import time_machine
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from arena_site import processes
from arena_site.jobs import JOBS, install
from tests.databases import postgres_url
from tests.kills import ROOT, SUNDAY, Arena, Database, sandbox

DECIDING = SUNDAY + timedelta(minutes=5, seconds=1)
PATIENCE_S = 60
CLUSTER = """
import sys
from datetime import datetime
import time_machine
from django.core.management import execute_from_command_line
with time_machine.travel(datetime.fromisoformat(sys.argv[1]), tick=True):
    execute_from_command_line(["manage.py", "qcluster"])
"""


def eventually(what: Callable[[], Any]) -> Any:
    """What it comes to, once it is true."""
    end = time.monotonic() + PATIENCE_S
    while not (came := what()):
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.2)
    return came


class Gateway:
    """Passes requests on to the sandbox's models; holds the next one back for ever once told to."""

    def __init__(self, server: HTTPServer, models: str) -> None:
        self.url, self.port, self.models = server.url_for("/gateway"), server.port, models
        self.hold, self.held, self.over = Event(), Event(), Event()
        server.expect_request("/gateway/chat/completions").respond_with_handler(self._answer)

    def _answer(self, request: Request) -> Response:
        if self.hold.is_set() and not self.held.is_set():
            self.held.set()
            self.over.wait(PATIENCE_S)
        headers = {name: request.headers[name] for name in ("Idempotency-Key",) if name in request.headers}
        said = httpx.post(f"{self.models}/chat/completions", content=request.get_data(), headers=headers)
        return Response(said.content, said.status_code, content_type="application/json")


@dataclass(frozen=True)
class Stopped:
    """How a cluster ended: its exit code, which of its processes are left, how long it took."""

    code: int
    left: list[int]
    seconds: float


class Queue:
    """A database at the end of a first week, Sunday 00:05, and the messages and clusters on it."""

    def __init__(self, arena: Arena, name: str, gateway: Gateway) -> None:
        self.arena, self.name, self.gateway, self.born = arena, name, gateway, time.monotonic()
        self.stopped: Stopped

    @property
    def now(self) -> datetime:
        return DECIDING + timedelta(seconds=time.monotonic() - self.born)

    def ask(self, what: Callable[[], Any]) -> Any:
        """What a function says of the database, by the moved clock."""

        def at_that_time() -> Any:
            with time_machine.travel(self.now, tick=True):
                return what()

        return self.arena.read(self.name, at_that_time)

    def ring(self, *jobs: str) -> None:
        self.ask(lambda: _ring(jobs))

    def done(self, tasks: int) -> Counter[tuple[str, bool]]:
        """Which jobs ended, and how, once so many have."""
        return eventually(lambda: (ended := self.ask(_ended)).total() >= tasks and ended)

    @contextmanager
    def cluster(self) -> Iterator[psutil.Process]:
        database = self.arena.database
        url = f"sqlite:///{self.name}"
        if database.is_postgres:
            server, _, options = database.url.partition("?")
            url = f"{server.rpartition('/')[0]}/{self.name}" + (f"?{options}" if options else "")
        settings = {
            "DATABASE_URL": url,
            "GAMMA_BASE_URL": self.arena.addresses["gamma"],
            "CLOB_BASE_URL": self.arena.addresses["clob"],
            "OPENROUTER_BASE_URL": self.gateway.url,
            "ARENA_LLM_TIMEOUT_S": "3",
            "ARENA_LEASE_S": "4",
            "ARENA_LLM_TRANSPORT_RETRIES": "0",
            "SECRET_KEY": "only-for-tests",  # messages are signed with it
            "DJANGO_SETTINGS_MODULE": "arena_site.settings",
        }
        command = [sys.executable, "-c", CLUSTER, self.now.isoformat()]
        with subprocess.Popen(command, cwd=ROOT, env=os.environ | settings, start_new_session=True) as process:
            main = psutil.Process(process.pid)
            try:
                eventually(lambda: len(main.children(recursive=True)) >= 6)  # sentinel, 3 workers, monitor, pusher
                yield main
                family = main.children(recursive=True)
                asked = time.monotonic()
                process.send_signal(signal.SIGTERM)  # its main pid alone
                code = process.wait(PATIENCE_S)
                left = [child.pid for child in family if child.is_running() and child.status() != "zombie"]
                self.stopped = Stopped(code, left, time.monotonic() - asked)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any) -> Iterator[Arena]:
    folder: Path = tmp_path_factory.mktemp("queue")
    on_postgres = os.environ.get("ARENA_TESTS_ON") == "postgres"
    url = postgres_url() if on_postgres else "sqlite"
    with sandbox() as addresses, Database(url, folder) as database:
        yield Arena(addresses, database, django_db_blocker.unblock)


@pytest.fixture(scope="module")
def prepared(arena: Arena) -> str:
    name = arena.prepare()
    for command in ("sync_markets", "start_cohort"):
        arena.run(name, (SUNDAY, command))
    return name


@contextmanager
def queue_of(arena: Arena, prepared: str) -> Iterator[Queue]:
    name = arena.database.fresh(prepared)
    arena.clock.post(f"{arena.addresses['root']}/sandbox/clock", json={"now": DECIDING.isoformat()}).raise_for_status()
    with HTTPServer(threaded=True) as server:
        gateway = Gateway(server, arena.addresses["openrouter"])
        yield Queue(arena, name, gateway)
        gateway.over.set()
    arena.database.drop(name)


@pytest.fixture(scope="module")
def rough(arena: Arena, prepared: str) -> Iterator[tuple[Queue, Counter[tuple[str, bool]], dict[str, Any]]]:
    """A queue after a rough start, which jobs ended how, and what came of them.

    Everything was down for three weeks; the first messages after that were lost, the next ones came twice.
    """
    with queue_of(arena, prepared) as queue:
        queue.ring("decisions", "snapshots")
        queue.ask(_lose_messages)
        queue.ask(_install_long_ago)
        queue.ask(_guard)
        queue.ask(_guard)
        queue.ring("decisions", "decisions", "snapshots", "cohort", "resolutions")
        with queue.cluster():
            ended = queue.done(len(JOBS) + 5)
        yield queue, ended, queue.ask(_state)


def test_after_weeks_of_downtime_each_schedule_rings_once_and_for_now(rough: tuple) -> None:
    _, ended, state = rough
    doubled = Counter(decisions=2, snapshots=1, cohort=1, resolutions=1)
    assert Counter(job for job, _ in ended.elements()) == Counter(job.function for job in JOBS) + doubled
    assert state["instants"] == {SUNDAY + timedelta(minutes=5)}
    assert state["next"] > DECIDING
    assert state["messages"] == 0


def test_what_a_lost_message_left_undone_is_made_up(rough: tuple) -> None:
    _, _, state = rough
    assert state["decisions"] == {"completed": 12, "failed": 2}  # one model is down, in two cohorts
    assert state["snapshots"] == 14


def test_doubled_messages_and_overlapping_ticks_do_nothing_twice(rough: tuple) -> None:
    _, _, state = rough
    assert set(state["judged"].values()) == {1}, "an answer was bought twice"
    assert state["cohorts"] == 2
    assert state["violations"] == []


def test_a_cluster_stops_when_its_main_process_is_asked_to(rough: tuple) -> None:
    queue, _, _ = rough
    assert (queue.stopped.code, queue.stopped.left) == (0, [])
    assert queue.stopped.seconds < processes.PATIENCE_S


def test_a_worker_killed_in_the_middle_of_a_job_is_made_up_by_the_next_ring(arena: Arena, prepared: str) -> None:
    with queue_of(arena, prepared) as queue:
        with queue.cluster() as cluster:
            queue.gateway.hold.set()
            queue.ring("decisions")
            assert queue.gateway.held.wait(PATIENCE_S)
            (worker,) = [child for child in cluster.children(recursive=True) if _talks_to(child, queue.gateway.port)]
            worker.kill()
            eventually(lambda: queue.ask(_claims_of_the_dead))
            assert "completed" not in queue.ask(_state)["decisions"], "the killed job went on"
            queue.ring("decisions")
            queue.done(1)
            # The guard started another worker in its place.
            assert len(cluster.children(recursive=True)) == 6
        state = queue.ask(_state)
    assert queue.stopped.code == 0
    assert state["decisions"] == {"completed": 12, "failed": 2}
    assert set(state["judged"].values()) == {1}
    assert sum(state["lost"].values()) == 1
    assert state["violations"] == []


def _talks_to(process: psutil.Process, port: int) -> bool:
    return any(c.raddr and c.raddr.port == port for c in process.net_connections("tcp"))


def _ring(jobs: tuple[str, ...]) -> None:
    from django_q.tasks import async_task

    for job in jobs:
        async_task(f"arena_site.jobs.{job}")


def _lose_messages() -> None:
    from django_q.models import OrmQ

    assert OrmQ.objects.all().delete()[0] == 2


def _ended() -> Counter[tuple[str, bool]]:
    from django_q.models import Task

    return Counter((func.rpartition(".")[2], success) for func, success in Task.objects.values_list("func", "success"))


def _claims_of_the_dead() -> bool:
    from django.utils import timezone

    from agents.models import Decision

    return Decision.objects.claimable(timezone.now()).filter(status=Decision.Status.CLAIMED).exists()


def _install_long_ago() -> None:
    from django_q.models import Schedule

    install()
    Schedule.objects.update(next_run=SUNDAY - timedelta(weeks=3))


def _guard() -> None:
    """What the cluster's guard does every half minute."""
    from django_q.scheduler import scheduler

    scheduler()


def _state() -> dict[str, Any]:
    from django_q.models import OrmQ, Schedule

    from agents.models import Decision, ModelCall
    from agents.services.audit import verify_ledger
    from cohorts.models import Cohort
    from markets.models import Run
    from scoring.models import Snapshot

    this_week = Decision.objects.filter(universe__week_start=SUNDAY)
    calls = ModelCall.objects.filter(decision__in=this_week)
    judged = calls.filter(result__in=["answered", "malformed", "declined", "refused"])
    return {
        "decisions": dict(Counter(this_week.values_list("status", flat=True))),
        "judged": Counter(judged.values_list("decision", "attempt")),
        "lost": Counter(calls.filter(result="lost").values_list("decision", flat=True)),
        "cohorts": Cohort.objects.count(),
        "snapshots": Snapshot.objects.filter(taken_at=SUNDAY).count(),
        "instants": set(Run.objects.filter(at__gt=SUNDAY).values_list("at", flat=True)),
        "next": min(Schedule.objects.values_list("next_run", flat=True), default=None),
        "messages": OrmQ.objects.count(),
        "violations": verify_ledger().violations,
    }
