"""The overview on the admin's front page: jobs, failures, spending, alerts, and concerns."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import Count, Q
from django_q.models import Failure, Schedule

from agents.models import Decision, Elicitation, ModelCall, Task
from agents.services.model_calls import TASK_MODELS, spent_in_week
from agents.services.settlement import OVERDUE_AFTER
from arena_site import jobs, operational_metrics
from arena_site.dashboard.action import list_path, row_path
from arena_site.dashboard.actions import ACTIONS
from arena_site.models import AuditEntry, Notice, Worker
from arena_site.queue_messages import queue_state
from cohorts.models import Cohort
from cohorts.weeks import WEEK, week_start
from markets.models import Market, Run
from scoring.models import Snapshot

ROWS_SHOWN = 12
LATE_AFTER = timedelta(minutes=10)
"""A schedule this long past its time is overdue."""
UNRESOLVED_AFTER = timedelta(hours=24)
"""A market closed for this long is listed as unresolved."""
SPENDING_WARNING = Decimal("0.8")
"""The fraction of the spend cap from which the overview warns."""
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Concern:
    """A problem that needs an operator, with the page that shows it and, where there is one, the action against it."""

    message: str
    path: str
    severe: bool = True
    action: str = ""
    action_path: str = ""


class JobStatus:
    """A job's newest run and its next one."""

    def __init__(self, job: jobs.Job, runs: dict[str, operational_metrics.LastRuns], schedule: Any, now: datetime):
        last = runs.get(job.command, operational_metrics.LastRuns())
        self.name, self.description = job.name, job.description
        self.run, self.last_success = last.newest, last.succeeded
        self.failed = last.newest is not None and last.newest.status == Run.Status.FAILED
        self.path = list_path(Run, kind=job.command) if job.command else list_path(Schedule)
        self.result = _run_result(last.newest) if last.newest else ""
        self.duration = _duration(last.newest, now) if last.newest else ""
        self.paused = schedule is not None and schedule.repeats == jobs.PAUSED
        self.next_at = None if schedule is None or self.paused else schedule.next_run
        self.overdue = self.next_at is not None and self.next_at < now - LATE_AFTER


class FailedTask:
    """A decision or elicitation of the week that failed, was missed or whose claim expired."""

    def __init__(self, task: Any, name: str) -> None:
        is_expired = task.status == Task.Status.CLAIMED
        self.name, self.path, self.action, self.action_path = name, row_path(task), "", ""
        self.status = "expired claim" if is_expired else task.status
        self.error = task.error.partition("\n")[0] or ("its worker died" if is_expired else "")
        if is_expired:
            path = ACTIONS["release-claim"].path(**{task._meta.model_name: task.pk})
            self.action, self.action_path = "Release", path
        elif task.status == Task.Status.FAILED:
            is_decision = isinstance(task, Decision)
            path = ACTIONS["retry-decision"].path(decision=task.pk) if is_decision else ACTIONS["forecasts"].path()
            self.action, self.action_path = "Retry", path


class Spending:
    """A protocol's spending in a week, against its cap."""

    def __init__(self, protocol: str, week: datetime) -> None:
        self.protocol, self.cap = protocol, settings.ARENA_SPEND_LIMIT_USD
        self.spent = spent_in_week(protocol, week)
        self.path = list_path(ModelCall, sent_at__gte=week.isoformat(), sent_at__lt=(week + WEEK).isoformat())
        self.fraction = self.spent / self.cap if self.cap else Decimal(1)
        self.css_class = "bad" if self.fraction >= 1 else "warn" if self.fraction >= SPENDING_WARNING else "good"


