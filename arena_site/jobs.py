"""Who runs when. A schedule is a doorbell: it names a job, the job runs a command, truth lives in our rows.

Every job is idempotent and safe to overlap, so a message lost, doubled or late does no harm: the next ring does
what is still to be done.
"""

import io
from dataclasses import dataclass
from datetime import datetime, timedelta

from croniter import croniter
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone
from django_q.models import Schedule

from cohorts.services import START_WITHIN, weeks_missed
from cohorts.weeks import week_start

MINUTES, HOURS = 60, 3600
TICK = timedelta(minutes=5)
"""Jobs run for instants of this grid, so that one job's instant is never a moment older than another's."""


class JobFailed(Exception):
    """A job's command failed; the message is what it said."""


@dataclass(frozen=True, slots=True)
class Job:
    """A function of this module, when it is rung (cron, UTC), and after how many seconds it is stopped."""

    function: str
    cron: str
    timeout: int
    about: str

    @property
    def name(self) -> str:
        return self.function.replace("_", " ")


JOBS = (
    Job("sync", "*/5 * * * *", 10 * MINUTES, "the catalogue, every 5 minutes"),
    Job("snapshots", "*/10 * * * *", 8 * MINUTES, "every portfolio, every 10 minutes"),
    Job("resolutions", "0 * * * *", 50 * MINUTES, "settlement and scores, hourly"),
    Job(
        "cohort",
        "0 * * * *",
        5 * MINUTES,
        "the week's cohort, Sunday 00:00; later hours make it up or record it missed",
    ),
    Job("decisions", "5 * * * 0", 6 * HOURS, "the week's decisions, Sunday 00:05; later hours retry what failed"),
    Job("decisions_end", "10 0 * * 1", 30 * MINUTES, "what failed for 24 hours is recorded as missed, Monday 00:10"),
    Job("prune", "40 3 * * *", 30 * MINUTES, "old detail rolled up, daily 03:40, off everybody else's minutes"),
)


def install() -> list[Schedule]:
    """Makes the schedules exactly these. Raises ValueError for a cron line that is none: one would stop them all."""
    for job in JOBS:
        if not croniter.is_valid(job.cron) or job.function not in globals():
            raise ValueError(f"job {job.function}: {job.cron!r} is no schedule of a job")
    with transaction.atomic():
        Schedule.objects.filter(func__startswith=f"{__name__}.").exclude(name__in=[j.name for j in JOBS]).delete()
        return [
            Schedule.objects.update_or_create(
                name=job.name,
                defaults={
                    "func": f"{__name__}.{job.function}",
                    "schedule_type": Schedule.CRON,
                    "cron": job.cron,
                    "repeats": -1,
                    "kwargs": repr({"q_options": {"timeout": job.timeout}}),
                },
            )[0]
            for job in JOBS
        ]


def tick(now: datetime | None = None) -> datetime:
    """The instant a job runs for: now, taken down to the tick."""
    now = now or timezone.now()
    start = week_start(now)
    return now - (now - start) % TICK


def sync() -> str:
    return _command("sync_markets", tick())


def snapshots() -> str:
    return _command("take_snapshots", tick())


def resolutions() -> str:
    return _command("check_resolutions", tick())


def cohort() -> str:
    """Starts the week's cohort within a day of its start; a week too late for that is recorded as missed."""
    at = tick()
    missed = weeks_missed(at=at)  # before the start, which would hide the weeks slept through
    if at < week_start(at) + START_WITHIN:
        return _command("start_cohort", at)
    return f"{missed} weeks newly recorded as missed"


def decisions() -> str:
    at = tick()
    if at >= week_start(at) + START_WITHIN:
        return "too late in the week to ask anybody"
    return _command("run_decisions", at)


def decisions_end() -> str:
    """Rings the decisions once their window is over, which records what is left as missed and asks nobody."""
    return _command("run_decisions", tick())


def prune() -> str:
    return _command("prune", tick())


def _command(name: str, at: datetime) -> str:
    said, complained = io.StringIO(), io.StringIO()
    try:
        call_command(name, at=at, json=True, stdout=said, stderr=complained)
    except SystemExit as end:
        if end.code:
            raise JobFailed(f"{name}: {complained.getvalue().strip() or said.getvalue().strip()}") from None
    return said.getvalue().strip()
