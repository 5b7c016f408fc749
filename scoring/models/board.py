"""Rankings as last computed."""

from __future__ import annotations

from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models


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
