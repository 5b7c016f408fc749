"""Who runs when. A schedule is a doorbell: it names a job, the job runs a command, truth lives in our rows.

Every job is idempotent and safe to overlap, so a message lost, doubled or late does no harm: the next ring does
what is still to be done.
"""

import io
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from croniter import croniter
from django.core.management import call_command
from django.db import DatabaseError, transaction
from django.utils import timezone
from django_q.models import OrmQ, Schedule
from django_q.tasks import async_task

from agents.services.missed import record_missed
from arena_site.notices import notices_wait
from cohorts.models import Cohort
from cohorts.services import START_WITHIN, weeks_missed
from cohorts.weeks import week_start
from markets.models import Alert

log = logging.getLogger(__name__)
MINUTES, HOURS = 60, 3600
FOR_EVER, PAUSED = -1, 0
"""How often a schedule rings yet; django-q leaves one alone that is to ring no more."""
JOB_FAILED = "job-failed"
ALARMING = ("start_cohort", "run_decisions", "run_forecasts", "verify_ledger")
"""Commands whose failure calls a person; the others ring again in minutes, and the desk shows them."""
BY_HAND_S = 2 * HOURS
"""How long a job may take that no schedule rings."""
TICK = timedelta(minutes=5)
"""Jobs run for instants of this grid, so that one job's instant is never a moment older than another's."""
SLACK = timedelta(minutes=1)
"""How far apart the clocks of several machines may be before one takes another's for a wrong one."""


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
    Job("forecasts", "0 2 * * *", 6 * HOURS, "the day's forecasts, 02:00"),
    Job("forecasts_again", "0 8,14,20 * * *", 6 * HOURS, "what failed of the day's forecasts is asked again"),
    Job("scores", "20 4 * * *", 2 * HOURS, "boards with all that takes long to fit, daily 04:20"),
    Job("ledger", "10 5 * * *", 2 * HOURS, "the books, the forecasts and the chains proved, daily 05:10"),
    Job("line_up", "30 6 * * 3", 10 * MINUTES, "the line-up beside the gateway's catalogue, Wednesday 06:30"),
    Job("alerts", "2-59/5 * * * *", 5 * MINUTES, "alerts by mail and webhook where set, every 5 minutes"),
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
                    "kwargs": repr({"q_options": {"timeout": job.timeout}}),
                },
            )[0]
            for job in JOBS
        ]


def pause(name: str) -> bool:
    """Keeps a schedule from ringing until it is resumed, restarts of the arena included. False if it is paused."""
    return bool(Schedule.objects.filter(name=name).exclude(repeats=PAUSED).update(repeats=PAUSED))


def resume(name: str) -> bool:
    """Has a paused schedule ring again: once at once for what it slept through. False if it is not paused."""
    return bool(Schedule.objects.filter(name=name, repeats=PAUSED).update(repeats=FOR_EVER))


def ring(function: str, *args: Any) -> bool:
    """Has a worker do a job, once; False where the same already waits in the queue or is at work."""
    function = f"{__name__}.{function}"
    timeout = next((job.timeout for job in JOBS if function == f"{__name__}.{job.function}"), BY_HAND_S)
    if any((message.task.get("func"), message.task.get("args")) == (function, args) for message in OrmQ.objects.all()):
        return False
    async_task(function, *args, q_options={"timeout": timeout, "group": "by hand"})
    return True


def pull_back(now: datetime) -> list[str]:
    """Brings schedules that would ring later than their cron line says back to it; returns their names.

    A schedule knows only when it rings next: a clock that was ahead when it last rang and has been set back since
    would leave it silent for as long as the clock was ahead.
    """
    pulled = []
    for schedule in Schedule.objects.filter(name__in=[job.name for job in JOBS], next_run__gt=now):
        if not croniter.is_valid(schedule.cron or ""):
            continue  # an operator's slip must not keep the others from ringing
        if schedule.next_run > croniter(schedule.cron, now + SLACK).get_next(datetime):
            still = Schedule.objects.filter(pk=schedule.pk, next_run=schedule.next_run)
            if still.update(next_run=croniter(schedule.cron, now).get_next(datetime)):
                pulled.append(str(schedule.name))
    return pulled


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
    """Records what is left of decisions whose window is over as missed; asks nobody, however late it rings."""
    at = tick()
    cohorts = Cohort.objects.active().filter(week_start__lte=at).select_related("methodology")
    return f"{record_missed(cohorts, at=at)} decisions newly recorded as missed"


def forecasts() -> str:
    return _command("run_forecasts", tick())


def forecasts_again() -> str:
    """The same run: who has answered is asked no more, and a day that was slept through at 02:00 is made up."""
    return forecasts()


def scores() -> str:
    return _command("compute_scores", tick())


def prune() -> str:
    return _command("prune", tick())


def line_up() -> str:
    """Proposes a line-up where the catalogue has changed; nothing plays by it until a person approves."""
    return _command("check_lineup", tick())


def alerts() -> str:
    return _command("send_alerts", tick()) if notices_wait(now=timezone.now()) else "nothing to send"


def ledger() -> str:
    return _command("verify_ledger", tick())


def decision(cohort: int, family: str) -> str:
    """Asks one agent of the week again, where its decision is not final."""
    return _command("run_decisions", tick(), cohort=cohort, family=family)


def export(export_id: int) -> str:
    """Builds an archive that was asked for over the API; one that is built already, or by another, is left alone."""
    from scoring.services.exports import export_run  # and all the maths behind it, which few processes need

    return str(export_run(export_id, at=timezone.now()))


def _command(name: str, at: datetime, **options: Any) -> str:
    said, complained = io.StringIO(), io.StringIO()
    try:
        call_command(name, at=at, json=True, stdout=said, stderr=complained, **options)
    except SystemExit as end:
        if end.code:
            why = complained.getvalue().strip() or said.getvalue().strip()
            _alarm(name, why, at)
            raise JobFailed(f"{name}: {why}") from None
    if name in ALARMING:
        Alert.objects.clear(JOB_FAILED, name, at)
    return said.getvalue().strip()


def _alarm(name: str, why: str, at: datetime) -> None:
    """Calls a person for a job that nobody should sleep through. That it can not be done fails nothing besides."""
    if name not in ALARMING:
        return
    try:
        Alert.objects.raise_once(JOB_FAILED, name, f"{name} failed: {why.partition(chr(10))[0]}"[:1000], at)
    except DatabaseError as error:
        log.warning("no alert could be raised for %s: %s", name, error)
