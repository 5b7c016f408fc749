"""Periods of maintenance, in which no model is asked."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


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
