"""The scheduler: schedules that a clock set back has left in the future, and database outages."""

from datetime import timedelta

import pytest
import time_machine
from django.db import OperationalError, connection
from django_q.brokers import get_broker
from django_q.conf import Conf
from django_q.models import Schedule

from arena_site import jobs
from tests.venue import SUNDAY

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
        *("sync", "snapshots", "resolutions", "cohort", "decisions", "costs", "alerts", "past leaderboards")
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


def test_broker_survives_a_database_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr(Conf, "POLL", 0)
    broker = get_broker()
    with connection.execute_wrapper(gone):
        assert broker.dequeue() is None
        broker.acknowledge(1)
