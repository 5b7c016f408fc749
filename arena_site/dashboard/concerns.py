"""The problems that the dashboard lists: what its panels show to need an operator, and the open alerts besides."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from operator import attrgetter

from django.conf import settings
from django_q.models import Failure, Schedule

from agents.account_errors import KEY_LIMIT
from agents.models import Maintenance, RunSetting
from agents.services.credit_alerts import CREDITS_LOW
from agents.services.lineups import PROPOSED_ALERT
from agents.services.release_check import UNUSABLE_ALERT
from agents.services.run_settings import maintenance_line
from agents.services.settlement import OVERDUE_ALERT
from agents.services.task_alerts import FAILED
from arena_site import jobs
from arena_site.dashboard.action import list_path, row_path
from arena_site.dashboard.actions import ACTIONS
from arena_site.dashboard.actions.maintenance import SendTestAlert
from arena_site.dashboard.alert_panel import OpenAlert
from arena_site.dashboard.causes import SPEND_CAP, is_explained
from arena_site.dashboard.infrastructure import DAY
from arena_site.dashboard.overview import Overview
from arena_site.models import HostClaim
from arena_site.operations.conditions import DISK_LOW, SPEND_HIGH, Occurrence, OperatingCondition
from arena_site.operations.host_claims import host_refusal
from arena_site.operations.worker_watch import NO_WORKER
from foundation.services.runs import JOB_FAILED
from markets.models import Market
from markets.services.venue_health import PRICES_STALE, VENUE_DOWN

MODEL_JOBS = ("run_decisions", "run_forecasts", "reconcile_costs")
"""Commands that fail with the tasks that they ask, or for the same reason."""
SINGLE_DECISION = "arena_site.jobs.decision"
"""The function of one agent's retry, which runs `run_decisions` for it."""
READ_LOG = "Read why, remove the cause, then run it again."
ACCOUNT_CAUSES = frozenset({"402", KEY_LIMIT})
"""Causes of failed tasks of which the alert about the gateway's credits tells too."""
VENUE_JOBS = ("sync_markets", "take_snapshots")
"""Commands that fail with a venue, which has an alert of its own."""


def is_without_worker(overview: Overview) -> bool:
    """Whether no job runs, so that what jobs renew is old."""
    return not settings.ARENA_DEMO and not overview.infrastructure.has_live_worker


def concerns(overview: Overview) -> list[Occurrence]:
    """The findings of every condition and the open alerts that none of them hides, the urgent ones first."""
    problems: list[Occurrence] = []
    hidden = {SendTestAlert.KIND}
    for condition in CONDITIONS:
        findings = list(condition.find(overview))
        problems += [_complete(finding, condition) for finding in findings]
        hidden.update((condition.kind, *condition.hides) if findings else ())
    problems += [_alert_finding(row) for row in overview.alerts.alerts if row.alert.kind not in hidden]
    problems += _older_alerts(overview)
    return sorted(problems, key=attrgetter("urgent"), reverse=True)


def _complete(finding: Occurrence, condition: OperatingCondition) -> Occurrence:
    """The finding with what its condition says of it."""
    return replace(
        finding,
        urgent=condition.is_urgent([finding]),
        remedy=finding.remedy or condition.remedy,
        button=finding.button or condition.button,
        action_path=finding.action_path or (ACTIONS[condition.action].path() if condition.action else ""),
    )


# ── the installation ──────────────────────────────────────────────────────────────────────────────


def find_refused_host(overview: Overview) -> Iterator[Occurrence]:
    if not settings.ARENA_DEMO and (refusal := host_refusal()):
        yield Occurrence(refusal[0].upper() + refusal[1:], path=list_path(HostClaim))


