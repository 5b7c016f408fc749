"""Current and past leaderboards."""

from __future__ import annotations

from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models


class Leaderboard(models.Model):
    """A leaderboard as last computed. Empty fields stand for all: all methodologies, all categories."""

    protocol = models.CharField(max_length=20)
    methodology = models.CharField(max_length=20, blank=True)
    arm = models.CharField(max_length=20, blank=True, help_text="Prompt condition; the trading protocol has none.")
    category = models.CharField(max_length=120, blank=True)
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

    def __str__(self) -> str:
        selection = filter(None, [self.methodology or "all", self.arm, self.category])
        return " ".join([self.protocol, *selection])


class LeaderboardHistory(models.Model):
    """A past leaderboard: its entries as of any instant from `since` to before `until`.

    Derived from scores and forecasts; changes of the past mark it as stale (`scoring.leaderboard_history`). Of the
    trading protocol it holds the fields that follow from scores, by family id; of the forecast protocol the entries of
    families with forecasts. Saves 800 ms of a past leaderboard with 50,000 forecasts.
    """

    protocol = models.CharField(max_length=20)
    methodology = models.CharField(max_length=20, blank=True)
    arm = models.CharField(max_length=20, blank=True)
    category = models.CharField(max_length=120, blank=True)
    since = models.DateTimeField()
    until = models.DateTimeField(help_text="The next resolution; the year 9000 where there is none yet.")
    entries: Any = models.JSONField(encoder=DjangoJSONEncoder)

    class Meta:
        verbose_name_plural = "leaderboard history"
        constraints = [
            models.UniqueConstraint(
                fields=["protocol", "methodology", "arm", "category", "since"],
                name="one_past_leaderboard_per_selection_and_instant",
            ),
            models.CheckConstraint(
                condition=models.Q(since__lt=models.F("until")), name="past_leaderboard_ends_after_it_begins"
            ),
        ]
        indexes = [models.Index(fields=["protocol", "until"], name="past_leaderboard_by_its_end")]
        ordering = ["-since", "protocol", "methodology", "arm", "category"]

    def __str__(self) -> str:
        selection = filter(None, [self.methodology or "all", self.arm, self.category])
        return " ".join([self.protocol, *selection, f"from {self.since:%Y-%m-%d %H:%M}"])
