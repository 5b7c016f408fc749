"""Exports: requested archives, their state and their files."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Export(models.Model):
    """An archive, requested by an operator and built by a worker."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        BUILDING = "building"
        COMPLETED = "completed"
        FAILED = "failed"

    selection = models.CharField(max_length=200, help_text="Canonical text of cohort, window and formats.")
    cohort = models.PositiveIntegerField(null=True, blank=True, help_text="The cohort's number; null for all cohorts.")
    start = models.DateTimeField(null=True, blank=True)
    end = models.DateTimeField(null=True, blank=True)
    formats = models.CharField(max_length=40, help_text="csv, parquet or both with a comma.")
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.QUEUED)
    requested_by = models.CharField(max_length=150)
    requested_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    rows = models.PositiveBigIntegerField(null=True, blank=True)
    bytes = models.PositiveBigIntegerField(null=True, blank=True, help_text="Size of the zip file.")
    sha256 = models.CharField(max_length=64, blank=True, help_text="Hash of the zip file.")
    error = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["selection"],
                condition=Q(status__in=["queued", "building"]),
                name="one_unfinished_export_per_selection",
            ),
            models.CheckConstraint(
                condition=~Q(status="completed") | (Q(rows__isnull=False, bytes__isnull=False) & ~Q(sha256="")),
                name="completed_export_has_file",
            ),
        ]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"export {self.pk} of {self.selection}"

    @property
    def file_name(self) -> str:
        return f"forecaster-arena-{self.pk}.zip"
