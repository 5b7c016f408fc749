"""What the front page of the admin says: what ran, what is due, what failed and why, and what a person should do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import Count, Q
from django_q.models import Failure, OrmQ, Schedule

from agents.models import Decision, Elicitation, ModelCall, Task
from agents.services.asking import TASKS, spent_in_week
from arena_site import figures, jobs
from arena_site.desk.act import list_path, row_path
from arena_site.desk.acts import ACTS
from arena_site.models import AuditEntry, Notice, Worker
from cohorts.models import Cohort
from cohorts.weeks import WEEK, week_start
from markets.models import Alert, Market, Outcome, Run
from scoring.models import Snapshot

COMMANDS = {
    "sync": "sync_markets",
    "snapshots": "take_snapshots",
    "resolutions": "check_resolutions",
    "cohort": "start_cohort",
    "decisions": "run_decisions",
    "forecasts": "run_forecasts",
    "forecasts_again": "run_forecasts",
    "scores": "compute_scores",
    "ledger": "verify_ledger",
    "line_up": "check_lineup",
    "alerts": "send_alerts",
    "prune": "prune",
}
"""By job, the command whose runs tell of it; a job that is not here leaves no run."""
SHOWN = 12
"""Rows of each kind; the rest is behind a link."""
LATE = timedelta(minutes=10)
"""How long after its time a schedule counts as overdue."""
LONG = timedelta(hours=24)
"""How long a market may be closed before it is shown."""
NEARLY = Decimal("0.8")
"""The part of the spend cap from which it is worth a word."""
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Concern:
    """Something that wants a person: what, where it is, and what can be done about it."""

    says: str
    path: str
    bad: bool = True
    act: str = ""
    act_path: str = ""


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job: how its newest run ended, and when it rings next."""

    name: str
    about: str
    run: Run | None
    path: str
    said: str
    took: str
    good: Run | None
    next_at: datetime | None
    overdue: bool
    paused: bool

    @property
    def failed(self) -> bool:
        return self.run is not None and self.run.status == Run.Status.FAILED


@dataclass(frozen=True, slots=True)
class FailedTask:
    """A task of the week that did not come to its end, why, and how to try again."""

    name: str
    path: str
    status: str
    error: str
    act: str = ""
    act_path: str = ""


@dataclass(frozen=True, slots=True)
class Spending:
    protocol: str
    spent: Decimal
    cap: Decimal
    path: str

    @property
    def part(self) -> Decimal:
        return self.spent / self.cap if self.cap else Decimal(1)

    @property
    def tone(self) -> str:
        return "bad" if self.part >= 1 else "warn" if self.part >= NEARLY else "good"


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    rows: int
    added: int | None


@dataclass(slots=True)
class Desk:
    """Everything the page shows, for the instant `at` of the arena and `now` of the real clock."""

    at: datetime
    now: datetime
    week_start: datetime
    concerns: list[Concern] = field(default_factory=list)
    jobs: list[JobLine] = field(default_factory=list)
    cohort: Cohort | None = None
    decided: dict[str, int] = field(default_factory=dict)
    answered: dict[str, int] = field(default_factory=dict)
    failures: list[FailedTask] = field(default_factory=list)
    spending: list[Spending] = field(default_factory=list)
    waiting: list[Market] = field(default_factory=list)
    stale: list[Outcome] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    unsent: int = 0
    workers: list[Worker] = field(default_factory=list)
    queued: int = 0
    at_work: int = 0
    lost: int = 0
    bytes: int = 0
    tables: list[Table] = field(default_factory=list)
    proof: Run | None = None
    snapshot_at: datetime | None = None
    synced_at: datetime | None = None
    acts: list[Any] = field(default_factory=list)
    audit: Sequence[AuditEntry] = ()

    @property
    def is_calm(self) -> bool:
        return not self.concerns

    @property
    def worker_is_there(self) -> bool:
        return any(worker.is_there(self.now) for worker in self.workers)


