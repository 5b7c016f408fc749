"""A clock that jumps while a cluster runs: nothing is done twice or back-dated, and the schedules go on.

The jumps are those of a machine that was asleep (ahead) and of one whose clock was wrong (ahead, then set back).
"""

import time
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from arena_site import jobs
from arena_site.operations import processes
from foundation.consistent_reads import consistent_reads
from tests.faults.clusters import DECIDING, LOCK_S, OUTAGE_S, PATIENCE_S, Queue, ended, eventually, queue_of
from tests.faults.processes import SUNDAY, CommandRunner

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.each_database]

AT_0005 = {job.function for job in jobs.JOBS}
"""Every schedule is made due at the start."""
AT_MIDNIGHT = {"sync", "snapshots", "openings", "resolutions", "cohort"}
AT_0306 = AT_MIDNIGHT | {"decisions", "forecasts", "costs", "resume_forecasts", "alerts"}
AT_0210 = {"sync", "snapshots", "openings", "costs"}
UNDER_SEAL = {"answered": 6, "failed": 2}
"""The decisions of a Sunday of two cohorts, of which one model is down, while the external agent may still answer."""
AFTER_SEAL = {"completed": 6, "failed": 2, "missed": 2}
"""The same once the envelopes are opened: the external agent submitted nothing."""
WEEKS_LATER = SUNDAY + timedelta(days=17, hours=12, minutes=1)
SOON = timedelta(seconds=4)
"""How long before a tick a clock that is set back stands, so that nobody waits five minutes."""


@dataclass(frozen=True)
class Jump:
    """The jobs enqueued since a jump, how often, and the state of the arena after them."""

    enqueued: Counter[str]
    state: dict[str, Any]


class Jumping:
    """A cluster whose clock is set, again and again."""

    def __init__(self, queue: Queue) -> None:
        self.queue, self.before = queue, Counter[str]()

    def after(self, jobs_due: set[str], now: datetime | None = None) -> Jump:
        if now is not None:
            self.queue.set_clock(now)
        eventually(lambda: set(self._enqueued_jobs()) >= jobs_due and not self.queue.ask(_waiting))
        enqueued = self._enqueued_jobs()
        self.before += enqueued
        return Jump(enqueued, self.queue.ask(_state))

    def _enqueued_jobs(self) -> Counter[str]:
        counts = Counter[str]()
        for (job, _), times in self.queue.ask(ended).items():
            counts[job] += times
        return counts - self.before


@pytest.fixture(scope="module")
def jumps(arena: CommandRunner, prepared: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Jump]:
    """The outcome of each jump of a clock in the life of one cluster."""
    with queue_of(arena, prepared, tmp_path_factory.mktemp("jumps")) as queue:
        queue.ask(_all_due)
        jumping = Jumping(queue)
        with queue.cluster():
            came = {
                "start": jumping.after(AT_0005),
                "ahead": jumping.after(AT_0306, SUNDAY + timedelta(hours=3, minutes=6)),
                "back": jumping.after(AT_0210, SUNDAY + timedelta(hours=2, minutes=10) - SOON),
                "back a week": jumping.after(AT_MIDNIGHT, SUNDAY - SOON),
                "weeks ahead": jumping.after(AT_0005, WEEKS_LATER),
            }
        assert queue.stopped.code == 0
        assert queue.stopped.seconds < processes.PATIENCE_S
    return came


def test_after_a_jump_ahead_each_schedule_passed_is_enqueued_once_for_the_present(jumps: dict[str, Jump]) -> None:
    assert jumps["start"].enqueued == Counter(AT_0005)
    assert jumps["ahead"].enqueued == Counter(AT_0306)
    assert jumps["ahead"].state["instants"] == jumps["start"].state["instants"] | {
        SUNDAY + timedelta(hours=3, minutes=5)
    }


def test_hours_jumped_over_stay_gaps(jumps: dict[str, Jump]) -> None:
    assert jumps["start"].state["snapshots"] == {SUNDAY: 10}
    assert jumps["ahead"].state["snapshots"] == {SUNDAY: 10, SUNDAY + timedelta(hours=3): 10}


def test_sealed_answers_take_effect_after_the_jump_ahead(jumps: dict[str, Jump]) -> None:
    sealed, opened = jumps["start"].state, jumps["ahead"].state
    assert sealed["decisions"][SUNDAY] == UNDER_SEAL
    assert sealed["envelopes"] == {"sealed": 6}
    assert sealed["trades"][SUNDAY] == 0
    assert opened["decisions"][SUNDAY] == {"completed": 8, "missed": 2}  # the model that was down is up again
    assert opened["envelopes"] == {"opened": 6}
    assert opened["trades"][SUNDAY] > 0


def test_a_clock_set_back_does_not_silence_the_schedules(jumps: dict[str, Jump]) -> None:
    assert jumps["back"].enqueued == Counter(AT_0210)
    assert jumps["back a week"].enqueued == Counter(AT_MIDNIGHT)
    assert jumps["back a week"].state["next"]["decisions"] == SUNDAY + timedelta(minutes=5)


def test_jobs_repeated_at_an_earlier_hour_change_no_record(jumps: dict[str, Jump]) -> None:
    before, after = jumps["ahead"].state, jumps["back a week"].state
    for table in ("decisions", "envelopes", "calls", "trades", "journal", "settled", "cohorts", "prices"):
        assert after[table] == before[table], table
    assert after["violations"] == []


