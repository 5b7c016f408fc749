"""Tables of the site itself: the audit log, workers, the host and notices."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q

from foundation.row_hashes import RowHashField


class AuditEntry(models.Model):
    """An operator's action or a refused attempt, with its reason and its effect. Append-only."""

    class Result(models.TextChoices):
        DONE = "done"
        UNCHANGED = "unchanged", "nothing to change"
        REFUSED = "refused", "not permitted"

    at = models.DateTimeField(help_text="Wall-clock time, in replays too.", db_index=True)
    by = models.CharField(max_length=150, help_text="The name of the account.")
    action = models.CharField(max_length=40)
    target = models.CharField(max_length=200, blank=True, help_text="Rows that the action concerns.")
    path = models.CharField(max_length=200, blank=True, help_text="The target's page in the admin.")
    reason = models.TextField(blank=True)
    result = models.CharField(max_length=10, choices=Result.choices)
    message = models.TextField(blank=True, help_text="Message shown to the operator.")
    form_data: Any = models.JSONField(default=dict, encoder=DjangoJSONEncoder)
    before: Any = models.JSONField(default=dict, encoder=DjangoJSONEncoder)
    after: Any = models.JSONField(default=dict, encoder=DjangoJSONEncoder)
    row_sha256 = RowHashField()

    class Meta:
        verbose_name_plural = "audit log"
        default_permissions = ("view",)
        permissions = [
            ("run_jobs", "Can run jobs, retry tasks and build archives"),
            ("settle_markets", "Can settle and cancel markets manually, and reverse a settlement"),
            ("manage_schedules", "Can pause and resume schedules"),
            ("acknowledge_alerts", "Can acknowledge alerts"),
            ("withdraw_families", "Can withdraw families from future cohorts"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(result="refused") | ~Q(reason=""), name="action_has_reason"),
        ]
        indexes = [models.Index(fields=["action", "-at"], name="audit_by_action_and_time")]
        ordering = ["-at", "-pk"]

    def __str__(self) -> str:
        return f"{self.action} by {self.by}, {self.result}"


class WorkerQuerySet(models.QuerySet["Worker"]):
    def alive(self, now: datetime) -> WorkerQuerySet:
        return self.filter(seen_at__gt=now - Worker.LOST_AFTER)


class Worker(models.Model):
    """The heartbeat of a worker: of one cluster of processes that run jobs."""

    LOST_AFTER = timedelta(seconds=60)

    name = models.CharField(max_length=100, unique=True, help_text="The machine's name and the cluster's process.")
    seen_at = models.DateTimeField(help_text="Wall-clock time, in replays too.")

    objects = WorkerQuerySet.as_manager()

    class Meta:
        default_permissions = ("view",)
        ordering = ["-seen_at"]

    def __str__(self) -> str:
        return self.name

    def is_alive(self, now: datetime) -> bool:
        return self.seen_at > now - self.LOST_AFTER


class HostClaim(models.Model):
    """The host whose workers may work on this database; one row at most."""

    ONLY = 1

    host_id = models.CharField(
        max_length=100, blank=True, help_text="Of ARENA_HOST_ID; empty in a restored copy, which waits for one."
    )
    machine = models.CharField(max_length=100, blank=True, help_text="The machine's name, for people.")
    claimed_at = models.DateTimeField(help_text="Wall-clock time.")

    class Meta:
        default_permissions = ("view",)
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="one_host_claim")]

    def __str__(self) -> str:
        return self.host_id or "no host"


class Backup(models.Model):
    """A backup that was written and checked. The file may have been rotated away, or moved to another place, since."""

    taken_at = models.DateTimeField(help_text="Wall-clock time.", db_index=True)
    file = models.CharField(max_length=1000, help_text="Its path on the machine that took it.")
    machine = models.CharField(max_length=100)
    bytes = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)

    class Meta:
        default_permissions = ("view",)
        ordering = ["-taken_at", "-pk"]

    def __str__(self) -> str:
        return self.file
