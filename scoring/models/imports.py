"""Imported forecasts, their collections and leaderboards, and requested exports."""

from __future__ import annotations

from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import F, Q

FORECASTER_LENGTH, QUESTION_LENGTH, OPTION_LENGTH = 200, 300, 300
"""Lengths of imported names. Together they fit an index entry of PostgreSQL."""


class ImportCollection(models.Model):
    """Imported forecasts that are ranked together, apart from the arena's own."""

    slug = models.SlugField(max_length=100, unique=True)
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField(help_text="Time of the last added forecast.")
    people: Any = models.JSONField(
        default=list, blank=True, help_text="The forecasters who are people, or medians of people, by name."
    )

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.name


class ForecastImport(models.Model):
    """The import of one file of forecasts, with the files that explain it."""

    collection = models.ForeignKey(ImportCollection, on_delete=models.PROTECT, related_name="imports")
    format = models.CharField(max_length=20)
    files: Any = models.JSONField(help_text="Name, SHA-256 and bytes of each; the first holds the forecasts.")
    sha256 = models.CharField(max_length=64, help_text="Hash of the file, or of the digests of all files in order.")
    imported_at = models.DateTimeField()
    rows = models.PositiveIntegerField(default=0, help_text="Records in the file.")
    rejected = models.PositiveIntegerField(default=0, help_text="Rejected records.")
    forecasts = models.PositiveIntegerField(default=0, help_text="Probabilities added.")
    completed = models.BooleanField(default=False, help_text="False while the import runs or after it was interrupted.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["collection", "format", "sha256"], name="one_import_per_contents"),
            models.CheckConstraint(condition=Q(rejected__lte=F("rows")), name="import_rejects_no_more_than_it_read"),
        ]
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.name} into {self.collection}"

    @property
    def name(self) -> str:
        """The name of the file that holds the forecasts."""
        return str(self.files[0]["name"])


class RejectedRow(models.Model):
    """A record of an imported file that was not used, and the reason."""

    forecast_import = models.ForeignKey(ForecastImport, on_delete=models.PROTECT, related_name="rejections")
    row = models.PositiveIntegerField(help_text="Line in the file, or place in a JSON list, from 1.")
    reason = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["forecast_import", "row"], name="one_reason_per_rejected_row")]
        ordering = ["forecast_import_id", "row"]

    def __str__(self) -> str:
        return f"row {self.row}: {self.reason}"


class ImportedQuestion(models.Model):
    """The description of a question in the imported files."""

    collection = models.ForeignKey(ImportCollection, on_delete=models.PROTECT, related_name="questions")
    question = models.CharField(max_length=QUESTION_LENGTH)
    title = models.TextField(blank=True)
    options: Any = models.JSONField(default=list, blank=True)
    happened: Any = models.JSONField(null=True, blank=True, help_text="Options that happened; null while it is open.")
    category = models.CharField(max_length=200, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["collection", "question"], name="one_description_per_imported_question")
        ]
        ordering = ["question"]

    def __str__(self) -> str:
        return self.title or self.question


class ImportedForecast(models.Model):
    """One forecaster's probability of one option of one question, as in the file."""

    collection = models.ForeignKey(ImportCollection, on_delete=models.PROTECT, related_name="forecasts")
    forecast_import = models.ForeignKey(ForecastImport, on_delete=models.PROTECT, related_name="probabilities")
    row = models.PositiveIntegerField()
    forecaster = models.CharField(max_length=FORECASTER_LENGTH)
    question = models.CharField(max_length=QUESTION_LENGTH)
    option = models.CharField(max_length=OPTION_LENGTH)
    probability = models.FloatField()
    outcome = models.FloatField(null=True, blank=True, help_text="Null while the question is open.")
    odds = models.FloatField(null=True, blank=True)
    no_odds = models.FloatField(null=True, blank=True)
    quote = models.FloatField(null=True, blank=True)
    event = models.CharField(max_length=QUESTION_LENGTH, blank=True)
    category = models.CharField(max_length=200, blank=True)
    made_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    weight = models.FloatField(default=1.0)
    exclusive = models.BooleanField(default=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "question", "forecaster", "option", "made_at"],
                condition=Q(made_at__isnull=False),
                name="one_imported_probability_per_option_and_time",
            ),
            models.UniqueConstraint(
                fields=["collection", "question", "forecaster", "option"],
                condition=Q(made_at__isnull=True),
                name="one_imported_probability_per_option_without_time",
            ),
            models.CheckConstraint(
                condition=Q(probability__gte=0, probability__lte=1), name="imported_probability_between_0_and_1"
            ),
            models.CheckConstraint(
                condition=Q(outcome__isnull=True) | Q(outcome__gte=0, outcome__lte=1),
                name="imported_outcome_between_0_and_1",
            ),
            models.CheckConstraint(
                condition=(Q(odds__isnull=True) | Q(odds__gt=0, odds__lt=1))
                & (Q(no_odds__isnull=True) | Q(no_odds__gt=0, no_odds__lt=1)),
                name="imported_odds_inside_0_and_1",
            ),
            models.CheckConstraint(
                condition=Q(quote__isnull=True) | Q(quote__gte=0, quote__lte=1),
                name="imported_quote_between_0_and_1",
            ),
            models.CheckConstraint(condition=Q(weight__gt=0), name="imported_weight_above_0"),
        ]
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.forecaster}: {self.probability} for {self.option} of {self.question}"


class ImportLeaderboard(models.Model):
    """The leaderboard of a collection as last computed; no `report` while no question is resolved."""

    collection = models.OneToOneField(ImportCollection, on_delete=models.PROTECT, related_name="leaderboard")
    computed_at = models.DateTimeField()
    report: Any = models.JSONField(null=True, blank=True, encoder=DjangoJSONEncoder)
    forecasters = models.PositiveIntegerField()
    questions = models.PositiveIntegerField(help_text="Questions with forecasts or a description.")
    open_questions = models.PositiveIntegerField(help_text="Questions with forecasts and without an outcome.")
    probabilities = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"leaderboard of {self.collection}"


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
