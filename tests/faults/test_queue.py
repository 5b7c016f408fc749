"""The queue only says when: messages doubled, lost, or dropped by a killed worker change no record.

A real cluster on a real database runs real jobs against the sandbox. Its clock is moved to a Sunday, on which most of
them have something to do.
"""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from arena_site import jobs
from arena_site.operations import processes
from foundation.consistent_reads import consistent_reads
from tests.faults.clusters import DECIDING, LOCK_S, OUTAGE_S, PATIENCE_S, PROCESSES, Queue, ended, eventually, queue_of
from tests.faults.processes import SUNDAY, CommandRunner

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.each_database]

ATTEMPTS = 4
MORNING = SUNDAY + timedelta(hours=6)
UNDER_SEAL = {"answered": 6, "failed": 2}
"""The decisions of two cohorts, of which one model is down, while the external agent may still answer."""
AFTER_SEAL = {"completed": 6, "failed": 2, "missed": 2}
"""The same once the envelopes are opened: the external agent submitted nothing."""


@pytest.fixture(scope="module")
def rough(
    arena: CommandRunner, prepared: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Queue, Counter[tuple[str, bool]], dict[str, Any]]]:
    """A queue after a rough start, which jobs ended how, and what came of them.

    Everything was down for three weeks; the first messages after that were lost, the next ones came twice.
    """
    with queue_of(arena, prepared, tmp_path_factory.mktemp("rough")) as queue:
        queue.enqueue("decisions", "snapshots")
        queue.ask(_lose_messages)
        queue.ask(_install_long_ago)
        queue.ask(_enqueue_what_is_due)
        queue.ask(_enqueue_what_is_due)
        queue.enqueue("decisions", "decisions", "snapshots", "cohort", "resolutions")
        with queue.cluster():
            finished_jobs = queue.done(len(jobs.JOBS) + 5)
        yield queue, finished_jobs, queue.ask(_state)


def test_after_weeks_of_downtime_each_schedule_is_enqueued_once_for_the_present(rough: tuple) -> None:
    _, finished_jobs, state = rough
    doubled = Counter(decisions=2, snapshots=1, cohort=1, resolutions=1)
    assert Counter(job for job, _ in finished_jobs.elements()) == Counter(job.function for job in jobs.JOBS) + doubled
    assert state["instants"] == {SUNDAY + timedelta(minutes=5)}
    assert state["next"] > DECIDING
    assert state["messages"] == 0


def test_what_a_lost_message_left_undone_is_done_later(rough: tuple) -> None:
    _, _, state = rough
    assert state["decisions"] == UNDER_SEAL
    assert state["snapshots"] == 10


def test_doubled_messages_and_overlapping_ticks_do_nothing_twice(rough: tuple) -> None:
    _, _, state = rough
    assert set(state["judged"].values()) == {1}, "an answer was bought twice"
    assert state["cohorts"] == 2
    assert state["violations"] == []


def test_a_cluster_stops_when_its_main_process_is_asked_to(rough: tuple) -> None:
    queue, _, _ = rough
    assert (queue.stopped.code, queue.stopped.survivors) == (0, [])
    assert queue.stopped.seconds < processes.PATIENCE_S


def test_a_worker_killed_in_the_middle_of_a_job_is_done_by_the_next_enqueue(
    arena: CommandRunner, prepared: str, tmp_path: Path
) -> None:
    with queue_of(arena, prepared, tmp_path) as queue:
        with queue.cluster() as cluster:
            queue.gateway.hold.set()
            queue.enqueue("decisions")
            assert queue.gateway.held.wait(PATIENCE_S)
            (worker,) = [
                child for child in cluster.children(recursive=True) if _is_connected(child, queue.gateway.port)
            ]
            worker.kill()
            eventually(lambda: queue.ask(_claims_of_the_dead))
            assert not {"answered", "completed"} & {*queue.ask(_state)["decisions"]}, "the killed job went on"
            queue.enqueue("decisions")
            queue.done(1)
            # The guard starts another worker in its place.
            eventually(lambda: len(cluster.children(recursive=True)) == PROCESSES, patience_s=30)
        sealed = queue.ask(_state)
        queue.set_clock(MORNING)
        queue.ask(lambda: _run_jobs("openings", "resolutions"))
        state = queue.ask(_state)
    assert queue.stopped.code == 0
    assert sealed["decisions"] == UNDER_SEAL
    assert state["decisions"] == AFTER_SEAL
    assert set(state["judged"].values()) == {1}
    assert sum(state["lost"].values()) == 1
    assert state["violations"] == []