def find_missing_workers(overview: Overview) -> Iterator[Occurrence]:
    """Nobody who runs jobs: no schedules, else no worker."""
    workers, overdue = overview.infrastructure.workers, overview.jobs.overdue
    if settings.ARENA_DEMO:
        return
    if not _has_schedules(overview):
        remedy = "Install them: manage.py install_schedules."
        yield Occurrence("No schedules are installed: no job runs by itself", path=list_path(Schedule), remedy=remedy)
    elif is_without_worker(overview):
        absence = f"since {workers[0].seen_at:%d %B, %H:%M} UTC" if workers else "yet"
        names = f" (overdue: {', '.join(overdue)})" if overdue else ""
        message = f"No worker has been seen {absence}: no job runs by itself{names}"
        yield Occurrence(message, path="#infrastructure")


def find_overdue_jobs(overview: Overview) -> Iterator[Occurrence]:
    """Jobs that wait although a worker is alive."""
    overdue = overview.jobs.overdue
    if overdue and not settings.ARENA_DEMO and not is_without_worker(overview) and _has_schedules(overview):
        yield Occurrence(f"Overdue: {', '.join(overdue)}", path="#due")


def _has_schedules(overview: Overview) -> bool:
    return any(schedule.next_at or schedule.paused for schedule in overview.jobs.schedules)


def find_maintenance(overview: Overview) -> Iterator[Occurrence]:
    if line := maintenance_line():
        yield Occurrence(line[0].upper() + line[1:], path=list_path(Maintenance))


def find_paused_schedules(overview: Overview) -> Iterator[Occurrence]:
    if paused := overview.jobs.paused:
        path = ACTIONS["resume"].path(schedule=paused)
        yield Occurrence(f"Paused: {', '.join(paused)}", path="#due", action_path=path)


def find_paused_models(overview: Overview) -> Iterator[Occurrence]:
    """Protocols, conditions of prompts and models that an operator paused."""
    if pauses := overview.pauses:
        path = list_path(RunSetting, paused__exact=1)
        yield Occurrence(f"Paused: {', '.join(map(str, pauses))}", path=path, count=len(pauses))


def find_short_disk(overview: Overview) -> Iterator[Occurrence]:
    disk = overview.infrastructure.disk
    if disk.is_short:
        message = f"The disk is full in {_count(disk.days_left or 0, 'day')} at this week's growth"
        yield Occurrence(message, path="#infrastructure")


def find_unsent_notices(overview: Overview) -> Iterator[Occurrence]:
    if number := overview.infrastructure.unsent_notices:
        message = f"{_count(number, 'alert')} could not be sent yet"
        yield Occurrence(message, path=overview.infrastructure.unsent_path, count=number)


# ── jobs and tasks ────────────────────────────────────────────────────────────────────────────────


def find_failed_jobs(overview: Overview) -> Iterator[Occurrence]:
    """Jobs whose last run failed for a reason that neither a venue's alert nor a failed task tells."""
    has_venue_alerts = bool(overview.alerts.of_venues())
    for job in overview.jobs.jobs:
        is_of_venue = job.kind in VENUE_JOBS and job.kind not in overview.alerts.failed_jobs
        is_of_tasks = job.kind in MODEL_JOBS and job.run is not None and is_explained(job.run.error, overview.causes)
        if job.run and job.failed and not (has_venue_alerts and is_of_venue) and not is_of_tasks:
            yield Occurrence(f"{job.name}: {job.result}", path=row_path(job.run), action_path=job.action_path)


def find_tasks_of_refused_account(overview: Overview) -> Iterator[Occurrence]:
    return _failed_tasks(overview, ACCOUNT_CAUSES)


def find_tasks_at_the_cap(overview: Overview) -> Iterator[Occurrence]:
    return _failed_tasks(overview, {SPEND_CAP})


def find_failed_tasks(overview: Overview) -> Iterator[Occurrence]:
    """Tasks that failed for a cause other than the account and the cap."""
    return _failed_tasks(overview, {cause.key for cause in overview.causes} - ACCOUNT_CAUSES - {SPEND_CAP})