class Overview:
    """The page's contents at instant `at` of the arena and `now` of the real clock, in a fixed number of queries."""

    def __init__(self, at: datetime, now: datetime) -> None:
        self.at, self.now, self.week_start = at, now, week_start(at)
        self.jobs = _job_statuses(now)
        self.cohort = Cohort.objects.filter(week_start=self.week_start).first()
        decisions = operational_metrics.decisions_of_week(at)
        elicitations = Elicitation.objects.filter(Elicitation.in_week(self.week_start))
        self.decisions_by_status = _count_by_status(decisions)
        self.elicitations_by_status = _count_by_status(elicitations)
        self.failed_tasks = [*_failed_decisions(decisions, now), *_failed_elicitations(elicitations, now)]
        self.spending = [Spending(protocol, self.week_start) for protocol in TASK_MODELS]
        unresolved = operational_metrics.unresolved_markets().filter(closed_at__lte=at - UNRESOLVED_AFTER)
        self.unresolved_markets = list(unresolved.order_by("closed_at")[: ROWS_SHOWN + 1])
        stale = operational_metrics.held_stale_outcomes().select_related("market").defer("market__description")
        self.stale_outcomes = list(stale.order_by("price_at")[: ROWS_SHOWN + 1])
        self.alerts = list(operational_metrics.open_alerts()[: ROWS_SHOWN + 1])
        self.unsent_notices = Notice.objects.filter(sent_at=None, tries__gt=0).count()
        self.workers = list(Worker.objects.all()[:ROWS_SHOWN])
        queue = queue_state(now)
        self.jobs_queued, self.jobs_running = queue.depth, queue.at_work
        self.jobs_failed = Failure.objects.filter(stopped__gte=now - DAY).count()
        self.database_bytes = operational_metrics.database_bytes()
        added = operational_metrics.rows_added(at=at, now=now)
        self.tables = [
            {"name": name, "rows": rows, "rows_added": added.get(name)}
            for name, rows in operational_metrics.table_rows()
        ]
        self.last_verification = operational_metrics.last_verification()
        self.snapshot_at = Snapshot.objects.order_by("-taken_at").values_list("taken_at", flat=True).first()
        self.synced_at = Market.objects.newest_instant()
        self.audit_entries = list(AuditEntry.objects.order_by("-at", "-pk")[:8])
        self.concerns = sorted(_concerns(self), key=lambda concern: not concern.severe)

    @property
    def has_live_worker(self) -> bool:
        return any(worker.is_alive(self.now) for worker in self.workers)


def _job_statuses(now: datetime) -> list[JobStatus]:
    runs = operational_metrics.last_runs(sorted({job.command for job in jobs.JOBS} - {""}))
    schedules = {schedule.name: schedule for schedule in Schedule.objects.filter(name__in=[j.name for j in jobs.JOBS])}
    return [JobStatus(job, runs, schedules.get(job.name), now) for job in jobs.JOBS]


def _run_result(run: Run) -> str:
    """The first line of the error of a failed run, else up to five figures of its summary that are not zero."""
    if run.status == Run.Status.FAILED:
        return run.error.partition("\n")[0] or "failed without a message"
    if not isinstance(run.summary, dict):
        return ""
    figures = [
        f"{name.replace('_', ' ')} {value}"
        for name, value in run.summary.items()
        if value not in (0, None, "", "0.000000") and not isinstance(value, bool | dict | list)
    ]
    return ", ".join(figures[:5])


def _duration(run: Run, now: datetime) -> str:
    seconds = ((run.finished_at or now) - run.started_at).total_seconds()
    if seconds < 1:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _count_by_status(tasks: Any) -> dict[str, int]:
    return dict(tasks.order_by().values_list("status").annotate(n=Count("pk")))


def _unfinished(tasks: Any, now: datetime) -> Any:
    return tasks.filter(Q(status=Task.Status.MISSED) | Q(pk__in=tasks.claimable(now).values("pk"))).order_by("-pk")


def _failed_decisions(decisions: Any, now: datetime) -> Iterator[FailedTask]:
    for decision in _unfinished(decisions, now).select_related("agent__cohort")[: ROWS_SHOWN + 1]:
        yield FailedTask(decision, f"{decision.agent.display_name}, cohort {decision.agent.cohort.number}")


