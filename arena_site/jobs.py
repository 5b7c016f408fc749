"""The scheduled jobs: each schedule enqueues a function of this module, which runs a management command.

Every job is idempotent and safe to overlap, since the truth is in our rows: a message that is lost, doubled or late
does no harm, and the next run does what is still to be done.
"""

import io
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from functools import partial
from operator import attrgetter
from typing import Any

from croniter import croniter
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone
from django_q.conf import Conf
from django_q.models import Schedule
from django_q.tasks import async_task

from agents.services.envelopes import due_envelopes
from agents.services.missed import record_missed_decisions
from agents.services.task_alerts import refresh_task_alerts
from arena_site.operations.host_claims import host_refusal
from arena_site.operations.notices import has_unsent_notices
from arena_site.operations.queue_messages import STARTED, messages
from arena_site.operations.record_clock import alert_clock_ahead, clear_clock_ahead
from cohorts.models import Cohort, MissedWeek
from cohorts.services import MAX_START_DELAY, record_missed_weeks
from cohorts.weeks import FIRST_FORECASTS, week_start
from foundation.bulk import rows_by
from foundation.clock import ClockAhead, recording_now
from foundation.models import Run
from foundation.services.alerts import raise_alert
from foundation.services.runs import mark_lost_runs
from markets.models import Universe
from markets.models.question import day_of
from markets.services.cache_versions import Scope, lock_scope
from markets.services.prices import is_replay

log = logging.getLogger(__name__)
MINUTES, HOURS = 60, 3600
MARGIN = 10
"""Seconds between the end of a job that takes all of its interval, and the next."""
ASKING = 45
"""Minutes of a job's hour in which it asks models: it could not await the answer of one that is asked later."""
UNLIMITED, PAUSED = -1, 0
"""Values of `Schedule.repeats`; django-q skips a schedule without repeats."""
UNSCHEDULED_TIMEOUT_S = 2 * HOURS
"""The time limit of a job without a schedule."""
TICK = timedelta(minutes=5)
"""Jobs run for instants of this grid, so that jobs which start together share one instant."""
CLOCK_TOLERANCE = timedelta(minutes=1)
"""Clocks of several machines that differ by less count as equal."""


class JobFailed(Exception):
    """The failure of a job's command, with its output as message."""


class Lane(IntEnum):
    """Lanes of jobs: one of a higher lane finds a worker however long those of lower lanes take."""

    LONG = 0
    """Waits for models, or computes for long."""
    ORDINARY = 1
    """Waits for venues, or ends soon."""
    PROMPT = 2
    """Has its instant: snapshots and alerts."""

    @property
    def most_workers(self) -> int:
        """The most workers that this lane and lower ones may take together: one is left to each higher lane."""
        return max(1, Conf.WORKERS - (Lane.PROMPT - self))


@dataclass(frozen=True, slots=True)
class Job:
    """A function of this module, its schedule (cron, UTC) and time limit in seconds, and its words on the dashboard.

    A job without a command leaves no run; one without a title can not be enqueued from the dashboard.
    """

    function: str
    cron: str
    timeout: int
    description: str
    command: str = ""
    lane: Lane = Lane.ORDINARY
    title: str = ""

    @property
    def name(self) -> str:
        return self.function.replace("_", " ")

    @property
    def path(self) -> str:
        """Its function's path, as in schedules and messages."""
        return f"{__name__}.{self.function}"


