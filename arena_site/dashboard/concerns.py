"""The problems that need an operator, each with the rows that it counts and the action against it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter

from django.conf import settings
from django_q.models import Failure, Schedule

from agents.models import Maintenance, RunSetting
from agents.services.lineups import PROPOSED_ALERT
from agents.services.release_check import UNUSABLE_ALERT
from agents.services.run_settings import maintenance_line
from agents.services.settlement import OVERDUE_AFTER, OVERDUE_ALERT
from agents.services.task_alerts import FAILED
from arena_site import jobs
from arena_site.dashboard.action import list_path, row_path
from arena_site.dashboard.actions import ACTIONS
from arena_site.dashboard.actions.maintenance import SendTestAlert
from arena_site.dashboard.alert_panel import OpenAlert
from arena_site.dashboard.causes import SPEND_CAP, Cause, is_explained
from arena_site.dashboard.infrastructure import DAY, Infrastructure
from arena_site.dashboard.overview import Overview
from arena_site.models import HostClaim
from arena_site.operations.host_claims import host_refusal
from arena_site.operations.resource_alerts import DISK_LOW, spend_alert
from arena_site.operations.worker_watch import NO_WORKER
from foundation.services.runs import JOB_FAILED
from markets.services.venue_health import PRICES_STALE

MODEL_JOBS = ("run_decisions", "run_forecasts", "reconcile_costs")
"""Commands that fail with the tasks that they ask, or for the same reason."""
SINGLE_DECISION = "arena_site.jobs.decision"
"""The function of one agent's retry, which runs `run_decisions` for it."""
READ_LOG = "Read why, remove the cause, then run it again."
VENUE_JOBS = ("sync_markets", "take_snapshots")
"""Commands that fail with a venue, which has an alert of its own."""


@dataclass(frozen=True, slots=True)
class Concern:
    """A problem with the page that shows it, which lists `count` rows if one is given, and the action against it."""

    message: str
    path: str
    severe: bool = True
    action: str = ""
    action_path: str = ""
    count: int | None = None
    remedy: str = ""
    explains: frozenset[tuple[str, str]] = frozenset()
    """Kind and subject of the alerts that tell of the same problem."""


def is_without_worker(overview: Overview) -> bool:
    """Whether no job runs, so that what jobs renew is old."""
    return not settings.ARENA_DEMO and not overview.infrastructure.has_live_worker


def concerns(overview: Overview) -> list[Concern]:
    """The severe ones first."""
    problems = [*_infrastructure(overview), *_failures(overview), *_line_up(overview)]
    further_problems = [*_markets(overview), *_spending(overview)]
    problems += [
        *_other_alerts(overview, [*problems, *further_problems]),
        *further_problems,
        *_notices(overview.infrastructure),
    ]
    return sorted(problems, key=attrgetter("severe"), reverse=True)


def _infrastructure(overview: Overview) -> Iterator[Concern]:
    infrastructure, panel = overview.infrastructure, overview.jobs
    if not settings.ARENA_DEMO:
        if refusal := host_refusal():
            yield Concern(refusal[0].upper() + refusal[1:], list_path(HostClaim))
        if not any(schedule.next_at or schedule.paused for schedule in panel.schedules):
            remedy = "Install them: manage.py install_schedules."
            yield Concern("No schedules are installed: no job runs by itself", list_path(Schedule), remedy=remedy)
        elif not infrastructure.has_live_worker:
            workers = infrastructure.workers
            absence = f"since {workers[0].seen_at:%d %B, %H:%M} UTC" if workers else "yet"
            overdue = f" (overdue: {', '.join(panel.overdue)})" if panel.overdue else ""
            stale = set(map(attrgetter("key"), overview.alerts.of_kind(PRICES_STALE)))
            yield Concern(
                f"No worker has been seen {absence}: no job runs by itself{overdue}",
                "#infrastructure",
                remedy="Start one: manage.py arena, or restart its service.",
                explains=frozenset({(NO_WORKER, "workers"), *stale}),
            )
        elif panel.overdue:
            remedy = "A worker is alive but does not take it: look at the queue, then restart its service."
            yield Concern(f"Overdue: {', '.join(panel.overdue)}", "#due", remedy=remedy)
    if line := maintenance_line():
        path = ACTIONS["end-maintenance"].path()
        yield Concern(line[0].upper() + line[1:], list_path(Maintenance), False, "End maintenance", path)
    if panel.paused:
        path, message = ACTIONS["resume"].path(schedule=panel.paused), f"Paused: {', '.join(panel.paused)}"
        yield Concern(message, "#due", severe=False, action="Resume", action_path=path)
    if overview.pauses:
        names = ", ".join(map(str, overview.pauses))
        path = ACTIONS["resume-models"].path()
        yield Concern(f"Paused: {names}", list_path(RunSetting, paused__exact=1), severe=False, action="Resume",
            action_path=path, count=len(overview.pauses))  # fmt: skip
    if infrastructure.disk.is_short:
        message = f"The disk is full in {_count(infrastructure.disk.days_left or 0, 'day')} at this week's growth"
        remedy = "Make room, or move backups, archives or the database to a larger disk."
        yield Concern(message, "#infrastructure", remedy=remedy, explains=frozenset({(DISK_LOW, "disks")}))


