"""Rankings as last computed, and what is kept of those of past instants."""

from __future__ import annotations

from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models

from agents.models import Family


class Leaderboard(models.Model):
    """A ranking as last computed. Empty fields stand for all: all methodologies, all categories."""

    protocol = models.CharField(max_length=20)
    methodology = models.CharField(max_length=20, blank=True)
    arm = models.CharField(max_length=20, blank=True, help_text="Of the forecast protocol alone.")
    category = models.CharField(max_length=120, blank=True)
    computed_at = models.DateTimeField()
    entries: Any = models.JSONField(encoder=DjangoJSONEncoder)
    report: Any = models.JSONField(
        default=dict, blank=True, encoder=DjangoJSONEncoder, help_text="What stands beside the ranking: pairs, curves."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["protocol", "methodology", "arm", "category"], name="one_board_per_protocol_and_selection"
            )
        ]

    def __str__(self) -> str:
        chosen = filter(None, [self.methodology or "all", self.arm, self.category])
        return " ".join([self.protocol, *chosen])


class PastBoard(models.Model):
    """What a board as of any instant from `since` to before `until` says of what had been scored or had ended by then.

    Derived from scores and forecasts, and taken away by the database itself with any change that reaches it
    (`scoring.past`): of the trading protocol what of an entry rests on scores, by the family's id; of the forecast
    protocol the entries of whoever had spoken.
    """

    protocol = models.CharField(max_length=20)
    methodology = models.CharField(max_length=20, blank=True)
    arm = models.CharField(max_length=20, blank=True)
    category = models.CharField(max_length=120, blank=True)
    since = models.DateTimeField()
    until = models.DateTimeField(help_text="When something else ended; far away while nothing has.")
    entries: Any = models.JSONField(encoder=DjangoJSONEncoder)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["protocol", "methodology", "arm", "category", "since"],
                name="one_past_board_per_selection_and_instant",
            ),
            models.CheckConstraint(condition=models.Q(since__lt=models.F("until")), name="past_board_holds_for_a_time"),
        ]
        indexes = [models.Index(fields=["protocol", "until"], name="past_board_by_its_end")]
        ordering = ["-since", "protocol", "methodology", "arm", "category"]

    def __str__(self) -> str:
        chosen = filter(None, [self.methodology or "all", self.arm, self.category])
        return " ".join([self.protocol, *chosen, f"from {self.since:%Y-%m-%d %H:%M}"])


class Contrast(models.Model):
    """Where two families of the line-up stood furthest apart, when both had come as far as `come` says.

    Derived from trades and forecasts (`scoring.services.contrasts`), and believed as long as both are still there.
    """

    BETS = "bets"

    kind = models.CharField(max_length=20, help_text="Of bets, or the arm of forecasts.")
    first = models.ForeignKey(Family, on_delete=models.CASCADE, related_name="+")
    second = models.ForeignKey(Family, on_delete=models.CASCADE, related_name="+")
    come = models.CharField(max_length=64, help_text="What tells how far the two had come.")
    content: Any = models.JSONField(help_text="Markets with stakes, or questions with probabilities; the widest first.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "first", "second"], name="one_contrast_per_kind_and_pair")
        ]
        ordering = ["kind", "first_id", "second_id"]

    def __str__(self) -> str:
        return f"{self.kind}: {self.first} and {self.second}"
