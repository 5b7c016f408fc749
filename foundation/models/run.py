"""Runs of jobs and commands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from operator import attrgetter
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Case, F, Q, Value, When
from django.utils import timezone

from foundation import run_log
from foundation.heartbeats import heartbeat
from foundation.process_names import has_ended, machine, process_name


class RunQuerySet(models.QuerySet["Run"]):
    def under_way(self, now: datetime) -> RunQuerySet:
        """Running ones whose heart beats."""
        return self.filter(status=Run.Status.RUNNING, heartbeat_at__gt=now - Run.LOST_AFTER)

    def lost(self, now: datetime) -> list[Run]:
        """Running ones that are silent or whose process has ended."""
        silent = Q(heartbeat_at__lte=now - Run.LOST_AFTER) | Q(process__startswith=machine())
        return [run for run in self.filter(silent, status=Run.Status.RUNNING).defer("log") if run.is_lost(now)]

    def as_seen(self, now: datetime) -> RunQuerySet:
        """The same rows, of which lost ones read and filter as such before anybody has marked them."""
        lost_ids = list(map(attrgetter("pk"), self.model.objects.lost(now)))
        rows = self.all()
        if lost_ids:
            state = {"status": Run.Status.LOST, "error": Run.LOST_ERROR, "finished_at": now}
            for name, value in state.items():
                field: Any = Run._meta.get_field(name)
                expression = Case(When(pk__in=lost_ids, then=Value(value)), default=F(name), output_field=field)
                rows.query.add_annotation(expression, name)  # `annotate` refuses the name of a field
        return rows

    def begin(self, kind: str, at: datetime, *, raises_alert: bool = False, can_wait: bool = False) -> Run:
        """A run of this process; `recording` lets its heart beat."""
        process = process_name(os.getpid())
        return self.create(kind=kind, at=at, raises_alert=raises_alert, can_wait=can_wait, process=process)

    @contextmanager
    def recorded(self, kind: str, at: datetime) -> Iterator[Run]:
        """Records a run of `kind` for the instant `at`; the caller fills in `summary`."""
        with self.recording(self.begin(kind, at)) as run:
            yield run

    @contextmanager
    def recording(self, run: Run) -> Iterator[Run]:
        """Lets the heart of a run beat, and stores its end. An exception marks the run as failed and propagates."""
        try:
            with heartbeat(partial(self.record_heartbeat, run.pk)), run_log.attached(run):
                yield run
        except BaseException as error:
            run.finish(failed=True, error=str(error) or type(error).__name__)
            raise
        run.finish(failed=run.status == Run.Status.FAILED, error=run.error)

    def record_heartbeat(self, pk: int) -> None:
        """Stores that a run is alive, also one that was given up as lost."""
        alive = {"status": Run.Status.RUNNING, "finished_at": None, "error": "", "heartbeat_at": timezone.now()}
        self.filter(pk=pk, status__in=(Run.Status.RUNNING, Run.Status.LOST)).update(**alive)


class Run(models.Model):
    """One invocation of a job or command: its instant, status, summary and log."""

    class Status(models.TextChoices):
        RUNNING = "running"
        SUCCEEDED = "succeeded"
        FAILED = "failed"
        LOST = "lost"

    LONGEST = timedelta(hours=6)
    """The time limit of every job."""
    LOST_AFTER = timedelta(seconds=60)
    """A running one without a heartbeat for as long is lost: its process is gone, or has stalled."""
    LOST_ERROR = "its process ended without recording a result"

    kind = models.CharField(max_length=40, help_text="The command that ran.")
    at = models.DateTimeField(help_text="The scheduled time that the run serves.")
    started_at = models.DateTimeField(default=timezone.now, help_text="Start by the real clock.")
    finished_at = models.DateTimeField(null=True, blank=True, help_text="End by the real clock; null while it runs.")
    heartbeat_at = models.DateTimeField(default=timezone.now, help_text="Wall-clock time, in replays too.")
    process = models.CharField(
        max_length=100, blank=True, default="", help_text="The machine and the number of its process."
    )
    raises_alert = models.BooleanField(default=False, help_text="Whether its failure raises an alert.")
    can_wait = models.BooleanField(default=False, help_text="Whether its failure harms nothing before the morning.")
    status = models.CharField(
        max_length=10,
        choices=Status.choices,
        default=Status.RUNNING,
        help_text="running, succeeded, failed or lost (no heartbeat for a minute).",
    )
    summary: Any = models.JSONField(
        default=dict,
        blank=True,
        encoder=DjangoJSONEncoder,
        help_text="What the run did, as the command prints it with `--json`.",
    )
    log: Any = models.JSONField(
        default=list, blank=True, help_text="Lines with `at`, `level`, `text` and the `rows` that they concern."
    )
    progress: Any = models.JSONField(default=dict, blank=True, help_text="Progress: `done`, `of` and a `caption`.")
    error = models.TextField(blank=True, help_text="Why it failed; null otherwise.")

    objects = RunQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["kind", "-started_at"], name="run_by_kind_and_start"),
            models.Index(fields=["started_at", "id"], name="run_by_start"),
            models.Index(fields=["at", "id"], name="run_by_instant"),
            models.Index(fields=["heartbeat_at"], condition=Q(status="running"), name="run_under_way"),
        ]
        ordering = ["-started_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.kind} {self.at:%Y-%m-%d %H:%M} {self.status}"

    def finish(self, *, failed: bool, error: str = "") -> None:
        self.status = self.Status.FAILED if failed else self.Status.SUCCEEDED
        self.error = error
        self.finished_at = self.heartbeat_at = timezone.now()
        self.save()

    def is_lost(self, now: datetime) -> bool:
        """True of a running one that is silent, or whose process is known to have ended."""
        return self.heartbeat_at <= now - self.LOST_AFTER or has_ended(self.process)

    @property
    def log_texts(self) -> list[str]:
        """The lines of the log without their times."""
        return run_log.line_texts(self.log)
