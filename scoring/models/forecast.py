"""Scores of forecasts, and fitted difficulties of questions."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from agents.models import Forecast
from markets.models import Question


class ForecastScore(models.Model):
    """The scores of one forecast on a question that resolved, beside the market's on the same."""

    forecast = models.OneToOneField(Forecast, on_delete=models.PROTECT, related_name="score")
    brier = models.FloatField(help_text="Mean form.")
    log = models.FloatField(help_text="Natural, clipped at 1e-6.")
    spherical = models.FloatField()
    accuracy = models.FloatField(help_text="Was the top option the one that happened? Ties share.")
    market_brier = models.FloatField(null=True, blank=True, help_text="Null where the market had no price.")
    resolved_at = models.DateTimeField()
    scored_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(brier__gte=0, brier__lte=1), name="forecast_brier_between_0_and_1")
        ]
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.brier:.4f} for {self.forecast}"


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
