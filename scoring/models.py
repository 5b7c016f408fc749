"""Scores, portfolios over time, leaderboards, imported forecasts and exports."""

from __future__ import annotations

from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import F, Q

from agents.models import Agent, Family, Forecast, Trade
from agents.models.sealed_rows import SealableQuerySet, SealableRows, Seals, follows_from_sealed_decisions
from foundation.change_times import ChangeTime, TimedQuerySet
from foundation.fields import MoneyField
from markets.models import Market, Question

FORECASTER_LENGTH, QUESTION_LENGTH, OPTION_LENGTH = 200, 300, 300
"""Lengths of imported names. Together they fit an index entry of PostgreSQL."""


class SealableTimedQuerySet(SealableRows, TimedQuerySet[Any]):
    """Scores, of which those that follow from sealed answers are left out of public reads."""


class BrierScore(ChangeTime):
    """The bet-sizing score of one purchase on a market that resolved with a winner."""

    trade = models.OneToOneField(Trade, on_delete=models.PROTECT, related_name="brier_score")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="brier_scores")
    market = models.ForeignKey(Market, on_delete=models.PROTECT, related_name="brier_scores")
    probability = models.FloatField(help_text="The implied confidence that the side bought would win.")
    outcome = models.BooleanField(help_text="Did the side win?")
    score = models.FloatField()
    market_probability = models.FloatField(help_text="The side's price at the trade.")
    market_score = models.FloatField()
    resolved_at = models.DateTimeField()
    scored_at = models.DateTimeField()

    objects = SealableTimedQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(score__gte=0, score__lte=1), name="brier_score_between_0_and_1"),
            models.CheckConstraint(
                condition=Q(probability__gte=0, probability__lte=1), name="brier_probability_between_0_and_1"
            ),
        ]
        indexes = [
            models.Index(fields=["agent", "resolved_at"], name="brier_by_agent_and_time"),
            models.Index(fields=["score", "id"], name="brier_by_score"),
            models.Index(fields=["resolved_at", "id"], name="brier_by_resolution"),
            models.Index(fields=["scored_at", "id"], name="brier_by_time"),
            models.Index(fields=["updated_at"], name="brier_by_change"),
        ]
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.score:.4f} for {self.trade}"

    @classmethod
    def sealed_by(cls, seals: Seals) -> Q:
        return follows_from_sealed_decisions(seals, "resolved_at")


class Snapshot(models.Model):
    """An agent's portfolio at an instant of the ten-minute grid."""

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="snapshots")
    taken_at = models.DateTimeField()
    cash = MoneyField()
    positions_value = MoneyField()
    total_value = MoneyField()
    pnl = MoneyField()
    pnl_percent = models.DecimalField(max_digits=14, decimal_places=4)
    brier = models.FloatField(null=True, blank=True)
    resolved_bets = models.PositiveIntegerField()
    open_positions = models.PositiveIntegerField()
    stale_positions = models.PositiveIntegerField(help_text="Positions marked at a price flagged stale.")

    objects = SealableQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent", "taken_at"], name="one_snapshot_per_agent_and_instant"),
            models.CheckConstraint(condition=Q(total_value=F("cash") + F("positions_value")), name="snapshot_adds_up"),
        ]
        indexes = [models.Index(fields=["-taken_at"], name="snapshot_by_time")]
        ordering = ["-taken_at", "agent_id"]

    def __str__(self) -> str:
        return f"{self.agent} at {self.taken_at:%Y-%m-%d %H:%M}: {self.total_value}"

    @classmethod
    def sealed_by(cls, seals: Seals) -> Q:
        return follows_from_sealed_decisions(seals, "taken_at")


