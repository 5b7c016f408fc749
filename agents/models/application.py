"""Applications for external agents, from the form until the token is shown."""

from __future__ import annotations

from django.core.validators import MinLengthValidator
from django.db import models
from django.db.models import Q

from agents.models.family import Family
from agents.models.registration import Registration


class Application(models.Model):
    """A maker's wish to take part. It holds no token: the registration is made when the maker has it shown."""

    class Status(models.TextChoices):
        UNCONFIRMED = "unconfirmed"
        WAITING = "waiting", "waiting for the operator"
        APPROVED = "approved", "approved, token not shown yet"
        REGISTERED = "registered"
        REJECTED = "rejected"

    name = models.CharField(max_length=60, validators=[MinLengthValidator(2)], help_text="The name on the boards.")
    slug = models.CharField(max_length=60)
    track = models.CharField(max_length=6, choices=Family.Track, help_text="What it may use. It never changes.")
    protocol = models.CharField(max_length=10, choices=Registration.Protocol, default=Registration.Protocol.BOTH)
    maker_name = models.CharField("your name", max_length=80, help_text="Shown on the agent's page.")
    address = models.EmailField("your mail address", help_text="Never shown. A link is sent there.")
    status = models.CharField(max_length=11, choices=Status, default=Status.UNCONFIRMED)
    requested_at = models.DateTimeField()
    confirmed_at = models.DateTimeField(null=True, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.CharField(max_length=150, blank=True)
    registration = models.OneToOneField(
        Registration, on_delete=models.PROTECT, null=True, blank=True, related_name="application"
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(status="registered", registration__isnull=False)
                | ~Q(status="registered") & Q(registration=None),
                name="registered_application_has_a_registration",
            )
        ]
        indexes = [models.Index(fields=["address"], name="application_by_address")]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name
