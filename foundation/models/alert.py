"""Alerts: conditions that need an operator, and the notices by which they are sent."""

from __future__ import annotations

from operator import attrgetter

from django.db import models
from django.db.models import Q

NAMES_SHOWN = 3


class AlertQuerySet(models.QuerySet["Alert"]):
    def open(self) -> AlertQuerySet:
        """Neither cleared nor acknowledged."""
        return self.filter(cleared_at=None)


class Alert(models.Model):
    """A condition that needs an operator, of one thing or of several with one cause (its items).

    Open until it is gone from the last item, or a person acknowledges it.
    """

    kind = models.CharField(max_length=40)
    subject = models.CharField(max_length=200)
    message = models.TextField()
    remedy = models.TextField(blank=True, help_text="What the operator should do.")
    path = models.CharField(max_length=200, blank=True, help_text="Page that shows the cause.")
    urgent = models.BooleanField(default=True, help_text="Critical; otherwise it can wait.")
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

    @property
    def concerned(self) -> list[AlertItem]:
        """The items that it is about: those still open, or all once it is cleared."""
        items = sorted(self.items.all(), key=lambda item: item.pk)
        return [item for item in items if item.cleared_at is None] if self.cleared_at is None else items

    @property
    def count(self) -> int:
        return len(self.concerned)

    @property
    def names(self) -> list[str]:
        """The first names of what it is about."""
        return list(map(attrgetter("name"), self.concerned[:NAMES_SHOWN]))


class AlertItem(models.Model):
    """A run, market, release or task that an alert is about. It is in one open alert of a kind at most."""

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="items")
    kind = models.CharField(max_length=40, help_text="Kind of the alert.")
    subject = models.CharField(max_length=200)
    name = models.CharField(max_length=200)
    cleared_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "subject"], condition=Q(cleared_at=None), name="one_open_item_per_subject"
            )
        ]

    def __str__(self) -> str:
        return self.name


class Notice(models.Model):
    """The delivery of an alert, or of its end, by one channel: retried until it succeeds, sent once."""

    class Channel(models.TextChoices):
        MAIL = "mail"
        WEBHOOK = "webhook"

    class Status(models.TextChoices):
        OPEN = "open"
        RESOLVED = "resolved"

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="notices")
    channel = models.CharField(max_length=10, choices=Channel.choices)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.OPEN)
    tries = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(help_text="Wall-clock time, in replays too.")
    sent_at = models.DateTimeField(null=True, blank=True)
    repeats = models.PositiveSmallIntegerField(default=0, help_text="How often it was sent again, since more joined.")
    error = models.TextField(blank=True, help_text="Error of the last attempt.")

    class Meta:
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["alert", "channel", "status"], name="one_notice_per_alert_and_status")
        ]
        indexes = [models.Index(fields=["next_try_at"], condition=Q(sent_at=None), name="notice_to_send")]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.alert} ({self.status}) by {self.channel}"