def desk_at(at: datetime, now: datetime) -> Desk:
    """The desk: a fixed number of queries, whatever is on record."""
    week = week_start(at)
    desk = Desk(at, now, week)
    desk.jobs = _jobs(now)
    desk.cohort = Cohort.objects.filter(week_start=week).first()
    decisions = figures.decisions_of_week(at)
    elicitations = Elicitation.objects.filter(Elicitation.of_week(week))
    desk.decided, desk.answered = _by_status(decisions), _by_status(elicitations)
    desk.failures = [*_failed_decisions(decisions, now), *_failed_elicitations(elicitations, now)]
    desk.spending = [
        Spending(protocol, spent_in_week(protocol, week), settings.ARENA_SPEND_LIMIT_USD, _calls(protocol, week))
        for protocol in TASKS
    ]
    desk.waiting = list(figures.markets_awaiting().filter(closed_at__lte=at - LONG).order_by("closed_at")[: SHOWN + 1])
    desk.stale = list(
        figures.held_stale_prices()
        .select_related("market")
        .defer("market__description")
        .order_by("price_at")[: SHOWN + 1]
    )
    desk.alerts = list(figures.open_alerts()[: SHOWN + 1])
    desk.unsent = Notice.objects.filter(sent_at=None, tries__gt=0).count()
    desk.workers = list(Worker.objects.all()[:SHOWN])
    queue = OrmQ.objects.aggregate(all=Count("pk"), at_work=Count("pk", filter=Q(lock__gt=now)))
    desk.queued, desk.at_work = queue["all"] - queue["at_work"], queue["at_work"]
    desk.lost = Failure.objects.filter(stopped__gte=now - DAY).count()
    desk.bytes = figures.database_bytes()
    added = figures.rows_added(at=at, now=now)
    desk.tables = [Table(name, rows, added.get(name)) for name, rows in figures.table_rows()]
    desk.proof = figures.last_proof()
    desk.snapshot_at = Snapshot.objects.order_by("-taken_at").values_list("taken_at", flat=True).first()
    desk.synced_at = Market.objects.newest_instant()
    desk.audit = list(AuditEntry.objects.order_by("-at", "-pk")[:8])
    desk.concerns = sorted(_concerns(desk), key=lambda concern: not concern.bad)
    return desk


def _jobs(now: datetime) -> list[JobLine]:
    runs = figures.last_runs(sorted(set(COMMANDS.values())))
    schedules = {schedule.name: schedule for schedule in Schedule.objects.filter(name__in=[j.name for j in jobs.JOBS])}
    return [_job(job, runs, schedules.get(job.name), now) for job in jobs.JOBS]


def _job(job: jobs.Job, runs: dict[str, figures.LastRuns], schedule: Any, now: datetime) -> JobLine:
    kind = COMMANDS.get(job.function)
    found = runs.get(kind or "", figures.LastRuns())
    run = found.last
    paused = schedule is not None and schedule.repeats == jobs.PAUSED
    next_at = None if schedule is None or paused else schedule.next_run
    return JobLine(
        name=job.name,
        about=job.about,
        run=run,
        path=list_path(Run, kind=kind) if kind else list_path(Schedule),
        said=_said(run) if run else "",
        took=_took(run, now) if run else "",
        good=found.good,
        next_at=next_at,
        overdue=next_at is not None and next_at < now - LATE,
        paused=paused,
    )


def _said(run: Run) -> str:
    """Why it failed, or the figures of what it did that are not zero."""
    if run.status == Run.Status.FAILED:
        return run.error.partition("\n")[0] or "failed without a word"
    if not isinstance(run.summary, dict):
        return ""
    told = [
        f"{name.replace('_', ' ')} {value}"
        for name, value in run.summary.items()
        if value not in (0, None, "", "0.000000") and not isinstance(value, bool | dict | list)
    ]
    return ", ".join(told[:5])


def _took(run: Run, now: datetime) -> str:
    seconds = ((run.finished_at or now) - run.started_at).total_seconds()
    if seconds < 1:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _by_status(tasks: Any) -> dict[str, int]:
    return dict(tasks.order_by().values_list("status").annotate(n=Count("pk")))


def _unfinished(tasks: Any, now: datetime) -> Any:
    return tasks.filter(Q(status=Task.Status.MISSED) | Q(pk__in=tasks.claimable(now).values("pk"))).order_by("-pk")


def _failed_decisions(decisions: Any, now: datetime) -> Iterator[FailedTask]:
    for decision in _unfinished(decisions, now).select_related("agent__cohort")[: SHOWN + 1]:
        yield _failed(decision, str(decision.agent.display_name) + f", cohort {decision.agent.cohort.number}")


def _failed_elicitations(elicitations: Any, now: datetime) -> Iterator[FailedTask]:
    rows = _unfinished(elicitations, now).select_related("release", "sheet__question_set").defer("sheet__block")
    for elicitation in rows[: SHOWN + 1]:
        yield _failed(elicitation, f"{elicitation.release.display_name}, {elicitation.sheet}")