JOBS = (
    Job("sync", "*/5 * * * *", 5 * MINUTES - MARGIN,
        "Reads the catalogue of every source and each market with a position or a question, every 5 minutes.",
        "sync_markets", title="Sync markets now"),
    Job("decisions", "5 * * * 0", HOURS - MARGIN,
        "Asks each agent that has no final decision this week, Sunday 00:05; later hours retry failed ones.",
        "run_decisions", Lane.LONG, "Run or resume the week's decisions"),
    Job("forecasts", "0 2 * * *", HOURS - MARGIN,
        "Asks each family for the question batches of the day that it has not answered, daily 02:00.",
        "run_forecasts", Lane.LONG, "Run or resume the day's forecasts"),
    Job("retry_forecasts", "0 8,14,20 * * *", HOURS - MARGIN,
        "Asks again for the day's failed forecasts, 08:00, 14:00 and 20:00.", "run_forecasts", Lane.LONG),
    Job("resume_forecasts", "0 3-7,9-13,15-19,21-23 * * *", HOURS - MARGIN,
        "Goes on with a forecast run that was killed or cut short, hourly.", "run_forecasts", Lane.LONG),
    Job("resolutions", "0 * * * *", 50 * MINUTES,
        "Looks up every unresolved market at its venue, settles final ones and scores their bets, hourly.",
        "check_resolutions", title="Check resolutions now"),
    Job("snapshots", "*/10 * * * *", 8 * MINUTES,
        "Values every portfolio that has no snapshot of the last instant of its grid, every 10 minutes.",
        "take_snapshots", Lane.PROMPT, "Take snapshots now"),
    Job("openings", "*/5 * * * *", 5 * MINUTES - MARGIN,
        "Opens the answers whose seal has ended: they trade, and their forecasts are recorded, every 5 minutes.",
        "open_envelopes", Lane.PROMPT, "Open sealed answers that are due"),
    Job("scores", "20 4 * * *", 2 * HOURS,
        "Scores resolved bets and forecasts, and computes every leaderboard with its slow fits, daily 04:20.",
        "compute_scores", Lane.LONG, "Recompute scores"),
    Job("ledger", "10 5 * * *", 2 * HOURS,
        "Recomputes every balance, payout, forecast and hash, and changes nothing, daily 05:10.",
        "verify_ledger", Lane.LONG, "Verify the ledger"),
    Job("check_lineup", "30 6 * * 3,6", 10 * MINUTES,
        "Compares the line-up with the gateway's catalogue and proposes a new one where a release has changed, "
        "Wednesday and Saturday 06:30.", "check_lineup", title="Check the line-up now"),
    Job("backup", "25 3 * * *", 2 * HOURS,
        "Writes a checked backup into ARENA_BACKUP_DIR and deletes the oldest ones, daily 03:25.",
        "backup", Lane.LONG, "Back up now"),
    Job("costs", "10-59/15 * * * *", 10 * MINUTES,
        "Asks the gateway for the true cost of calls whose bill never came, every 15 minutes.",
        "reconcile_costs", title="Reconcile costs"),
    Job("missed_decisions", "10 0 * * 1", 30 * MINUTES,
        "Records decisions past their window as missed and asks no model, Monday 00:10.",
        title="Record missed decisions"),
    Job("archive", "40 5 * * *", 2 * HOURS,
        "Builds the day's public archive of every table under /data/, daily 05:40.",
        "publish_archive", Lane.LONG, "Publish the day's archive"),
    Job("alerts", "2-59/5 * * * *", 5 * MINUTES - MARGIN,
        "Sends open alerts by mail and webhook, every 5 minutes.", "send_alerts", Lane.PROMPT, "Send alerts now"),
    Job("prune", "40 3 * * *", 30 * MINUTES,
        "Thins old snapshots and prices and deletes old runs, never data behind results, daily 03:40.",
        "prune", title="Prune old detail"),  # when no other job starts
    Job("cohort", "0 * * * *", 5 * MINUTES,
        "Starts the week's cohort, Sunday 00:00; later hours record a missed week.", "start_cohort"),
)  # fmt: skip
"""In the order of the dashboard's actions."""
JOBS_BY_PATH = rows_by("path", JOBS)
NAMES = tuple(map(attrgetter("name"), JOBS))


def install() -> list[Schedule]:
    """Installs exactly these schedules. Raises ValueError for an invalid cron line, which would stop them all."""
    for job in JOBS:
        if not croniter.is_valid(job.cron) or job.function not in globals():
            raise ValueError(f"job {job.function}: {job.cron!r} is not a valid cron line of a job")
    with transaction.atomic():
        Schedule.objects.filter(func__startswith=f"{__name__}.").exclude(name__in=NAMES).delete()
        schedules = []
        for job in JOBS:
            values = {
                "func": job.path,
                "schedule_type": Schedule.CRON,
                "cron": job.cron,
                "kwargs": repr({"q_options": {"timeout": job.timeout}}),
            }
            schedule, _ = Schedule.objects.update_or_create(name=job.name, defaults=values)
            schedules.append(schedule)
        return schedules


