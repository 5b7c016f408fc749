"""Who plays in cohorts to come: line-ups, each a list that is proposed whole and approved whole."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Q

from agents.models.agent import Family, Release


class LineUpQuerySet(models.QuerySet["LineUp"]):
    def approved(self) -> LineUpQuerySet:
        """Those that were approved, the one that counts last first."""
        return self.filter(status=LineUp.Status.APPROVED).order_by("-effective_from", "-decided_at", "-pk")

    def in_force(self, at: datetime) -> LineUp | None:
        """The line-up of a cohort that starts at an instant."""
        return self.approved().filter(effective_from__lte=at).first()


class LineUp(models.Model):
    """A list of releases, one a family. What it lists never changes; it is proposed, then approved or rejected."""

    class Status(models.TextChoices):
        PROPOSED = "proposed"
        APPROVED = "approved"
        REJECTED = "rejected"

    status = models.CharField(max_length=10, choices=Status.choices, default=Status.PROPOSED)
    proposed_at = models.DateTimeField()
    proposed_by = models.CharField(max_length=150)
    reason = models.TextField()
    findings: Any = models.JSONField(
        default=list, blank=True, help_text="What the gateway's catalogue said, a line each."
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.CharField(max_length=150, blank=True)
    decided_because = models.TextField(blank=True)
    effective_from = models.DateTimeField(
        null=True, blank=True, help_text="Cohorts that start from then on play by it; those before never do."
    )

    objects = LineUpQuerySet.as_manager()

    class Meta:
        verbose_name = "line-up"
        constraints = [
            models.CheckConstraint(
                condition=Q(status="proposed", decided_at=None, effective_from=None)
                | Q(status="approved", decided_at__isnull=False, effective_from__isnull=False)
                | Q(status="rejected", decided_at__isnull=False, effective_from=None),
                name="only_an_approved_line_up_takes_effect",
            )
        ]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"line-up {self.pk}"

    def playing(self) -> models.QuerySet[LineUpEntry]:
        """Its entries without the families that were withdrawn since."""
        return self.entries.filter(family__active=True).select_related("family", "release")


class LineUpEntry(models.Model):
    """A family in a line-up, and the release that plays for it."""

    line_up = models.ForeignKey(LineUp, on_delete=models.PROTECT, related_name="entries")
    family = models.ForeignKey(Family, on_delete=models.PROTECT, related_name="line_up_entries")
    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="line_up_entries")
    position = models.PositiveSmallIntegerField()

    class Meta:
        verbose_name_plural = "line-up entries"
        constraints = [
            models.UniqueConstraint(fields=["line_up", "family"], name="one_entry_per_line_up_and_family"),
            models.UniqueConstraint(fields=["line_up", "position"], name="one_entry_per_line_up_and_position"),
        ]
        ordering = ["line_up_id", "position"]

    def __str__(self) -> str:
        return f"{self.family}: {self.release}"
