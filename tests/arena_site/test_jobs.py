"""Scheduled jobs: installed by code, validated, each safe to run twice."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile
from typing import Any

import pytest
import time_machine
from croniter import croniter
from django.core.management import get_commands, load_command_class
from django.utils import timezone
from django_q.models import OrmQ, Schedule

from agents.models import Decision
from arena_site import jobs
from arena_site.operations.queue_messages import STARTED
from cohorts.models import Cohort, MissedWeek
from foundation.commands import CommandResult
from foundation.models import Alert, Run
from markets.models import Universe
from scoring.models import Snapshot
from tests.commands import SUNDAY, run
from tests.sandbox import Venue
from venue_sandbox.script import Failure

pytestmark = pytest.mark.django_db


def at(moment: datetime) -> Any:
    return time_machine.travel(moment, tick=False)


def test_schedules_are_installed_once_and_valid() -> None:
    Schedule.objects.create(name="old", func="arena_site.jobs.gone", schedule_type="C", cron="* * * * *")
    jobs.install()
    first = set(Schedule.objects.values_list("pk", "name", "cron"))
    jobs.install()
    assert set(Schedule.objects.values_list("pk", "name", "cron")) == first
    assert {name for _, name, _ in first} == {job.name for job in jobs.JOBS}
    assert dict(Schedule.objects.values_list("name", "cron"))["sync"] == "*/5 * * * *"


def test_a_cron_line_that_is_none_is_refused_before_it_stops_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "JOBS", (jobs.Job("sync", "every now and then", 60, ""),))
    with pytest.raises(ValueError, match="sync"):
        jobs.install()
    assert not Schedule.objects.exists()


def test_every_schedule_rings_a_function_that_is_there() -> None:
    for schedule in jobs.install():
        assert callable(getattr(jobs, schedule.func.rpartition(".")[2]))


def test_no_message_is_delivered_twice_while_a_job_may_run(settings: Any) -> None:
    assert settings.Q_CLUSTER["retry"] > settings.Q_CLUSTER["timeout"] >= max(job.timeout for job in jobs.JOBS)


def test_each_job_ends_before_its_command_starts_again() -> None:
    by_command: defaultdict[str, list[jobs.Job]] = defaultdict(list)
    for job in jobs.JOBS:
        by_command[job.command or job.function].append(job)
    for command, group in by_command.items():
        starts = sorted((start, job.timeout) for job in group for start in _starts(job))
        for (start, timeout), (following, _) in pairwise(starts):
            assert start + timedelta(seconds=timeout) < following, command


def _starts(job: jobs.Job) -> list[datetime]:
    """The instants of two weeks for which a job is scheduled."""
    end = SUNDAY + timedelta(weeks=2)
    return list(takewhile(lambda start: start < end, croniter(job.cron, SUNDAY).all_next(datetime)))


def test_job_whose_time_is_over_asks_nobody_new_and_the_next_goes_on(venue: Venue) -> None:
    venue.market("Will it rain?")
    with at(SUNDAY):
        jobs.sync()
        jobs.cohort()
    late = run("run_decisions", SUNDAY + timedelta(minutes=5), minutes=0)
    assert (late.code, late["asked"], late["unasked"]) == (0, 0, 7)
    assert "not asked: the time of this run is over" in "".join(Run.objects.latest("pk").log_texts)
    with at(SUNDAY + timedelta(hours=1, minutes=5)):
        jobs.decisions()
    assert len(venue.asked) == 7


@pytest.mark.parametrize(
    ("status", "summary", "goes_on"),
    [
        ("lost", {}, True),
        ("failed", {"unasked": 3}, True),
        ("succeeded", {"unasked": 0}, False),
        ("running", {}, False),
    ],
)
def test_forecast_run_that_was_killed_or_cut_short_is_taken_up_within_the_hour(
    status: str, summary: dict[str, int], goes_on: bool, venue: Venue
) -> None:
    venue.market("Will it rain?")
    with at(SUNDAY + timedelta(hours=2)):
        jobs.sync()
        Run.objects.create(kind="run_forecasts", at=SUNDAY + timedelta(hours=2), status=status, summary=summary)
    with at(SUNDAY + timedelta(hours=2, seconds=50)):
        result = jobs.resume_forecasts()
    assert (result != "no run of the day has to be taken up") == goes_on
    assert bool(venue.asked) == goes_on


@pytest.mark.parametrize("name", sorted({job.command for job in jobs.JOBS} - {"", "send_alerts"}))
def test_command_of_any_job_that_fails_is_an_alert(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = load_command_class(get_commands()[name], name)

    def fail(self: Any, at: datetime, options: dict[str, Any]) -> CommandResult:
        return CommandResult({}, failures=["no reason given"])

    monkeypatch.setattr(type(command), "perform", fail)
    assert run(name, SUNDAY).code == 1
    alert = Alert.objects.open().get()
    assert (alert.kind, alert.subject, alert.message) == ("job-failed", name, f"{name} failed: no reason given")


def test_some_forecast_job_starts_in_every_hour_of_the_day() -> None:
    starts = {start.hour for job in jobs.JOBS if job.command == "run_forecasts" for start in _starts(job)}
    assert starts == set(range(2, 24))


@pytest.mark.parametrize(
    ("now", "tick"), [("00:00:01", "00:00"), ("00:04:59", "00:00"), ("00:05:00", "00:05"), ("23:59:59", "23:55")]
)
def test_jobs_run_for_instants_of_the_tick(now: str, tick: str) -> None:
    assert jobs.current_tick(datetime.fromisoformat(f"2026-03-10T{now}+00:00")) == datetime.fromisoformat(
        f"2026-03-10T{tick}+00:00"
    )


def test_job_after_a_sync_by_hand_asks_the_venues(venue: Venue) -> None:
    venue.market("Will it rain?")
    with at(SUNDAY + timedelta(minutes=6)):
        run("sync_markets", SUNDAY + timedelta(minutes=6))
    with at(SUNDAY + timedelta(minutes=7)):
        jobs.cohort()
        jobs.decisions()
    assert Universe.objects.get().frozen_at == SUNDAY + timedelta(minutes=7)


def test_job_whose_run_was_killed_is_enqueued_again_at_once() -> None:
    assert jobs.enqueue("sync")
    OrmQ.objects.update(key=STARTED, lock=timezone.now() + timedelta(minutes=1))
    assert not jobs.enqueue("sync")
    Run.objects.create(kind="sync_markets", at=SUNDAY, status="lost")
    assert jobs.enqueue("sync")


def test_a_sunday_by_the_jobs_alone(venue: Venue) -> None:
    venue.market("Will it rain?")
    with at(SUNDAY + timedelta(seconds=2)):
        jobs.sync()
        jobs.cohort()
        jobs.snapshots()
    with at(SUNDAY + timedelta(minutes=5, seconds=1)):
        jobs.decisions()
        jobs.decisions()
    with at(SUNDAY + timedelta(hours=1)):
        jobs.resolutions()
        jobs.cohort()
        jobs.snapshots()
    assert Cohort.objects.get().week_start == SUNDAY
    assert Decision.objects.filter(status="completed").count() == 7
    assert len(venue.asked) == 7
    assert Snapshot.objects.count() == 14
    assert set(Run.objects.values_list("status", flat=True)) == {"succeeded"}


def test_late_cohort_starts_within_a_day_and_never_later() -> None:
    with at(SUNDAY + timedelta(hours=23)):
        jobs.cohort()
    assert Cohort.objects.get().week_start == SUNDAY
    with at(SUNDAY + timedelta(days=8, hours=1)):
        jobs.cohort()
        jobs.cohort()
    assert Cohort.objects.count() == 1
    assert MissedWeek.objects.get().week_start == SUNDAY + timedelta(weeks=1)


def test_weeks_slept_through_are_recorded_and_never_back_dated() -> None:
    with at(SUNDAY):
        jobs.cohort()
    with at(SUNDAY + timedelta(weeks=3, hours=2)):
        jobs.cohort()
    assert list(Cohort.objects.order_by("number").values_list("week_start", flat=True)) == [
        SUNDAY,
        SUNDAY + timedelta(weeks=3),
    ]
    assert set(MissedWeek.objects.values_list("week_start", flat=True)) == {
        SUNDAY + timedelta(weeks=1),
        SUNDAY + timedelta(weeks=2),
    }


def test_failed_decisions_become_missed_on_monday(venue: Venue) -> None:
    venue.market("Will it rain?")
    venue.says("openai/gpt-5.2", Failure(503))
    with at(SUNDAY):
        jobs.sync()
        jobs.cohort()
    with at(SUNDAY + timedelta(minutes=5)), pytest.raises(jobs.JobFailed):
        jobs.decisions()
    with at(SUNDAY + timedelta(days=1, minutes=10)):
        jobs.decisions()
        jobs.missed_decisions()
    assert Decision.objects.get(agent__model_id="openai/gpt-5.2").status == "missed"
    assert len(venue.asked) == 7


def test_weeks_begin_in_utc() -> None:
    zone = datetime(2026, 3, 8, 1, 0, tzinfo=UTC).astimezone()
    assert jobs.current_tick(zone) == datetime(2026, 3, 8, 1, 0, tzinfo=UTC)
