"""Runs that failed or were lost, and their alerts."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db.models import F

from markets.foundation.http import Traffic
from markets.models import Run, VenueTraffic
from markets.services.alerts import clear_alert, raise_alert

JOB_FAILED = "job-failed"
VENUE_OF_SERVICE = {"gamma": "polymarket", "clob": "polymarket", "kalshi": "kalshi"}
LOST = "its process ended without recording a result"


def mark_lost_runs(*, now: datetime) -> int:
    """Marks as lost the running ones without a heartbeat; one that is alive after all overwrites that."""
    silent = Run.objects.filter(status=Run.Status.RUNNING, heartbeat_at__lte=now - Run.LOST_AFTER)
    lost = 0
    for run in silent.defer("log"):
        if silent.filter(pk=run.pk).update(status=Run.Status.LOST, finished_at=now, error=LOST):
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
