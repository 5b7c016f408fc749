"""Where operating conditions hold, found in what the dashboard's panels have read."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from django.conf import settings
from django_q.models import Failure, Schedule

from agents.account_errors import KEY_LIMIT
from agents.models import Maintenance, RunSetting
from agents.services.lineups import PROPOSED_ALERT
from agents.services.release_check import UNUSABLE_ALERT
from agents.services.run_settings import maintenance_line
from arena_site import jobs
from arena_site.dashboard.action import action_path, list_path, row_path
from arena_site.dashboard.causes import SPEND_CAP, is_explained
from arena_site.dashboard.infrastructure import DAY
from arena_site.models import HostClaim
from arena_site.operations.condition import Occurrence
from arena_site.operations.host_claims import host_refusal
from markets.models import Market
from markets.services.venue_health import PRICES_STALE

if TYPE_CHECKING:
    from arena_site.dashboard.overview import Overview

MODEL_JOBS = ("run_decisions", "run_forecasts", "reconcile_costs")
"""Commands that fail with the tasks that they ask, or for the same reason."""
SINGLE_DECISION = "arena_site.jobs.decision"
"""The function of one agent's retry, which runs `run_decisions` for it."""
ACCOUNT_CAUSES = frozenset({"402", KEY_LIMIT})
"""Causes of failed tasks of which the alert about the gateway's credits tells too."""
VENUE_JOBS = ("sync_markets", "take_snapshots")
"""Commands that fail with a venue, which has an alert of its own."""


def is_without_worker(overview: Overview) -> bool:
    """Whether no job runs, so that what jobs renew is old."""
    return not settings.ARENA_DEMO and not overview.infrastructure.has_live_worker


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
        path = action_path("resume", schedule=paused)
        yield Occurrence(f"Paused: {', '.join(paused)}", path="#due", action_path=path)


def find_paused_models(overview: Overview) -> Iterator[Occurrence]:
    """Protocols, conditions of prompts and models that an operator paused."""
    if pauses := overview.pauses:
        path = list_path(RunSetting, paused__exact=1)
        yield Occurrence(f"Paused: {', '.join(map(str, pauses))}", path=path, count=len(pauses))


def find_short_disk(overview: Overview) -> Iterator[Occurrence]:
    disk = overview.infrastructure.disk
    if disk.is_short:
        message = f"The disk is full in {count_of(disk.days_left or 0, 'day')} at this week's growth"
        remedy = "Make room, or move backups, archives or the database to a larger disk."
        yield Occurrence(message, path="#infrastructure", remedy=remedy)


def find_unsent_notices(overview: Overview) -> Iterator[Occurrence]:
    if number := overview.infrastructure.unsent_notices:
        message = f"{count_of(number, 'alert')} could not be sent yet"
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
        counts = " and ".join(count_of(number, tasks.name) for tasks, number in cause.counts)
        text, (button, action_path) = cause.text or "Without a message", cause.action
        message = f"{text}: {counts} of this week failed ({cause.names})"
        yield Occurrence(
            message, path=cause.path, count=cause.number, button=button, action_path=action_path, remedy=cause.remedy
        )


def find_interrupted_tasks(overview: Overview) -> Iterator[Occurrence]:
    for tasks in overview.tasks:
        if number := tasks.expired:
            message = f"{count_of(number, tasks.name)} {'was' if number == 1 else 'were'} interrupted: its worker died"
            yield Occurrence(message, path=tasks.expired_path, count=number)


def find_violations(overview: Overview) -> Iterator[Occurrence]:
    run = overview.last_verification
    if run and isinstance(run.summary, dict) and (violations := run.summary.get("violations")):
        yield Occurrence(f"The last ledger verification found {count_of(violations, 'violation')}", path=row_path(run))


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
        message = f"{count_of(number, 'job')} failed or {'was' if number == 1 else 'were'} stopped in the last day"
        path = list_path(Failure, stopped__gte=since, func__in=",".join(functions))
        yield Occurrence(message, path=path, count=number, urgent=False)


# ── venues, markets, line-up and costs ────────────────────────────────────────────────────────────


def find_venue_alerts(overview: Overview) -> Iterator[Occurrence]:
    """One for each venue; without a worker stale prices are no fault of it."""
    for rows in overview.alerts.of_venues():
        if rows[0].alert.kind != PRICES_STALE or not is_without_worker(overview):
            yield rows[0].finding


def find_overdue_markets(overview: Overview) -> Iterator[Occurrence]:
    if number := overview.overdue_count:
        path = list_path(Market, preset="closed-72h")
        settle = action_path("settle", market=overview.unresolved_markets[0].pk)
        message = f"{count_of(number, 'market')} closed or unreadable for over 72 hours without a resolution"
        yield Occurrence(message, path=path, count=number, action_path=settle)


def find_stale_prices(overview: Overview) -> Iterator[Occurrence]:
    if (number := overview.stale_count) and not overview.alerts.of_venues():
        yield Occurrence(f"{count_of(number, 'held price')} stale", path=overview.stale_path, count=number)


def find_unusable_releases(overview: Overview) -> Iterator[Occurrence]:
    """Releases that no cohort can use, with the line-up that is proposed in their place."""
    unusable, proposals = overview.alerts.of_kind(UNUSABLE_ALERT), overview.alerts.of_kind(PROPOSED_ALERT)
    if unusable and proposals:
        yield replace(unusable[0].finding, button=proposals[0].button, action_path=proposals[0].path)


def find_high_spending(overview: Overview) -> Iterator[Occurrence]:
    """Caps that stop or soon stop a protocol's spending, unless tasks that failed at the cap tell so."""
    stopped = {tasks.protocol for cause in overview.causes if cause.key == SPEND_CAP for tasks, _ in cause.counts}
    for spending in overview.spending:
        week = spending.week
        if week.is_near and week.protocol not in stopped:
            set_cap = action_path("set-cap", protocol=week.protocol)
            yield Occurrence(
                f"{week.protocol}: {week.amounts} are spent{week.booked_part}", path=spending.path,
                button="Reconcile" if week.booked else "Change the cap", remedy=week.remedy,
                action_path=action_path("reconcile_costs") if week.booked else set_cap,
                urgent=week.is_reached,
            )  # fmt: skip


def count_of(number: int, noun: str) -> str:
    """The number with its noun: "1 batch", "2 batches"."""
    plural = noun if number == 1 else f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{number:,} {plural}"