def _failures(overview: Overview) -> Iterator[Concern]:
    venue_alerts = overview.alerts.of_venues()
    for rows in venue_alerts:
        if rows[0].alert.kind != PRICES_STALE or not is_without_worker(overview):
            yield _alert_concern(rows[0], explains=frozenset(map(attrgetter("key"), rows)))
    causes = overview.causes
    for job in overview.jobs.jobs:
        is_of_venue = job.kind in VENUE_JOBS and job.kind not in overview.alerts.failed_jobs
        is_of_tasks = job.kind in MODEL_JOBS and job.run is not None and is_explained(job.run.error, causes)
        if job.run and job.failed and not (venue_alerts and is_of_venue) and not is_of_tasks:
            yield Concern(
                f"{job.name}: {job.result}", row_path(job.run), action="Run again", action_path=job.action_path,
                remedy=READ_LOG, explains=frozenset({(JOB_FAILED, job.kind)}),
            )  # fmt: skip
    yield from _failing_functions(overview)
    yield from _failed_tasks(causes, overview)
    for tasks in overview.tasks:
        if number := tasks.expired:
            message = f"{_count(number, tasks.name)} {'was' if number == 1 else 'were'} interrupted: its worker died"
            remedy = "The next run asks again; Release lets you retry at once."
            yield Concern(message, tasks.expired_path, severe=False, count=number, remedy=remedy)
    run = overview.last_verification
    if run and isinstance(run.summary, dict) and (violations := run.summary.get("violations")):
        remedy = "Its log names each row: manage.py rebuild_derived mends derived ones, a backup has the others."
        message = f"The last ledger verification found {_count(violations, 'violation')}"
        yield Concern(message, row_path(run), remedy=remedy)


def _failed_tasks(causes: list[Cause], overview: Overview) -> Iterator[Concern]:
    """One for each cause, whatever its number of tasks, protocols, runs and alerts."""
    alerts = {(JOB_FAILED, command) for command in MODEL_JOBS}
    for number in range(7):
        alerts.add((FAILED, f"{overview.week_start + number * DAY:%Y-%m-%d}"))
    for cause in causes:
        counts = " and ".join(_count(number, tasks.name) for tasks, number in cause.counts)
        text, (action, action_path) = cause.text or "Without a message", cause.action
        yield Concern(
            f"{text}: {counts} of this week failed ({cause.names})", cause.path, action=action,
            action_path=action_path, count=cause.number, remedy=cause.remedy,
            explains=frozenset(alerts | cause.alerts | _cap_alerts(overview, cause)),
        )  # fmt: skip


def _cap_alerts(overview: Overview, cause: Cause) -> set[tuple[str, str]]:
    """The alerts about the spend caps at which tasks failed."""
    if cause.key != SPEND_CAP:
        return set()
    return {spend_alert(tasks.protocol, overview.week_start) for tasks, _ in cause.counts}


def _line_up(overview: Overview) -> Iterator[Concern]:
    """Releases that no cohort can use, with the line-up that is proposed in their place."""
    unusable, proposals = overview.alerts.of_kind(UNUSABLE_ALERT), overview.alerts.of_kind(PROPOSED_ALERT)
    if unusable and proposals:
        concern = _alert_concern(unusable[0], frozenset(map(attrgetter("key"), [*unusable, *proposals])))
        yield replace(concern, action=proposals[0].button, action_path=proposals[0].path)