def _failed_tasks(overview: Overview, keys: Collection[str]) -> Iterator[Occurrence]:
    """One for each of these causes, whatever its number of tasks, protocols, runs and alerts."""
    for cause in overview.causes:
        if cause.key not in keys:
            continue
        counts = " and ".join(_count(number, tasks.name) for tasks, number in cause.counts)
        text, (button, action_path) = cause.text or "Without a message", cause.action
        message = f"{text}: {counts} of this week failed ({cause.names})"
        yield Occurrence(
            message, path=cause.path, count=cause.number, button=button, action_path=action_path, remedy=cause.remedy
        )


def find_interrupted_tasks(overview: Overview) -> Iterator[Occurrence]:
    for tasks in overview.tasks:
        if number := tasks.expired:
            message = f"{_count(number, tasks.name)} {'was' if number == 1 else 'were'} interrupted: its worker died"
            yield Occurrence(message, path=tasks.expired_path, count=number)


def find_violations(overview: Overview) -> Iterator[Occurrence]:
    run = overview.last_verification
    if run and isinstance(run.summary, dict) and (violations := run.summary.get("violations")):
        yield Occurrence(f"The last ledger verification found {_count(violations, 'violation')}", path=row_path(run))


def find_failing_functions(overview: Overview) -> Iterator[Occurrence]:
    """Jobs whose last task failed and that no failed run tells of."""
    failing = dict(overview.infrastructure.failing)
    failed_commands = {job.kind for job in overview.jobs.jobs if job.failed}
    if "run_decisions" in failed_commands:
        failing.pop(SINGLE_DECISION, None)
    for job in jobs.JOBS:
        task = failing.get(job.path)
        if task is not None and job.command not in failed_commands:
            message = f"{job.name}: its last run ended at {task.stopped:%d %B, %H:%M} UTC without a result"
            yield Occurrence(message, path=row_path(Failure(pk=task.pk)))
    functions = sorted(failing.keys() - jobs.JOBS_BY_PATH.keys())
    if functions:
        since = (overview.now - DAY).isoformat()
        number = Failure.objects.filter(stopped__gte=since, func__in=functions).count()
        message = f"{_count(number, 'job')} failed or {'was' if number == 1 else 'were'} stopped in the last day"
        path = list_path(Failure, stopped__gte=since, func__in=",".join(functions))
        yield Occurrence(message, path=path, count=number, urgent=False)


# ── venues, markets, line-up and costs ────────────────────────────────────────────────────────────


def find_venue_alerts(overview: Overview) -> Iterator[Occurrence]:
    """One for each venue; without a worker stale prices are no fault of it."""
    for rows in overview.alerts.of_venues():
        if rows[0].alert.kind != PRICES_STALE or not is_without_worker(overview):
            yield _alert_finding(rows[0])


def find_overdue_markets(overview: Overview) -> Iterator[Occurrence]:
    if number := overview.overdue_count:
        path = list_path(Market, preset="closed-72h")
        settle = ACTIONS["settle"].path(market=overview.unresolved_markets[0].pk)
        message = f"{_count(number, 'market')} closed or unreadable for over 72 hours without a resolution"
        yield Occurrence(message, path=path, count=number, action_path=settle)


def find_stale_prices(overview: Overview) -> Iterator[Occurrence]:
    if (number := overview.stale_count) and not overview.alerts.of_venues():
        yield Occurrence(f"{_count(number, 'held price')} stale", path=overview.stale_path, count=number)


def find_unusable_releases(overview: Overview) -> Iterator[Occurrence]:
    """Releases that no cohort can use, with the line-up that is proposed in their place."""
    unusable, proposals = overview.alerts.of_kind(UNUSABLE_ALERT), overview.alerts.of_kind(PROPOSED_ALERT)
    if unusable and proposals:
        yield replace(_alert_finding(unusable[0]), button=proposals[0].button, action_path=proposals[0].path)