def enqueue(function: str, *args: Any) -> bool:
    """Enqueues a job; False where the same is queued or running already, also by a request of the same moment."""
    path = f"{__name__}.{function}"
    job = JOBS_BY_PATH.get(path)
    timeout = job.timeout if job else UNSCHEDULED_TIMEOUT_S
    with transaction.atomic():
        lock_scope(Scope.COMPETITION)
        present = messages(timezone.now())
        if job and _was_killed(job):
            present = present.exclude(key=STARTED)
        if any((message.task.get("func"), message.task.get("args")) == (path, args) for message in present):
            return False
        async_task(path, *args, q_options={"timeout": timeout, "group": "manual"})
    return True


def _was_killed(job: Job) -> bool:
    """Whether a job's newest run is lost: its message looks at work for a minute more."""
    newest = Run.objects.filter(kind=job.command).defer("log").first()
    return newest is not None and newest.status == Run.Status.LOST


def lane_of(function: str) -> Lane:
    """The lane of a job by its function's path; jobs without a schedule (a retry, an archive) take long."""
    job = JOBS_BY_PATH.get(function)
    return job.lane if job else Lane.LONG


def skip_waiting_schedules(now: datetime) -> list[str]:
    """Moves schedules that are due to their next time where their job still waits in the queue; returns their names.

    A job does all that is to be done when it starts: the same one behind it would do nothing but wait.
    """
    late_schedules = Schedule.objects.filter(name__in=NAMES, next_run__lt=now).exclude(repeats=PAUSED)
    if not late_schedules.exists():
        return []
    waiting = {message.task.get("func") for message in messages(now).filter(key=Conf.PREFIX)}
    skipped = []
    for schedule in late_schedules.filter(func__in=waiting):
        following = croniter(schedule.cron, now).get_next(datetime)
        if late_schedules.filter(pk=schedule.pk, next_run=schedule.next_run).update(next_run=following):
            skipped.append(str(schedule.name))
    return skipped


def reset_late_schedules(now: datetime) -> list[str]:
    """Resets schedules whose next run is later than their cron line says; returns their names.

    django-q stores only the next run: where the clock was ahead at the last run and has been set back since, the
    schedule would stay silent for as long as the clock was ahead.
    """
    reset = []
    for schedule in Schedule.objects.filter(name__in=NAMES, next_run__gt=now):
        if not croniter.is_valid(schedule.cron or ""):
            continue  # one broken schedule must not stop the others
        if schedule.next_run > croniter(schedule.cron, now + CLOCK_TOLERANCE).get_next(datetime):
            unchanged = Schedule.objects.filter(pk=schedule.pk, next_run=schedule.next_run)
            if unchanged.update(next_run=croniter(schedule.cron, now).get_next(datetime)):
                reset.append(str(schedule.name))
    return reset


def current_tick(now: datetime | None = None) -> datetime:
    """The instant that a job runs for: now, rounded down to the grid."""
    now = now or _present()
    return now - (now - week_start(now)) % TICK


def _present() -> datetime:
    """The present by the database's clock. Raises JobFailed on a machine whose clock is ahead of it."""
    try:
        present = recording_now()
    except ClockAhead as error:
        alert_clock_ahead(str(error))
        raise JobFailed(str(error)) from None
    clear_clock_ahead()
    return present


def job_instant() -> datetime:
    """The instant that a command is run for: the tick, or now where a command by hand has recorded a later one."""
    tick = current_tick()
    return _present() if is_replay(tick) else tick


def cohort() -> str:
    """Starts the week's cohort within a day of its start; a week too late for that is recorded as missed."""
    _require_host()
    at = current_tick()
    missed = record_missed_weeks(at=at)  # before the start, which would hide the missed weeks
    if missed:
        _alert_missed_weeks(missed, at)
    if at < week_start(at) + MAX_START_DELAY:
        return _run_command("start_cohort")
    return f"{missed} weeks newly recorded as missed"