def _other_alerts(overview: Overview, problems: Iterable[Concern]) -> Iterator[Concern]:
    """The open alerts that tell of none of the problems found already."""
    explained = frozenset[tuple[str, str]]().union(*map(attrgetter("explains"), problems))
    for row in overview.alerts.alerts:
        if row.key not in explained and row.alert.kind != SendTestAlert.KIND:
            yield _alert_concern(row)
    number, path = overview.alerts.older()
    if number:
        message, remedy = f"{_count(number, 'older alert')} not acknowledged", "Each names its own remedy."
        yield Concern(message, path, severe=False, count=number, remedy=remedy)


def _alert_concern(row: OpenAlert, explains: frozenset[tuple[str, str]] = frozenset()) -> Concern:
    """An alert as a problem: with the action against its cause, else that by which a person ends it."""
    acknowledge = ACTIONS["acknowledge"].path(alert=row.alert.pk)
    return Concern(
        row.alert.message, row_path(row.alert), row.alert.urgent, row.button or "Acknowledge", row.path or acknowledge,
        remedy=row.alert.remedy, explains=explains,
    )  # fmt: skip


def _failing_functions(overview: Overview) -> Iterator[Concern]:
    """Jobs whose last task failed and that no failed run tells of."""
    failing = dict(overview.infrastructure.failing)
    failed_commands = {job.kind for job in overview.jobs.jobs if job.failed}
    if "run_decisions" in failed_commands:
        failing.pop(SINGLE_DECISION, None)
    for job in jobs.JOBS:
        task = failing.get(job.path)
        if task is not None and job.command not in failed_commands:
            message = f"{job.name}: its last run ended at {task.stopped:%d %B, %H:%M} UTC without a result"
            yield Concern(message, row_path(Failure(pk=task.pk)), remedy=READ_LOG)
    functions = sorted(failing.keys() - jobs.JOBS_BY_PATH.keys())
    if functions:
        since = (overview.now - DAY).isoformat()
        number = Failure.objects.filter(stopped__gte=since, func__in=functions).count()
        message = f"{_count(number, 'job')} failed or {'was' if number == 1 else 'were'} stopped in the last day"
        path = list_path(Failure, stopped__gte=since, func__in=",".join(functions))
        yield Concern(message, path, severe=False, count=number, remedy=READ_LOG)


def _markets(overview: Overview) -> Iterator[Concern]:
    if number := overview.overdue_count:
        path = overview.unresolved_list(OVERDUE_AFTER)
        settle = ACTIONS["settle"].path(market=overview.unresolved_markets[0].pk)
        message = f"{_count(number, 'market')} closed for over 72 hours without a resolution"
        alerts = frozenset(map(attrgetter("key"), overview.alerts.of_kind(OVERDUE_ALERT)))
        yield Concern(message, path, action="Settle", action_path=settle, count=number, explains=alerts)
    if (number := overview.stale_count) and not overview.alerts.of_venues():
        message = f"{_count(number, 'held price')} stale"
        remedy = "Nothing, unless it lasts: the next price that is accepted ends it."
        yield Concern(message, overview.stale_path, severe=False, count=number, remedy=remedy)


def _spending(overview: Overview) -> Iterator[Concern]:
    """Caps that stop or soon stop a protocol's spending, unless tasks that failed at the cap tell so."""
    stopped = {tasks.protocol for cause in overview.causes if cause.key == SPEND_CAP for tasks, _ in cause.counts}
    for spending in overview.spending:
        if spending.css_class != "good" and spending.protocol not in stopped:
            message = f"{spending.protocol}: ${spending.spent:.2f} of this week's ${spending.cap:.2f} are spent"
            action, path = "Change the cap", ACTIONS["set-cap"].path(protocol=spending.protocol)
            if spending.booked:
                message += f", ${spending.booked:.2f} of it booked and not billed yet"
                action, path = "Reconcile", ACTIONS["reconcile_costs"].path()
            severe = spending.css_class == "bad"
            alerts = frozenset({spend_alert(spending.protocol, overview.week_start)})
            yield Concern(
                message, spending.path, severe=severe, action=action, action_path=path, remedy=spending.remedy,
                explains=alerts,
            )  # fmt: skip


def _notices(infrastructure: Infrastructure) -> Iterator[Concern]:
    if number := infrastructure.unsent_notices:
        message = f"{_count(number, 'alert')} could not be sent yet"
        remedy = "Each names why: correct its channel's setting and restart; it is tried again until it arrives."
        yield Concern(message, infrastructure.unsent_path, severe=False, count=number, remedy=remedy)


def _count(number: int, noun: str) -> str:
    plural = noun if number == 1 else f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{number:,} {plural}"
