"""Operators' settings of runs: the weekly spend cap of a protocol, pauses, maintenance."""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from agents.models.family import Family


class RunSetting(models.Model):
    """The spend cap and the pause of a protocol, of one family in it, or of one condition of the forecasts.

    All hold at once, without a restart.
    """

    class Protocol(models.TextChoices):
        TRADING = "trading", "decisions"
        FORECAST = "forecast", "forecasts"

    protocol = models.CharField(max_length=10, choices=Protocol.choices)
    family = models.ForeignKey(
        Family, on_delete=models.PROTECT, null=True, blank=True, help_text="Empty for every family."
    )
    condition = models.CharField(
        max_length=20, blank=True, help_text="The condition of the forecasts; empty for every condition."
    )
    paused = models.BooleanField(default=False, help_text="Paused ones are left out of runs.")
    spend_limit_usd = models.DecimalField(
        max_digits=12,
        decimal_places=2,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="The most that the protocol may cost in a week; empty for ARENA_SPEND_LIMIT_USD.",
    )

    class Meta:
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["protocol", "condition"], condition=Q(family=None), name="one_setting_per_protocol"
            ),
            models.UniqueConstraint(fields=["protocol", "family"], name="one_setting_per_protocol_and_family"),
            models.CheckConstraint(
                condition=Q(spend_limit_usd=None) | Q(family=None, condition="", spend_limit_usd__gte=0),
                name="cap_of_a_protocol",
            ),
            models.CheckConstraint(
                condition=Q(condition="") | Q(family=None, protocol="forecast"), name="condition_of_the_forecasts"
            ),
        ]
        ordering = ["protocol", "family_id"]

    def __str__(self) -> str:
        if self.condition:
            return f"{self.get_protocol_display()} under the condition {self.condition}"
        return f"{self.get_protocol_display()} of {self.family or 'every family'}"


class MaintenanceQuerySet(models.QuerySet["Maintenance"]):
    def current(self) -> Maintenance | None:
        """The period that has begun and not ended."""
        return self.filter(is_open=True).first()


class Maintenance(models.Model):
    """A period in which no model is asked; everything else goes on, and pages say so."""

    began_at = models.DateTimeField(help_text="Wall-clock time.")
    ended_at = models.DateTimeField(null=True, blank=True)
    is_open = models.BooleanField(default=True)
    reason = models.CharField(max_length=200, help_text="Shown on the site's pages.")

    objects = MaintenanceQuerySet.as_manager()

    class Meta:
        default_permissions = ("view",)
        verbose_name_plural = "maintenance"
        constraints = [
            models.UniqueConstraint(fields=["is_open"], condition=Q(is_open=True), name="one_open_maintenance"),
            models.CheckConstraint(
                condition=Q(is_open=True, ended_at=None) | Q(is_open=False, ended_at__isnull=False),
                name="maintenance_open_until_its_end",
            ),
        ]
        ordering = ["-began_at"]

    def __str__(self) -> str:
        return f"maintenance since {self.began_at:%Y-%m-%d %H:%M} UTC: {self.reason}"