def _failed(task: Any, name: str) -> FailedTask:
    act, path = "", ""
    if task.status == Task.Status.CLAIMED:
        act, path = "Release", ACTS["release-claim"].path(**{task._meta.model_name: task.pk})
    elif task.status == Task.Status.FAILED and isinstance(task, Decision):
        act, path = "Retry", ACTS["retry-decision"].path(decision=task.pk)
    elif task.status == Task.Status.FAILED:
        act, path = "Retry", ACTS["forecasts"].path()
    error = task.error.partition("\n")[0] or ("its worker is gone" if task.status == Task.Status.CLAIMED else "")
    status = "dead claim" if task.status == Task.Status.CLAIMED else task.status
    return FailedTask(name, row_path(task), status, error, act, path)


def _calls(protocol: str, week: datetime) -> str:
    return list_path(ModelCall, sent_at__gte=week.isoformat(), sent_at__lt=(week + WEEK).isoformat())


def _concerns(desk: Desk) -> Iterator[Concern]:
    """What wants a person, each with the way to set it right."""
    yield from _of_the_machine(desk)
    for line in {line.run.pk: line for line in desk.jobs if line.run and line.failed}.values():
        assert line.run is not None
        yield Concern(f"{line.name}: {line.said}", row_path(line.run))
    failed = [task for task in desk.failures if task.status == "failed"]
    if failed:
        names = ", ".join(task.name for task in failed[:3]) + (" and more" if len(failed) > 3 else "")
        yield Concern(f"{_many(len(failed), 'task')} of this week failed: {names}", "#failures")
    if dead := [task for task in desk.failures if task.act == "Release"]:
        yield Concern(f"{_many(len(dead), 'claim')} whose worker is gone", "#failures", bad=False)
    if overdue := [market for market in desk.waiting if is_overdue(market, desk.at)]:
        path = ACTS["settle"].path(market=overdue[0].pk) if len(overdue) == 1 else ""
        says = f"{_many(len(overdue), 'market')} closed for over 72 hours without an end"
        yield Concern(says, "#waiting", act="Settle" if path else "", act_path=path)
    if desk.alerts:
        yield Concern(f"{_many(len(desk.alerts), 'alert')} not acknowledged", "#alerts", bad=False)
    violations = desk.proof.summary.get("violations") if desk.proof and isinstance(desk.proof.summary, dict) else None
    if desk.proof and violations:
        yield Concern(f"The ledger's last proof found {_many(violations, 'violation')}", row_path(desk.proof))
    for spending in desk.spending:
        if spending.part >= NEARLY:
            says = f"{spending.protocol}: ${spending.spent:.2f} of this week's ${spending.cap:.2f} are spent"
            yield Concern(says, spending.path, bad=spending.part >= 1)
    if desk.stale:
        yield Concern(f"{_many(len(desk.stale), 'held price')} stale", "#stale", bad=False)
    if desk.unsent:
        yield Concern(f"{_many(desk.unsent, 'alert')} could not be sent yet", list_path(Notice), bad=False)


def is_overdue(market: Market, at: datetime) -> bool:
    return market.closed_at is not None and market.closed_at <= at - figures.ALARM_AFTER


def _of_the_machine(desk: Desk) -> Iterator[Concern]:
    installed = any(line.next_at or line.paused for line in desk.jobs)
    if not settings.ARENA_DEMO:
        if not installed:
            yield Concern("No schedules are installed: nothing runs by itself", list_path(Schedule))
        elif not desk.worker_is_there:
            seen = f"since {desk.workers[0].seen_at:%d %B, %H:%M} UTC" if desk.workers else "yet"
            yield Concern(f"No worker has been seen {seen}: nothing runs by itself", "#machine")
        late = [line.name for line in desk.jobs if line.overdue]
        if late:
            yield Concern(f"Overdue: {', '.join(late)}", list_path(Schedule))
    if paused := [line.name for line in desk.jobs if line.paused]:
        resume = ACTS["resume"].path(schedule=paused)
        yield Concern(f"Paused: {', '.join(paused)}", list_path(Schedule), bad=False, act="Resume", act_path=resume)
    if desk.lost:
        says = f"{_many(desk.lost, 'job')} failed or were stopped in the last day"
        yield Concern(says, list_path(Failure), bad=False)


def _many(number: int, what: str) -> str:
    if number > SHOWN:
        return f"Over {SHOWN} {what}s"
    return f"{number} {what}{'s' if number != 1 else ''}"
