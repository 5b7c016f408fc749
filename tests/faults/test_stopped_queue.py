"""A worker that is killed with a lock of the queue in its hand: an alert, another cluster, and no job twice."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.databases import PROJECT
from tests.faults.clusters import PROCESSES, eventually
from tests.faults.processes import CommandRunner

pytestmark = pytest.mark.each_database

JOBS = "tests.faults.queue_jobs"
PATIENCE_S = 120


class SupervisedQueue:
    """A migrated database whose queue a supervisor's cluster works on."""

    def __init__(self, arena: CommandRunner, name: str, supervisor: psutil.Process, counted: Path) -> None:
        self.arena, self.name, self.supervisor, self.counted = arena, name, supervisor, counted

    def clusters(self) -> list[psutil.Process]:
        """The main process of the cluster, once all of its own processes are there."""
        whole = []
        for child in self.supervisor.children():
            with suppress(psutil.Error):  # it has just ended
                if (
                    "impatient_cluster" in " ".join(child.cmdline())
                    and len(child.children(recursive=True)) >= PROCESSES
                ):
                    whole.append(child)
        return whole

    def workers(self) -> list[psutil.Process]:
        (cluster,) = self.clusters()
        (guard,) = cluster.children()
        return sorted(guard.children(), key=lambda process: process.pid)[:3]  # in the order in which it starts them

    def enqueue(self, function: str, *args: str) -> None:
        from django_q.tasks import async_task

        self.arena.read(self.name, lambda: async_task(f"{JOBS}.{function}", *args))

    def count(self, name: str) -> None:
        self.enqueue("count", str(self.counted), name)

    def counts(self) -> list[str]:
        return self.counted.read_text().splitlines()

    def alerts(self) -> list[tuple[str, bool]]:
        return self.arena.read(self.name, read_alerts)


def read_alerts() -> list[tuple[str, bool]]:
    from foundation.models import Alert

    alerts = Alert.objects.filter(kind="queue-stopped").order_by("pk")
    return [(alert.message, alert.cleared_at is None) for alert in alerts]


@pytest.fixture
def queue(offline_arena: CommandRunner, migrated: str, tmp_path: Path) -> Iterator[SupervisedQueue]:
    name = offline_arena.database.fresh(migrated)
    counted = tmp_path / "counted"
    counted.touch()
    settings = {"DATABASE_URL": offline_arena.database.address(name), "DJANGO_SETTINGS_MODULE": "arena_site.settings"}
    command = [sys.executable, "-m", "tests.faults.impatient_cluster", "supervise"]
    env = os.environ | settings | {"SECRET_KEY": os.environ.get("SECRET_KEY", "test")}
    with subprocess.Popen(command, cwd=PROJECT, env=env, start_new_session=True) as process:
        try:
            running = SupervisedQueue(offline_arena, name, psutil.Process(process.pid), counted)
            eventually(running.clusters, PATIENCE_S)
            yield running
        finally:
            process.terminate()
            process.wait(60)
    offline_arena.database.drop(name)


def kill_with_the_lock_of_results(queue: SupervisedQueue) -> None:
    queue.enqueue("die_with_lock")


def kill_all_idle_workers(queue: SupervisedQueue) -> None:
    """One of them waits for a message with the lock of the messages in its hand."""
    for worker in queue.workers():
        worker.kill()


@pytest.mark.thorough
def test_queue_that_stops_is_an_alert_and_starts_anew(queue: SupervisedQueue) -> None:
    counts: list[str] = []
    for number, kill in enumerate([kill_with_the_lock_of_results, kill_all_idle_workers], start=1):
        queue.count(f"before {number}")
        eventually(lambda name=f"before {number}": name in queue.counts(), PATIENCE_S)
        (cluster,) = queue.clusters()
        kill(queue)
        queue.count(f"after {number}")
        eventually(lambda number=number: len(queue.alerts()) == number, PATIENCE_S)
        assert "stopped: a probe has not come back" in queue.alerts()[-1][0]
        eventually(lambda cluster=cluster: queue.clusters() and queue.clusters() != [cluster], PATIENCE_S)
        queue.count(f"anew {number}")
        counts += [f"{when} {number}" for when in ("before", "after", "anew")]
        eventually(lambda counts=counts: set(queue.counts()) >= set(counts), PATIENCE_S)
        eventually(lambda: not any(is_open for _, is_open in queue.alerts()), PATIENCE_S)
    assert sorted(queue.counts()) == sorted(counts), "no job runs twice"
