"""Deliveries of alerts."""

from django.db import models
from django.db.models import Q

from foundation.models.alert import Alert


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