def find_high_spending(overview: Overview) -> Iterator[Occurrence]:
    """Caps that stop or soon stop a protocol's spending, unless tasks that failed at the cap tell so."""
    stopped = {tasks.protocol for cause in overview.causes if cause.key == SPEND_CAP for tasks, _ in cause.counts}
    for spending in overview.spending:
        week = spending.week
        if week.is_near and week.protocol not in stopped:
            set_cap = ACTIONS["set-cap"].path(protocol=week.protocol)
            yield Occurrence(
                f"{week.protocol}: {week.amounts} are spent{week.booked_part}", path=spending.path,
                button="Reconcile" if week.booked else "Change the cap", remedy=week.remedy,
                action_path=ACTIONS["reconcile_costs"].path() if week.booked else set_cap,
                urgent=week.is_reached,
            )  # fmt: skip


# ── alerts ────────────────────────────────────────────────────────────────────────────────────────


def _alert_finding(row: OpenAlert) -> Occurrence:
    """An alert as a problem: with the action against its cause, else that by which a person ends it."""
    alert = row.alert
    return Occurrence(
        alert.message, path=row_path(alert), button=row.button or "Acknowledge", remedy=alert.remedy,
        action_path=row.path or ACTIONS["acknowledge"].path(alert=alert.pk), urgent=alert.urgent,
    )  # fmt: skip


def _older_alerts(overview: Overview) -> Iterator[Occurrence]:
    number, path = overview.alerts.older()
    if number:
        message, remedy = f"{_count(number, 'older alert')} not acknowledged", "Each names its own remedy."
        yield Occurrence(message, path=path, count=number, remedy=remedy, urgent=False)


CONDITIONS = (
    OperatingCondition("host-refused", find_refused_host),
    OperatingCondition(NO_WORKER, find_missing_workers, "Start one: manage.py arena, or restart its service.",
        hides=(PRICES_STALE,)),
    OperatingCondition("jobs-overdue", find_overdue_jobs,
        "A worker is alive but does not take it: look at the queue, then restart its service."),
    OperatingCondition("maintenance", find_maintenance, button="End maintenance", action="end-maintenance",
        urgent=False),
    OperatingCondition("schedules-paused", find_paused_schedules, button="Resume", urgent=False),
    OperatingCondition("models-paused", find_paused_models, button="Resume", action="resume-models", urgent=False),
    OperatingCondition(DISK_LOW, find_short_disk,
        "Make room, or move backups, archives or the database to a larger disk."),
    OperatingCondition(VENUE_DOWN, find_venue_alerts, hides=(PRICES_STALE,)),
    OperatingCondition(JOB_FAILED, find_failed_jobs, READ_LOG, button="Run again"),
    OperatingCondition("job-without-result", find_failing_functions, READ_LOG),
    OperatingCondition(FAILED, find_tasks_of_refused_account, hides=(CREDITS_LOW, JOB_FAILED)),
    OperatingCondition(FAILED, find_tasks_at_the_cap, hides=(SPEND_HIGH, JOB_FAILED)),
    OperatingCondition(FAILED, find_failed_tasks, hides=(JOB_FAILED,)),
    OperatingCondition("tasks-interrupted", find_interrupted_tasks,
        "The next run asks again; Release lets you retry at once.", urgent=False),
    OperatingCondition("ledger-violations", find_violations,
        "Its log names each row: manage.py rebuild_derived mends derived ones, a backup has the others."),
    OperatingCondition(UNUSABLE_ALERT, find_unusable_releases, hides=(PROPOSED_ALERT,)),
    OperatingCondition(OVERDUE_ALERT, find_overdue_markets, button="Settle"),
    OperatingCondition("held-prices-stale", find_stale_prices,
        "Nothing, unless it lasts: the next price that is accepted ends it.", urgent=False),
    OperatingCondition(SPEND_HIGH, find_high_spending),
    OperatingCondition("notices-unsent", find_unsent_notices,
        "Each names why: correct its channel's setting and restart; it is tried again until it arrives.",
        urgent=False),
)  # fmt: skip
"""In the order in which the dashboard lists what is equally urgent."""


def _count(number: int, noun: str) -> str:
    plural = noun if number == 1 else f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{number:,} {plural}"