def test_a_database_gone_for_ten_seconds_is_done_by_the_next_enqueue(
    arena: CommandRunner, prepared: str, tmp_path: Path
) -> None:
    with queue_of(arena, prepared, tmp_path) as queue:
        with queue.cluster(lock_s=LOCK_S) as cluster:
            queue.gateway.hold.set()
            queue.enqueue("decisions")
            assert queue.gateway.held.wait(PATIENCE_S)
            queue.ask(_install_long_ago)
            with queue.outage():
                queue.gateway.over.set()  # the answer comes while nothing can be written down
                time.sleep(OUTAGE_S)
            _enqueue_until_done(queue)
            eventually(lambda: len(cluster.children(recursive=True)) == PROCESSES, patience_s=30)
        queue.set_clock(MORNING)
        queue.ask(lambda: _run_jobs("openings", "snapshots", "resolutions"))
        state, ledger = queue.ask(_state), arena.ledger(queue.name)
    assert (queue.stopped.code, queue.stopped.survivors) == (0, [])
    assert queue.stopped.seconds < processes.PATIENCE_S
    assert state["decisions"] == AFTER_SEAL
    assert set(state["judged"].values()) == {1}
    assert ledger["trades"]
    assert ledger["violations"] == ledger["answers bought twice"] == []


def _enqueue_until_done(queue: Queue) -> None:
    """Makes every schedule due, again where a job came too early.

    A job in the last moments of the outage fails, one within the lease of a claim finds nothing to do: then the next
    one does it, an hour or a day later, for which nobody waits here.
    """
    for _ in range(ATTEMPTS):
        queue.ask(_install_long_ago)
        with suppress(AssertionError):
            return eventually(lambda: _all_done(queue), PATIENCE_S / ATTEMPTS)
    raise AssertionError(f"after {ATTEMPTS} attempts: {queue.ask(ended)}, {queue.ask(_state)}")


def _all_done(queue: Queue) -> bool:
    ended_jobs = {job for job, _ in queue.ask(ended)}
    decisions = queue.ask(_state)["decisions"]
    return ended_jobs == {job.function for job in jobs.JOBS} and decisions == UNDER_SEAL


def _is_connected(process: psutil.Process, port: int) -> bool:
    return any(connection.raddr and connection.raddr.port == port for connection in process.net_connections("tcp"))


def _lose_messages() -> None:
    from django_q.models import OrmQ

    assert OrmQ.objects.all().delete()[0] == 2


def _claims_of_the_dead() -> bool:
    from django.utils import timezone

    from agents.models import Decision

    return Decision.objects.claimable(timezone.now()).filter(status=Decision.Status.CLAIMED).exists()


def _install_long_ago() -> None:
    from django_q.models import Schedule

    jobs.install()
    Schedule.objects.update(next_run=SUNDAY - timedelta(weeks=3))


def _enqueue_what_is_due() -> None:
    """The pusher of a cluster does this all the time."""
    from django_q.brokers import get_broker

    get_broker().enqueue_due_jobs()


def _run_jobs(*names: str) -> None:
    for name in names:
        with suppress(jobs.JobFailed):
            getattr(jobs, name)()


@consistent_reads()
def _state() -> dict[str, Any]:
    from django_q.models import OrmQ, Schedule

    from agents.models import Decision, ModelCall
    from cohorts.models import Cohort
    from foundation.models import Run
    from scoring.exports.verification.ledger_audit import violations_about
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
        "violations": violations_about("accounts"),
    }
