"""Runs of jobs and commands, and alerts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q
from django.utils import timezone


class RunQuerySet(models.QuerySet["Run"]):
    @contextmanager
    def recorded(self, kind: str, at: datetime) -> Iterator[Run]:
        """Records a run of `kind` for the instant `at`; the caller fills in `summary` and `log`.

        An exception marks the run as failed and propagates. Lost runs of the kind are marked as failed first.
        """
        self.fail_lost(kind, now=timezone.now())
        run = self.create(kind=kind, at=at)
        try:
            yield run
        except BaseException as error:
            run.finish(failed=True, error=str(error) or type(error).__name__)
            raise
        run.finish(failed=run.status == Run.Status.FAILED, error=run.error)

    def fail_lost(self, kind: str, *, now: datetime) -> int:
        """Marks as failed the runs of `kind` that started longer ago than any run lasts; a live one overwrites that."""
        lost = self.filter(kind=kind, status=Run.Status.RUNNING, started_at__lt=now - Run.LONGEST)
        return lost.update(
            status=Run.Status.FAILED, finished_at=now, error="lost: its process ended without recording a result"
        )


class Run(models.Model):
    """One invocation of a job or command: its instant, status, summary and log."""

    class Status(models.TextChoices):
        RUNNING = "running"
        SUCCEEDED = "succeeded"
        FAILED = "failed"

    LOG_LINES = 500
    LONGEST = timedelta(hours=6)
    """The time limit of every job."""

    kind = models.CharField(max_length=40)
    at = models.DateTimeField(help_text="The instant that the run was for.")
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.RUNNING)
    summary: Any = models.JSONField(default=dict, blank=True, encoder=DjangoJSONEncoder)
    log: Any = models.JSONField(default=list, blank=True)
    error = models.TextField(blank=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["kind", "-started_at"], name="run_by_kind_and_start")]
        ordering = ["-started_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.kind} {self.at:%Y-%m-%d %H:%M} {self.status}"

    def finish(self, *, failed: bool, error: str = "") -> None:
        self.status = self.Status.FAILED if failed else self.Status.SUCCEEDED
        self.error = error
        self.finished_at = timezone.now()
        if len(self.log) > self.LOG_LINES:
            left_out = len(self.log) - self.LOG_LINES
            self.log = [*self.log[: self.LOG_LINES], f"… and {left_out} more lines"]
        self.save()


class AlertQuerySet(models.QuerySet["Alert"]):
    def raise_once(self, kind: str, subject: str, message: str, at: datetime) -> bool:
        """Raises an alert unless one of this kind and subject is open. True if it is new."""
        _, created = self.get_or_create(
            kind=kind, subject=subject, cleared_at=None, defaults={"message": message, "raised_at": at}
        )
        return created

    def clear(self, kind: str, subject: str, at: datetime) -> int:
        return self.filter(kind=kind, subject=subject, cleared_at=None).update(cleared_at=at)


class Alert(models.Model):
    """A condition that needs an operator. Open until its cause is gone or it is acknowledged."""

    kind = models.CharField(max_length=40)
    subject = models.CharField(max_length=200)
    message = models.TextField()
    raised_at = models.DateTimeField()
    cleared_at = models.DateTimeField(null=True, blank=True)

    objects = AlertQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "subject"], condition=Q(cleared_at=None), name="one_open_alert_per_subject"
            )
        ]
        ordering = ["-raised_at"]

    def __str__(self) -> str:
        return self.message
