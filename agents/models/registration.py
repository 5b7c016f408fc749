"""External agents: their registrations, with the tokens, and the answers that they submitted."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Q

from agents.models.call import ModelCall
from agents.models.family import Family
from foundation.row_hashes import RowHashField


class RegistrationQuerySet(models.QuerySet["Registration"]):
    def live(self, at: datetime) -> RegistrationQuerySet:
        """Registrations in force at an instant."""
        return self.filter(registered_at__lte=at).filter(Q(revoked_at=None) | Q(revoked_at__gt=at))

    def covering(self, protocol: str) -> RegistrationQuerySet:
        return self.filter(protocol__in=(protocol, Registration.Protocol.BOTH))


class Registration(models.Model):
    """Permission of an external family to take part in a protocol. Of its token only the hash is stored."""

    class Protocol(models.TextChoices):
        TRADING = "trading"
        FORECAST = "forecast"
        BOTH = "both"

    family = models.ForeignKey(Family, on_delete=models.PROTECT, related_name="registrations")
    protocol = models.CharField(max_length=10, choices=Protocol.choices)
    token_sha256 = models.CharField(max_length=64, unique=True)
    registered_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, help_text="Wall-clock time, in replays too.")

    token: str
    """Known of a new registration alone."""

    objects = RegistrationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["family"], condition=Q(revoked_at=None), name="one_live_registration_per_family"
            )
        ]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.family}, {self.protocol}"

    def covers(self, protocol: str) -> bool:
        return self.protocol in (protocol, self.Protocol.BOTH)


class Submission(models.Model):
    """An answer that an external agent submitted, with our response; the same key gets the same response again."""

    registration = models.ForeignKey(Registration, on_delete=models.PROTECT, related_name="submissions")
    key = models.CharField(max_length=255, help_text="The request's Idempotency-Key.")
    request_sha256 = models.CharField(max_length=64, help_text="Over the task's identity and the body.")
    call = models.OneToOneField(ModelCall, on_delete=models.PROTECT, related_name="submission")
    status = models.PositiveSmallIntegerField(help_text="HTTP status of the response.")
    response: Any = models.JSONField()
    received_at = models.DateTimeField(help_text="Time that is compared with the deadline.")
    row_sha256 = RowHashField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["registration", "key"], name="one_submission_per_registration_and_key")
        ]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.registration.family}: {self.call}"
