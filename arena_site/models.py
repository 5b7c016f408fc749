"""What the doors themselves keep."""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import F, Q

from markets.models import Alert


class Tally(models.Model):
    """How often one client did one thing in one window of time; of no use once the window has ended."""

    thing = models.CharField(max_length=20)
    client = models.CharField(max_length=50)
    ends = models.BigIntegerField(db_index=True, help_text="End of the window, in seconds since 1970.")
    count = models.BigIntegerField()

    class Meta:
        verbose_name_plural = "tallies"
        constraints = [
            models.UniqueConstraint(fields=["thing", "client", "ends"], name="one_tally_per_thing_client_and_window")
        ]

    def __str__(self) -> str:
        return f"{self.thing} by {self.client}: {self.count}"


class AuditEntry(models.Model):
    """One act of an operator, or one that was refused: who, when, why, and what it changed. Written once, for ever."""

    class Result(models.TextChoices):
        DONE = "done"
        UNCHANGED = "unchanged", "nothing to change"
        REFUSED = "refused", "not permitted"

    at = models.DateTimeField(help_text="On the real clock.", db_index=True)
    by = models.CharField(max_length=150, help_text="The name of the account.")
    act = models.CharField(max_length=40)
    target = models.CharField(max_length=200, blank=True, help_text="What it was done to.")
    path = models.CharField(max_length=200, blank=True, help_text="Where that is in the admin.")
    reason = models.TextField(blank=True)
    result = models.CharField(max_length=10, choices=Result.choices)
    message = models.TextField(blank=True, help_text="What the operator was told.")
    asked: Any = models.JSONField(default=dict, encoder=DjangoJSONEncoder, help_text="The form as it was sent.")
    before: Any = models.JSONField(default=dict, encoder=DjangoJSONEncoder)
    after: Any = models.JSONField(default=dict, encoder=DjangoJSONEncoder)

    class Meta:
        verbose_name_plural = "audit log"
        default_permissions = ("view",)
        permissions = [
            ("run_jobs", "Can have jobs run, tasks retried and archives built"),
            ("settle_markets", "Can settle and cancel markets by hand, and reverse a settlement"),
            ("tend_schedules", "Can pause and resume schedules"),
            ("acknowledge_alerts", "Can acknowledge alerts"),
            ("withdraw_families", "Can withdraw families from future cohorts"),
            ("keep_tokens", "Can make and revoke operators' API tokens"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(result="refused") | ~Q(reason=""), name="an_act_has_a_reason"),
        ]
        indexes = [models.Index(fields=["act", "-at"], name="audit_by_act_and_time")]
        ordering = ["-at", "-pk"]

    def __str__(self) -> str:
        return f"{self.act} by {self.by}, {self.result}"


class OperatorToken(models.Model):
    """Leave for a program to do one thing over the API in an operator's name. The token is kept as a hash alone."""

    class Scope(models.TextChoices):
        EXPORTS = "exports", "have archives built"
        JOBS = "jobs", "have jobs run"

    class State(models.TextChoices):
        LIVE = "live"
        EXPIRED = "expired"
        REVOKED = "revoked"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="operator_tokens")
    name = models.CharField(max_length=60, help_text="What uses it.")
    scope = models.CharField(max_length=10, choices=Scope.choices)
    token_sha256 = models.CharField(max_length=64, unique=True)
    made_at = models.DateTimeField(help_text="On the real clock, as all times of a token.")
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, help_text="To the minute.")

    class Meta:
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["name"], condition=Q(revoked_at=None), name="one_token_in_force_per_name"),
            models.CheckConstraint(condition=Q(expires_at__gt=F("made_at")), name="a_token_expires_after_it_was_made"),
        ]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.name} of {self.owner}"

    def state(self, now: datetime) -> str:
        if self.revoked_at is not None:
            return self.State.REVOKED
        return self.State.EXPIRED if self.expires_at is not None and self.expires_at <= now else self.State.LIVE


class Worker(models.Model):
    """A machine whose worker waits at the queue, and when it last did."""

    GONE_AFTER = timedelta(minutes=2)
    """One that has not been seen for so long is not there."""

    name = models.CharField(max_length=100, unique=True, help_text="The machine's.")
    seen_at = models.DateTimeField(help_text="On the real clock.")

    class Meta:
        default_permissions = ("view",)
        ordering = ["-seen_at"]

    def __str__(self) -> str:
        return self.name

    def is_there(self, now: datetime) -> bool:
        return self.seen_at > now - self.GONE_AFTER


class Notice(models.Model):
    """An alert on its way out by one channel: tried until it is sent, sent once."""

    class Channel(models.TextChoices):
        MAIL = "mail"
        WEBHOOK = "webhook"

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="notices")
    channel = models.CharField(max_length=10, choices=Channel.choices)
    tries = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(help_text="On the real clock.")
    sent_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True, help_text="What the last try came to.")

    class Meta:
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["alert", "channel"], name="one_notice_per_alert_and_channel")]
        indexes = [models.Index(fields=["next_try_at"], condition=Q(sent_at=None), name="notice_to_send")]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.alert} by {self.channel}"
