"""The dashboard's jobs: what is due next, and the runs of the last 24 hours."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import filterfalse
from operator import attrgetter

from django.utils.safestring import SafeString
from django_q.models import Schedule

from arena_site import jobs
from arena_site.dashboard.action import list_path, row_path
from arena_site.dashboard.actions import ACTIONS
from arena_site.dashboard.graphics import Bar, bar_chart, bar_heights
from arena_site.operations import operational_metrics
from arena_site.templatetags.dashboard import duration, state_class
from foundation.bulk import rows_by
from foundation.commands import figure_label
from foundation.models import Run

DAY = timedelta(days=1)
LATE_AFTER = timedelta(minutes=10)
"""A schedule this long past its time is overdue."""
DUE_SHOWN = 6
WIDEST_BAR, GAP = 0.012, 0.8
"""The widest bar of a run as a fraction of the day's width, and the part of its slot that a bar fills."""


class JobSchedule:
    """A job with the time of its next run."""

    def __init__(self, job: jobs.Job, schedule: Schedule | None, now: datetime) -> None:
        self.job, self.name, self.description = job, job.name, job.description
        self.paused = schedule is not None and schedule.repeats == jobs.PAUSED
        self.next_at: datetime | None = None if schedule is None or self.paused else schedule.next_run
        self.overdue = self.next_at is not None and self.next_at < now - LATE_AFTER
        self.path = row_path(schedule) if schedule else list_path(Schedule)


class JobRuns:
    """A command's runs of the last day, its newest run and its next one."""

    def __init__(
        self, schedules: Sequence[JobSchedule], last: operational_metrics.LastRuns, day: Sequence[Run], now: datetime
    ) -> None:
        first = schedules[0]
        self.kind, self.name, self.description = first.job.command, first.name, first.description
        self.run, self.last_success = last.newest, last.succeeded
        self.failed = last.newest is not None and state_class(last.newest.status) == "bad"
        self.path, self.action_path = list_path(Run, kind=self.kind), ACTIONS[self.kind].path()
        self.result = run_result(last.newest) if last.newest else ""
        self.duration = duration(_seconds(last.newest, now)) if last.newest else ""
        self.paused = all(map(attrgetter("paused"), schedules))
        self.next_at = min(filter(None, map(attrgetter("next_at"), schedules)), default=None)
        self.overdue = any(map(attrgetter("overdue"), schedules))
        since = {"kind": self.kind, "started_at__gt": (now - DAY).isoformat()}
        bad = Counter(run.status for run in day if state_class(run.status) == "bad")
        self.runs, self.runs_path = len(day), list_path(Run, **since)
        self.bad_runs = bad.total()
        self.bad_path = list_path(Run, **since, status__in=",".join(sorted(bad)))
        self.bars = self._bars(day, now) if day else ""

    def _bars(self, day: Sequence[Run], now: datetime) -> SafeString:
        lengths = [_seconds(run, now) for run in day]
        width, pages = min(WIDEST_BAR, GAP / len(day)), list_path(Run)
        bars = []
        for run, length, height in zip(day, lengths, bar_heights(lengths), strict=True):
            bar = Bar(
                x=min(max(0.0, 1 - (now - run.started_at) / DAY), 1.0) * (1 - width),
                width=width,
                height=height,
                css_class=state_class(run.status),
                title=f"{run.started_at:%H:%M}, {duration(length)}, {run.status}",
                path=f"{pages}{run.pk}/change/",
            )
            bars.append(bar)
        label = f"{len(day)} runs of {self.kind} in 24 hours, {self.bad_runs} of them failed or lost"
        return bar_chart(bars, label=label, css_class="bars")


class JobPanel:
    """Every schedule, those due next, and the runs of each command."""

    def __init__(self, now: datetime) -> None:
        rows = rows_by("name", Schedule.objects.all())
        self.schedules = [JobSchedule(job, rows.get(job.name), now) for job in jobs.JOBS]
        waiting = filter(attrgetter("next_at"), self.schedules)
        self.due = sorted(waiting, key=lambda schedule: schedule.next_at or now)[:DUE_SHOWN]
        self.paused = _names(filter(attrgetter("paused"), self.schedules))
        self.overdue = _names(filter(attrgetter("overdue"), self.schedules))
        self.jobs = _job_runs(self.schedules, now)
        self.ran = list(filter(attrgetter("run"), self.jobs))
        self.never_ran = list(filterfalse(attrgetter("run"), self.jobs))


def _names(schedules: Iterable[JobSchedule]) -> list[str]:
    return list(map(attrgetter("name"), schedules))


def _job_runs(schedules: Iterable[JobSchedule], now: datetime) -> list[JobRuns]:
    by_command: defaultdict[str, list[JobSchedule]] = defaultdict(list)
    for schedule in schedules:
        if schedule.job.command:
            by_command[schedule.job.command].append(schedule)
    runs = Run.objects.as_seen(now)
    last = operational_metrics.last_runs(sorted(by_command), runs)
    days: defaultdict[str, list[Run]] = defaultdict(list)
    # By kind, which the index needs.
    recent = runs.filter(kind__in=list(by_command), started_at__gt=now - DAY)
    for run in recent.only("kind", "status", "started_at", "finished_at").order_by("started_at", "pk"):
        days[run.kind].append(run)
    missing = operational_metrics.LastRuns()
    return [JobRuns(group, last.get(kind, missing), days[kind], now) for kind, group in by_command.items()]


def run_result(run: Run) -> str:
    """The first line of the error of a failed run, else up to five figures of its summary that are not zero."""
    if state_class(run.status) == "bad":
        return run.error.partition("\n")[0] or f"{run.status} without a message"
    if not isinstance(run.summary, dict):
        return ""
    figures = []
    for name, value in run.summary.items():
        if value not in (0, None, "", "0.000000") and not isinstance(value, bool | dict | list):
            figures.append(f"{figure_label(name)} {value}")
    return ", ".join(figures[:5])


def _seconds(run: Run, now: datetime) -> float:
    """The length of a run, so far or in all."""
    return ((run.finished_at or now) - run.started_at).total_seconds()