def _alert_missed_weeks(number: int, at: datetime) -> None:
    weeks = MissedWeek.objects.order_by("-week_start")[:number]
    days = [f"{week.week_start:%Y-%m-%d}" for week in reversed(weeks)]
    raise_alert(
        kind="week-missed",
        items=dict(zip(days, days, strict=True)),
        message=f"{number} week{'s' if number > 1 else ''} without a cohort: none started within a day of the start.",
        at=at,
        path="/cohorts/",
        remedy="The schedule starts no cohort this late. To start one anyway, run manage.py start_cohort; "
        "then acknowledge the alert.",
        urgent=False,
    )


def decisions(on_request: bool = False) -> str:
    """The week's decisions. On schedule, however late, none are begun after the Sunday; on request, as by command."""
    _require_host()
    at = current_tick()
    has_begun = Universe.objects.filter(week_start=week_start(at)).exists()
    is_open = on_request or has_begun or at < week_start(at) + MAX_START_DELAY
    return _run_command("run_decisions", minutes=ASKING) if is_open else "the week's window is closed"


def resume_forecasts() -> str:
    """Goes on with the day's forecasts where the last run was killed or left somebody unasked, or none was recorded."""
    mark_lost_runs(now=timezone.now())
    runs = Run.objects.filter(kind="run_forecasts", at__gte=day_of(current_tick()) + FIRST_FORECASTS)
    last = runs.defer("log").first()
    if last is not None and last.status != Run.Status.LOST and not last.summary.get("unasked"):
        return "no run of the day has to be taken up"
    return forecasts()


def missed_decisions() -> str:
    """Records the unanswered decisions of closed windows as missed; asks no model, however late it runs."""
    _require_host()
    at = current_tick()
    cohorts = Cohort.objects.active().filter(week_start__lte=at).select_related("methodology")
    missed = record_missed_decisions(cohorts, at=at)
    refresh_task_alerts(at=at)
    return f"{missed} decisions newly recorded as missed"


def openings() -> str:
    return _run_command("open_envelopes") if due_envelopes(current_tick()).exists() else "nothing to open"


def alerts() -> str:
    return _run_command("send_alerts") if has_unsent_notices(now=timezone.now()) else "nothing to send"


def decision(cohort: int, family: str) -> str:
    """Retries the decision of one agent of the week, if it is not final."""
    return _run_command("run_decisions", cohort=cohort, family=family)


def _require_host() -> None:
    """Raises JobFailed on a host that does not serve this database."""
    if refusal := host_refusal():
        raise JobFailed(refusal)


def _run_command(name: str, **options: Any) -> str:
    _require_host()
    at, output, errors = job_instant(), io.StringIO(), io.StringIO()
    try:
        call_command(name, at=at, live=True, json=True, stdout=output, stderr=errors, **options)
    except SystemExit as end:
        if end.code:
            stopped = end.code if isinstance(end.code, str) else ""  # by its time limit
            message = stopped or errors.getvalue().strip() or output.getvalue().strip()
            raise JobFailed(f"{name}: {message}") from None
    return output.getvalue().strip()


sync = partial(_run_command, "sync_markets")
snapshots = partial(_run_command, "take_snapshots")
resolutions = partial(_run_command, "check_resolutions")
forecasts = retry_forecasts = partial(_run_command, "run_forecasts", minutes=ASKING)
"""A later run asks the families without an answer, and catches up on a missed 02:00."""
costs = partial(_run_command, "reconcile_costs")
"""Replaces the booked worst case of calls whose bill never came by what the gateway billed."""
scores = partial(_run_command, "compute_scores")
ledger = partial(_run_command, "verify_ledger")
check_lineup = partial(_run_command, "check_lineup")
"""Proposes a line-up where the gateway's catalogue has changed; it takes effect once a person approves it."""
archive = partial(_run_command, "publish_archive")
backup = partial(_run_command, "backup")
prune = partial(_run_command, "prune")
