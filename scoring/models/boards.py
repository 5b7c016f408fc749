"""Leaderboards as they are stored, and the difficulties of questions that come with them."""

from __future__ import annotations

from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models

from agents.models import ChainLink
from markets.models import Question


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

    protocol = models.CharField(max_length=20, help_text="trading or forecast.")
    methodology = models.CharField(max_length=20, blank=True, help_text="The version; empty over all.")
    arm = models.CharField(
        max_length=20, blank=True, help_text="The prompt condition's name; empty for trading and for agents."
    )
    category = models.CharField(max_length=120, blank=True, help_text="The category; empty over all.")

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return " ".join(filter(None, [self.protocol, self.methodology or "all", self.arm, self.category]))


class Leaderboard(LeaderboardSelection):
    """A leaderboard as last computed."""

    computed_at = models.DateTimeField(help_text="Time at which it was computed.")
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
    computed_at = models.DateTimeField()
    entries: Any = models.JSONField(encoder=DjangoJSONEncoder)
    report: Any = models.JSONField(encoder=DjangoJSONEncoder, help_text="Pairs, and what they rest on.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["track", "protocol"], name="one_agents_board_per_selection")]
        ordering = ["track", "protocol"]

    def __str__(self) -> str:
        return f"{self.track} {self.protocol}"


class PublishedBoard(LeaderboardSelection):
    """A board as it stood at an instant. It is never changed: a correction is a board of a later instant."""

    track = models.CharField(
        max_length=6, blank=True, help_text="Of a board of external agents: closed or open; empty for leaderboards."
    )
    at = models.DateTimeField(help_text="The instant at which it was published.")
    entries: Any = models.JSONField(encoder=DjangoJSONEncoder, help_text="The rows of the board.")
    report: Any = models.JSONField(
        encoder=DjangoJSONEncoder,
        help_text="The tests of its pairs, of each forecaster against the market, and the numbers behind them.",
    )
    sha256 = models.CharField(max_length=64, help_text="SHA-256 of the canonical JSON of entries and report.")
    link = models.ForeignKey(
        ChainLink, on_delete=models.PROTECT, related_name="boards", help_text="Of its publication."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["protocol", "track", "methodology", "arm", "category", "at"],
                name="one_published_board_per_selection_and_instant",
            )
        ]
        ordering = ["-at", "pk"]
