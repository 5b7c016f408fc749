"""Runs that failed or were lost, and their alerts."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import F, Q

from markets.foundation.http import Traffic
from markets.foundation.process_names import machine
from markets.models import Run, VenueTraffic
from markets.services.alerts import clear_alert, raise_alert
from markets.services.cache_versions import Scope, lock_scope

JOB_FAILED = "job-failed"
VENUE_OF_SERVICE = {"gamma": "polymarket", "clob": "polymarket", "kalshi": "kalshi"}
CAN_WAIT = frozenset({"backfill_leaderboards", "compute_scores", "prune", "reconcile_costs"})
"""Commands whose failure harms nothing before the morning."""
LOST = "its process ended without recording a result"


def begin_run(kind: str, at: datetime, *, raises_alert: bool, alone: bool, now: datetime) -> tuple[Run, bool]:
    """A new run; or, where it must be `alone`, the one of its kind that is under way. True if it is new."""
    if not alone:
        return Run.objects.begin(kind, at, raises_alert=raises_alert), True
    with transaction.atomic():
        lock_scope(Scope.COMPETITION)  # two that begin at once: one sees the other
        other = Run.objects.under_way(now).filter(kind=kind).defer("log").first()
        return (other, False) if other else (Run.objects.begin(kind, at, raises_alert=raises_alert), True)


def mark_lost_runs(*, now: datetime) -> int:
    """Marks as lost the running ones that are silent or whose process has ended.

    One that is alive after all overwrites that.
    """
    running = Run.objects.filter(status=Run.Status.RUNNING)
    of_machine = Q(process__startswith=machine())
    lost = 0
    for run in running.filter(of_machine | Q(heartbeat_at__lte=now - Run.LOST_AFTER)).defer("log"):
        unchanged = running.filter(pk=run.pk, heartbeat_at=run.heartbeat_at)
        if run.is_lost(now) and unchanged.update(status=Run.Status.LOST, finished_at=now, error=LOST):
            lost += 1
            if run.raises_alert:
                alert_failed_run(run, [f"lost: {LOST}"], at=now)
    return lost


def alert_failed_run(run: Run, failures: Sequence[str], *, at: datetime, path: str = "", remedy: str = "") -> None:
    """Raises the alert of a command whose run failed. It is cleared by the command's next success."""
    reason = failures[0].partition("\n")[0] if failures else "failed without a message"
    more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    raise_alert(
        kind=JOB_FAILED,
        items={run.kind: f"{run.kind} for {run.at:%Y-%m-%d %H:%M}"},
        message=f"{run.kind} failed: {reason}{more}",
        at=at,
        path=path or f"/admin/markets/run/{run.pk}/change/",
        remedy=remedy or f"Read the run's log, remove the cause, then run it again: manage.py {run.kind}",
        urgent=run.kind not in CAN_WAIT,
    )


def store_venue_traffic(traffic: Mapping[str, Traffic]) -> None:
    """Adds a run's requests, by service, to those of the venues."""
    by_venue: defaultdict[str, Traffic] = defaultdict(Traffic)
    for service, counted in traffic.items():
        if venue := VENUE_OF_SERVICE.get(service):
            by_venue[venue].requests += counted.requests
            by_venue[venue].failures += counted.failures
            by_venue[venue].seconds += counted.seconds
    for venue, total in by_venue.items():
        VenueTraffic.objects.bulk_create([VenueTraffic(venue=venue)], ignore_conflicts=True)
        VenueTraffic.objects.filter(venue=venue).update(
            requests=F("requests") + total.requests,
            failures=F("failures") + total.failures,
            latency_s=total.seconds / total.requests,
        )


def clear_failed_run(run: Run, *, at: datetime) -> None:
    clear_alert(JOB_FAILED, [run.kind], at=at)