def test_weeks_jumped_over_are_missed_and_not_back_dated(jumps: dict[str, Jump]) -> None:
    before, after = jumps["back a week"].state, jumps["weeks ahead"].state
    assert after["cohorts"] == before["cohorts"]
    assert after["missed weeks"] == [SUNDAY + timedelta(weeks=1), SUNDAY + timedelta(weeks=2)]
    assert after["decisions"] == before["decisions"] | {None: {"missed": 10}}  # nothing was frozen in that week
    assert after["calls"] == before["calls"]
    assert after["trades"] == before["trades"]
    assert set(after["snapshots"]) - set(before["snapshots"]) == {WEEKS_LATER - timedelta(minutes=1)}
    assert after["violations"] == []


def test_a_call_that_the_clock_outran_executes_once(arena: CommandRunner, prepared: str, tmp_path: Path) -> None:
    with queue_of(arena, prepared, tmp_path) as queue:
        with queue.cluster(llm_timeout_s=PATIENCE_S):
            queue.gateway.hold.set()
            queue.enqueue("decisions")
            assert queue.gateway.held.wait(PATIENCE_S)
            queue.set_clock(DECIDING + timedelta(minutes=9))  # past the lease: to everybody else its holder is dead
            queue.enqueue("decisions")
            eventually(lambda: queue.ask(ended).total())
            before = queue.ask(_state)
            queue.gateway.over.set()  # now the first answer comes, too
            eventually(lambda: queue.ask(ended).total() == 2)
            late = queue.ask(_state)
            queue.set_clock(DECIDING + timedelta(hours=2))
            queue.enqueue("openings", "openings")
            eventually(lambda: queue.ask(ended).total() == 4)
            queue.enqueue("resolutions")
            eventually(lambda: queue.ask(ended).total() == 5)
        after = queue.ask(_state)
    assert before["decisions"][SUNDAY] == UNDER_SEAL
    assert before["envelopes"] == {"sealed": 6}
    assert late["late"] == 1
    for table in ("decisions", "envelopes", "trades", "journal"):
        assert late[table] == before[table], table
    assert after["decisions"][SUNDAY] == AFTER_SEAL
    assert after["envelopes"] == {"opened": 6}
    assert after["trades"][SUNDAY] > 0
    assert set(after["answers executed"].values()) == {1}
    assert late["violations"] == after["violations"] == []


def test_a_database_gone_after_a_clock_was_set_back_ends_no_process(
    arena: CommandRunner, prepared: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with queue_of(arena, prepared, tmp_path) as queue, queue.cluster(lock_s=LOCK_S) as cluster:
        processes_before = len(cluster.children(recursive=True))
        queue.set_clock(DECIDING - timedelta(hours=1))
        queue.enqueue("sync", "snapshots", "snapshots")
        with queue.outage():
            time.sleep(OUTAGE_S)
        queue.enqueue("resolutions")
        eventually(lambda: ("resolutions", True) in queue.ask(ended))
        eventually(lambda: len(cluster.children(recursive=True)) == processes_before, patience_s=30)
    assert "reincarnated" not in capfd.readouterr().err
    assert (queue.stopped.code, queue.stopped.survivors) == (0, [])


def _all_due() -> None:
    from django_q.models import Schedule

    jobs.install()
    Schedule.objects.update(next_run=SUNDAY - timedelta(weeks=3))


def _waiting() -> bool:
    from django_q.models import OrmQ

    return OrmQ.objects.exists()


@consistent_reads()
def _state() -> dict[str, Any]:
    from django.db.models import Count
    from django_q.models import Schedule

    from agents.models import Decision, Envelope, Instruction, JournalEntry, ModelCall, Settlement, Trade
    from cohorts.models import Cohort, MissedWeek
    from foundation.models import Run
    from markets.models import PriceObservation
    from scoring.exports.verification.ledger_audit import violations_about
    from scoring.models import Snapshot

    weeks = sorted(set(Decision.objects.values_list("universe__week_start", flat=True)), key=repr)
    executed = Instruction.objects.filter(executed=True).order_by()
    snapshots = Snapshot.objects.filter(taken_at__gte=SUNDAY).values_list("taken_at").annotate(Count("pk"))
    return {
        "decisions": {
            week: dict(Counter(Decision.objects.filter(universe__week_start=week).values_list("status", flat=True)))
            for week in weeks
        },
        "calls": ModelCall.objects.filter(elicitation=None).count(),
        "late": ModelCall.objects.filter(late=True).count(),
        "envelopes": dict(
            Counter(Envelope.objects.filter(decision__universe__week_start=SUNDAY).values_list("state", flat=True))
        ),
        "trades": Counter(Trade.objects.values_list("decision__universe__week_start", flat=True)),
        "answers executed": Counter(
            decision for decision, _ in executed.values_list("call__decision", "call").distinct()
        ),
        "journal": JournalEntry.objects.count(),
        "settled": Settlement.objects.count(),
        "prices": PriceObservation.objects.count(),
        "cohorts": list(Cohort.objects.order_by("number").values_list("number", "week_start", "status")),
        "missed weeks": sorted(MissedWeek.objects.values_list("week_start", flat=True)),
        "snapshots": dict(snapshots),
        "instants": set(Run.objects.filter(at__gt=SUNDAY).values_list("at", flat=True)),
        "next": dict(Schedule.objects.values_list("name", "next_run")),
        "violations": violations_about("accounts"),
    }