def _failed_elicitations(elicitations: Any, now: datetime) -> Iterator[FailedTask]:
    rows = _unfinished(elicitations, now).select_related("release", "batch__question_set").defer("batch__block")
    for elicitation in rows[: ROWS_SHOWN + 1]:
        yield FailedTask(elicitation, f"{elicitation.release.display_name}, {elicitation.batch}")


def _concerns(overview: Overview) -> Iterator[Concern]:
    """The problems that need an operator."""
    yield from _infrastructure_concerns(overview)
    for job in {job.run.pk: job for job in overview.jobs if job.run and job.failed}.values():
        assert job.run is not None
        yield Concern(f"{job.name}: {job.result}", row_path(job.run))
    failed = [task for task in overview.failed_tasks if task.status == "failed"]
    if failed:
        names = ", ".join(task.name for task in failed[:3]) + (" and more" if len(failed) > 3 else "")
        yield Concern(f"{_count(len(failed), 'task')} of this week failed: {names}", "#failures")
    if expired := [task for task in overview.failed_tasks if task.action == "Release"]:
        yield Concern(f"{_count(len(expired), 'expired claim')}", "#failures", severe=False)
    if overdue := [market for market in overview.unresolved_markets if is_overdue(market, overview.at)]:
        path = ACTIONS["settle"].path(market=overdue[0].pk) if len(overdue) == 1 else ""
        message = f"{_count(len(overdue), 'market')} closed for over 72 hours without a resolution"
        yield Concern(message, "#unresolved", action="Settle" if path else "", action_path=path)
    if overview.alerts:
        yield Concern(f"{_count(len(overview.alerts), 'alert')} not acknowledged", "#alerts", severe=False)
    run = overview.last_verification
    if run and isinstance(run.summary, dict) and (violations := run.summary.get("violations")):
        yield Concern(f"The last ledger verification found {_count(violations, 'violation')}", row_path(run))
    for spending in overview.spending:
        if spending.fraction >= SPENDING_WARNING:
            message = f"{spending.protocol}: ${spending.spent:.2f} of this week's ${spending.cap:.2f} are spent"
            yield Concern(message, spending.path, severe=spending.fraction >= 1)
    if overview.stale_outcomes:
        yield Concern(f"{_count(len(overview.stale_outcomes), 'held price')} stale", "#stale", severe=False)
    if overview.unsent_notices:
        message = f"{_count(overview.unsent_notices, 'alert')} could not be sent yet"
        yield Concern(message, list_path(Notice), severe=False)


def is_overdue(market: Market, at: datetime) -> bool:
    return market.closed_at is not None and market.closed_at <= at - OVERDUE_AFTER


def _infrastructure_concerns(overview: Overview) -> Iterator[Concern]:
    if not settings.ARENA_DEMO:
        if not any(job.next_at or job.paused for job in overview.jobs):
            yield Concern("No schedules are installed: no job runs by itself", list_path(Schedule))
        elif not overview.has_live_worker:
            seen = f"since {overview.workers[0].seen_at:%d %B, %H:%M} UTC" if overview.workers else "yet"
            yield Concern(f"No worker has been seen {seen}: no job runs by itself", "#infrastructure")
        if overdue := [job.name for job in overview.jobs if job.overdue]:
            yield Concern(f"Overdue: {', '.join(overdue)}", list_path(Schedule))
    if paused := [job.name for job in overview.jobs if job.paused]:
        path, message = ACTIONS["resume"].path(schedule=paused), f"Paused: {', '.join(paused)}"
        yield Concern(message, list_path(Schedule), severe=False, action="Resume", action_path=path)
    if overview.jobs_failed:
        message = f"{_count(overview.jobs_failed, 'job')} failed or were stopped in the last day"
        yield Concern(message, list_path(Failure), severe=False)


def _count(number: int, noun: str) -> str:
    if number > ROWS_SHOWN:
        return f"Over {ROWS_SHOWN} {noun}s"
    return f"{number} {noun}{'s' if number != 1 else ''}"
