"""The scheduler: schedules that a clock set back has left in the future, and database outages."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import OperationalError, connection
from django_q.brokers import get_broker
from django_q.conf import Conf
from django_q.models import OrmQ, Schedule

from arena_site import jobs
from arena_site.operations.scheduler import SchedulerBroker
from tests.commands import SUNDAY

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def install_at(clock: object) -> None:
    with time_machine.travel(clock, tick=False):
        jobs.install()


def next_runs() -> dict[str, object]:
    return dict(Schedule.objects.values_list("name", "next_run"))


def test_a_schedule_left_in_the_future_rings_at_its_next_minute_again() -> None:
    install_at(SUNDAY + HOUR)
    assert set(jobs.reset_late_schedules(SUNDAY + timedelta(minutes=2))) == {
        *("sync", "snapshots", "resolutions", "cohort", "decisions", "openings", "costs", "alerts")
    }
    assert next_runs()["sync"] == SUNDAY + timedelta(minutes=5)
    assert next_runs()["decisions"] == SUNDAY + timedelta(minutes=5)
    assert next_runs()["cohort"] == SUNDAY + HOUR
    assert jobs.reset_late_schedules(SUNDAY + timedelta(minutes=2)) == []


def test_clocks_that_differ_by_seconds_do_not_enqueue_twice() -> None:
    install_at(SUNDAY + timedelta(seconds=20))
    before = next_runs()
    assert jobs.reset_late_schedules(SUNDAY - timedelta(seconds=20)) == []
    assert next_runs() == before


def test_invalid_schedule_does_not_stop_the_others() -> None:
    install_at(SUNDAY + HOUR)
    Schedule.objects.filter(name="sync").update(cron="now and then")
    Schedule.objects.filter(name="prune").update(cron=None)
    assert "snapshots" in jobs.reset_late_schedules(SUNDAY)


# ── lanes ─────────────────────────────────────────────────────────────────────────────────────────


def taken(broker: Any, number: int) -> list[str]:
    """The jobs whose messages a cluster takes while it ends none."""
    functions = []
    for _ in range(number):
        message = broker.dequeue()
        functions += [OrmQ.objects.get(pk=pk).task["func"].rpartition(".")[2] for pk, _ in message or ()]
    return functions


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(Conf, "POLL", 0)
    monkeypatch.setattr(SchedulerBroker, "enqueue_due_jobs", lambda _: None)
    return get_broker()


def test_snapshots_and_alerts_find_a_worker_whatever_others_wait_for(broker: Any) -> None:
    for function in ("decisions", "forecasts", "scores", "sync", "resolutions", "costs", "snapshots", "alerts"):
        assert jobs.enqueue(function)
    assert taken(broker, 5) == ["decisions", "sync", "snapshots"]
    OrmQ.objects.filter(pk=min(broker.taken)).delete()  # the decisions end
    assert taken(broker, 2) == ["forecasts"]
    assert sorted(OrmQ.objects.get(pk=pk).task["func"].rpartition(".")[2] for pk in broker.taken) == [
        "forecasts", "snapshots", "sync",
    ]  # fmt: skip


def test_sync_finds_a_worker_beside_long_jobs(broker: Any) -> None:
    for function in ("decisions", "forecasts", "export", "sync"):
        jobs.enqueue(function)
    assert taken(broker, 4) == ["decisions", "sync"]


def test_job_that_still_waits_is_not_enqueued_again_on_schedule() -> None:
    install_at(SUNDAY)
    now = SUNDAY + timedelta(minutes=6)
    with time_machine.travel(now, tick=False):
        jobs.enqueue("sync")
        assert jobs.skip_waiting_schedules(now) == ["sync"]
    assert next_runs()["sync"] == SUNDAY + timedelta(minutes=10)
    assert next_runs()["decisions"] == SUNDAY + timedelta(minutes=5), "it is due, and nothing of it waits"


def test_broker_survives_a_database_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr(Conf, "POLL", 0)
    broker = get_broker()
    with connection.execute_wrapper(gone):
        assert broker.dequeue() is None
        broker.acknowledge(1)
