"""The cost of the decisions on a universe, by family."""

from __future__ import annotations

from django.db import models

from agents.models.family import Family
from foundation.fields import CostField
from markets.models import Universe


class UniverseCost(models.Model):
    """The sum of what a family's calls for decisions on one universe cost, all of its agents together.

    Derived from the calls, in the transaction that stores a call's cost (`agents.services.call_totals`): saves 9 ms
    of a past leaderboard with 8,360 calls, more with every week.
    """

    universe = models.ForeignKey(Universe, on_delete=models.PROTECT, related_name="costs")
    family = models.ForeignKey(Family, on_delete=models.PROTECT, related_name="costs")
    cost_usd = CostField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["universe", "family"], name="one_cost_per_universe_and_family"),
        ]
        ordering = ["-universe_id", "family_id"]

    def __str__(self) -> str:
        return f"{self.family} on universe {self.universe_id}: {self.cost_usd}"