class FamilyTotal(models.Model):
    """The total value of a family's agents at an instant, over those with a snapshot of it.

    Derived from snapshots, in the transaction that writes them (`scoring.services.family_totals`): a curve reads one
    row for an instant, however many cohorts there are.
    """

    family = models.ForeignKey(Family, on_delete=models.PROTECT, related_name="totals")
    taken_at = models.DateTimeField()
    agents = models.PositiveIntegerField()
    total = MoneyField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["taken_at", "family"], name="one_total_per_instant_and_family")]
        ordering = ["-taken_at", "family_id"]

    def __str__(self) -> str:
        return f"{self.family} at {self.taken_at:%Y-%m-%d %H:%M}: {self.total} of {self.agents}"


class ForecastScore(ChangeTime):
    """The scores of one forecast on a question that resolved, beside the market's on the same."""

    forecast = models.OneToOneField(Forecast, on_delete=models.PROTECT, related_name="score")
    brier = models.FloatField(help_text="Mean form: at most 1.")
    log = models.FloatField(help_text="Natural, clipped at 1e-6.")
    spherical = models.FloatField()
    accuracy = models.FloatField(help_text="Was the top option the one that happened? Tied options share the credit.")
    market_brier = models.FloatField(null=True, blank=True, help_text="Null where the market had no price.")
    resolved_at = models.DateTimeField()
    scored_at = models.DateTimeField()

    objects = SealableTimedQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(brier__gte=0, brier__lte=1), name="forecast_brier_between_0_and_1")
        ]
        indexes = [models.Index(fields=["updated_at"], name="forecast_score_by_change")]
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.brier:.4f} for {self.forecast}"

    @classmethod
    def sealed_by(cls, seals: Seals) -> Q:
        return Q(forecast__entry__question_set__in=list(seals.question_sets))


class QuestionDifficulty(models.Model):
    """The difficulty and the discrimination of a question, as last fitted."""

    question = models.ForeignKey(Question, on_delete=models.CASCADE, related_name="difficulties")
    arm = models.CharField(max_length=20)
    difficulty = models.FloatField(help_text="On the scale of the abilities, whose mean is 0.")
    difficulty_se = models.FloatField(null=True, blank=True)
    discrimination = models.FloatField(null=True, blank=True)
    discrimination_se = models.FloatField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "question difficulties"
        constraints = [models.UniqueConstraint(fields=["question", "arm"], name="one_difficulty_per_question_and_arm")]
        ordering = ["question_id", "arm"]

    def __str__(self) -> str:
        return f"{self.difficulty:+.2f} for {self.question}"


class LeaderboardSelection(models.Model):
    """The selection that a leaderboard shows. Empty fields stand for all: all methodologies, all categories."""

    protocol = models.CharField(max_length=20)
    methodology = models.CharField(max_length=20, blank=True)
    arm = models.CharField(max_length=20, blank=True, help_text="Prompt condition; the trading protocol has none.")
    category = models.CharField(max_length=120, blank=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return " ".join(filter(None, [self.protocol, self.methodology or "all", self.arm, self.category]))


class Leaderboard(LeaderboardSelection):
    """A leaderboard as last computed."""

    computed_at = models.DateTimeField()
    entries: Any = models.JSONField(encoder=DjangoJSONEncoder)
    report: Any = models.JSONField(
        default=dict, blank=True, encoder=DjangoJSONEncoder, help_text="Results besides the ranking: pairs, curves."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["protocol", "methodology", "arm", "category"], name="one_leaderboard_per_selection"
            )
        ]


class AgentsBoard(models.Model):
    """The board of the external agents of a track, as last computed. Leaderboards never read it."""

    track = models.CharField(max_length=6)
    protocol = models.CharField(max_length=20)
    period = models.CharField(max_length=3)
    computed_at = models.DateTimeField()
    entries: Any = models.JSONField(encoder=DjangoJSONEncoder)
    report: Any = models.JSONField(encoder=DjangoJSONEncoder, help_text="Pairs, and what they rest on.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["track", "protocol", "period"], name="one_agents_board_per_selection")
        ]
        ordering = ["track", "protocol", "period"]

    def __str__(self) -> str:
        return f"{self.track} {self.protocol} {self.period}"


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
                condition=Q(quote__isnull=True) | Q(quote__gte=0, quote__lte=1), name="imported_quote_between_0_and_1"
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
