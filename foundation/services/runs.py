"""Runs that failed or were lost, their alerts, and what apps record of every run."""

from collections.abc import Callable, Sequence
from datetime import datetime

from django.db import transaction

from foundation.locks import lock_name
from foundation.models import Run
from foundation.services.alerts import clear_alert, raise_alert

JOB_FAILED = "job-failed"


def begin_run(
    kind: str, at: datetime, *, alone: bool, now: datetime, raises_alert: bool = False, can_wait: bool = False
) -> tuple[Run, bool]:
    """A new run; or, where it must be `alone`, the one of its kind that is under way. True if it is new."""
    with transaction.atomic():
        if alone:
            lock_name("run")  # two that begin at once: one sees the other
            run = Run.objects.under_way(now).filter(kind=kind).defer("log").first()
            if run:
                return run, False
        return Run.objects.begin(kind, at, raises_alert=raises_alert, can_wait=can_wait), True


def mark_lost_runs(*, now: datetime) -> int:
    """Marks as lost the running ones that are silent or whose process has ended.

    One that is alive after all overwrites that.
    """
    running = Run.objects.filter(status=Run.Status.RUNNING)
    number = 0
    for run in Run.objects.lost(now):
        unchanged = running.filter(pk=run.pk, heartbeat_at=run.heartbeat_at)
        if unchanged.update(status=Run.Status.LOST, finished_at=now, error=Run.LOST_ERROR):
            number += 1
            if run.raises_alert:
                alert_failed_run(run, [f"lost: {Run.LOST_ERROR}"], at=now)
    return number


def alert_failed_run(run: Run, failures: Sequence[str], *, at: datetime, path: str = "", remedy: str = "") -> None:
    """Raises the alert of a command whose run failed. It is cleared by the command's next success."""
    reason = failures[0].partition("\n")[0] if failures else "failed without a message"
    more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    raise_alert(
        kind=JOB_FAILED,
        items={run.kind: f"{run.kind} for {run.at:%Y-%m-%d %H:%M}"},
        message=f"{run.kind} failed: {reason}{more}",
        at=at,
        path=path or f"/admin/foundation/run/{run.pk}/change/",
        remedy=remedy or f"Read the run's log, remove the cause, then run it again: manage.py {run.kind}",
        urgent=not run.can_wait,
    )


def clear_failed_run(run: Run, *, at: datetime) -> None:
    clear_alert(JOB_FAILED, [run.kind], at=at)


recorders: list[Callable[[], None]] = []
"""Called at the end of a run that ended by itself; apps add theirs when they are ready."""
