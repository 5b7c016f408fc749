"""The problems that need an operator, each with the rows that it counts and the action against it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings
from django_q.models import Failure, Schedule

from agents.models import Maintenance
from agents.services.maintenance import maintenance_line
from agents.services.settlement import OVERDUE_AFTER
from arena_site import jobs
from arena_site.dashboard.action import list_path, row_path
from arena_site.dashboard.actions import ACTIONS
from arena_site.dashboard.infrastructure import DAY, Infrastructure
from arena_site.host_claims import host_refusal
from arena_site.models import HostClaim
from markets.models import Market

if TYPE_CHECKING:
    from arena_site.dashboard.overview import Overview

NAMES_SHOWN = 3
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


def concerns(overview: "Overview") -> list[Concern]:
    """The severe ones first."""
    found = [
        *_infrastructure(overview), *_failures(overview), *_markets(overview), *_spending(overview),
        *_notices(overview.infrastructure),
    ]  # fmt: skip
    return sorted(found, key=lambda concern: not concern.severe)


def _infrastructure(overview: "Overview") -> Iterator[Concern]:
    infrastructure, panel = overview.infrastructure, overview.jobs
    if not settings.ARENA_DEMO:
        if refusal := host_refusal():
            yield Concern(refusal[0].upper() + refusal[1:], list_path(HostClaim))
        if not any(schedule.next_at or schedule.paused for schedule in panel.schedules):
            yield Concern("No schedules are installed: no job runs by itself", list_path(Schedule))
        elif not infrastructure.has_live_worker:
            workers = infrastructure.workers
            seen = f"since {workers[0].seen_at:%d %B, %H:%M} UTC" if workers else "yet"
            yield Concern(f"No worker has been seen {seen}: no job runs by itself", "#infrastructure")
        if panel.overdue:
            yield Concern(f"Overdue: {', '.join(panel.overdue)}", "#due")
    if line := maintenance_line():
        path = ACTIONS["end-maintenance"].path()
        yield Concern(line[0].upper() + line[1:], list_path(Maintenance), False, "End maintenance", path)
    if panel.paused:
        path, message = ACTIONS["resume"].path(schedule=panel.paused), f"Paused: {', '.join(panel.paused)}"
        yield Concern(message, "#due", severe=False, action="Resume", action_path=path)
    if infrastructure.disk.is_short:
        message = f"The disk is full in {_count(infrastructure.disk.days_left or 0, 'day')} at this week's growth"
        yield Concern(message, "#infrastructure")


def _failures(overview: "Overview") -> Iterator[Concern]:
    shown = overview.alerts.shown_as_concerns
    for alert in shown:
        yield Concern(alert.alert.message, row_path(alert.alert), action=alert.button, action_path=alert.path)
    for job in overview.jobs.jobs:
        is_of_venue = job.kind in VENUE_JOBS and job.kind not in overview.alerts.failed_jobs
        if job.run and job.failed and not (shown and is_of_venue):
            yield Concern(
                f"{job.name}: {job.result}", row_path(job.run), action="Run again", action_path=job.action_path
            )
    yield from _failing_functions(overview)
    for tasks in overview.tasks:
        if failed := tasks.number("failed"):
            names = [task.name for task in tasks.failed if task.status == "failed"][:NAMES_SHOWN]
            more = f" and {failed.number - len(names)} more" if failed.number > len(names) else ""
            message = f"{_count(failed.number, tasks.name)} of this week failed: {', '.join(names)}{more}"
            yield Concern(message, failed.path, action="Retry", action_path=tasks.retry_path, count=failed.number)
        if number := tasks.expired:
            message = _count(number, "expired claim")
            yield Concern(message, tasks.expired_path, severe=False, count=number)
    run = overview.last_verification
    if run and isinstance(run.summary, dict) and (violations := run.summary.get("violations")):
        yield Concern(f"The last ledger verification found {_count(violations, 'violation')}", row_path(run))
    if number := overview.alerts.count:
        message = f"{_count(number, 'alert')} not acknowledged"
        yield Concern(message, overview.alerts.path, severe=False, count=number)


def _failing_functions(overview: "Overview") -> Iterator[Concern]:
    """Jobs whose last task failed and that no failed run tells of."""
    failing = overview.infrastructure.failing
    failed_commands = {job.kind for job in overview.jobs.jobs if job.failed}
    for job in jobs.JOBS:
        task = failing.get(job.path)
        if task is not None and job.command not in failed_commands:
            message = f"{job.name}: its last run ended at {task.stopped:%d %B, %H:%M} UTC without a result"
            yield Concern(message, row_path(Failure(pk=task.pk)))
    others = sorted(failing.keys() - {job.path for job in jobs.JOBS})
    if others:
        since = (overview.now - DAY).isoformat()
        number = Failure.objects.filter(stopped__gte=since, func__in=others).count()
        message = f"{_count(number, 'job')} failed or {'was' if number == 1 else 'were'} stopped in the last day"
        path = list_path(Failure, stopped__gte=since, func__in=",".join(others))
        yield Concern(message, path, severe=False, count=number)


def _markets(overview: "Overview") -> Iterator[Concern]:
    if number := overview.overdue_count:
        path = list_path(
            Market, traded__exact=1, status__exact=Market.Status.CLOSED,
            closed_at__lte=(overview.at - OVERDUE_AFTER).isoformat(),
        )  # fmt: skip
        settle = ACTIONS["settle"].path(market=overview.unresolved_markets[0].pk)
        message = f"{_count(number, 'market')} closed for over 72 hours without a resolution"
        yield Concern(message, path, action="Settle", action_path=settle, count=number)
    if number := overview.stale_count:
        message = f"{_count(number, 'held price')} stale"
        yield Concern(message, overview.stale_path, severe=False, count=number)


def _spending(overview: "Overview") -> Iterator[Concern]:
    for spending in overview.spending:
        if spending.css_class != "good":
            message = f"{spending.protocol}: ${spending.spent:.2f} of this week's ${spending.cap:.2f} are spent"
            yield Concern(message, spending.path, severe=spending.css_class == "bad")


def _notices(infrastructure: Infrastructure) -> Iterator[Concern]:
    if number := infrastructure.unsent_notices:
        message = f"{_count(number, 'alert')} could not be sent yet"
        yield Concern(message, infrastructure.unsent_path, severe=False, count=number)


def _count(number: int, noun: str) -> str:
    plural = noun if number == 1 else f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{number:,} {plural}"
