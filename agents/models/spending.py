"""What models cost: usage by agent and family, the worst case of a universe, readings of the key's credits."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from django.db import models
from django.db.models import Q

from agents.models.agent import Agent
from agents.models.family import Family
from foundation.fields import CostField
from markets.models import Universe


class Usage(NamedTuple):
    """Requests, tokens and cost of calls, in the fields of a `UsageTotal`."""

    requests: int
    tokens_input: int
    tokens_output: int
    cost_usd: Decimal
    stated_costs: int
    unconfirmed_usd: Decimal


NO_USAGE = Usage(0, 0, 0, Decimal(0), 0, Decimal(0))


class UsageTotal(models.Model):
    """The sums over all calls for the decisions of an agent, or for the forecasts of a family.

    Derived from the calls, in the transaction that stores a call (`agents.services.call_totals`): saves 16 ms of the
    page of a family with 200 cohorts on PostgreSQL.
    """

    agent = models.OneToOneField(Agent, null=True, blank=True, on_delete=models.PROTECT, related_name="usage_total")
    family = models.OneToOneField(
        Family,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="usage_total",
        help_text="The family whose forecasts these are.",
    )
    requests = models.PositiveIntegerField(default=0)
    tokens_input = models.PositiveBigIntegerField(default=0)
    tokens_output = models.PositiveBigIntegerField(default=0)
    cost_usd = CostField(default=0)
    stated_costs = models.PositiveIntegerField(default=0, help_text="Calls whose cost the gateway stated.")
    unconfirmed_usd = CostField(default=0, help_text="The part of the cost that is booked and not confirmed.")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(agent__isnull=False, family__isnull=True) | Q(agent__isnull=True, family__isnull=False),
                name="usage_is_of_an_agent_or_of_a_family",
            ),
        ]
        ordering = ["agent_id", "family_id"]

    def __str__(self) -> str:
        return f"usage of {self.agent or f'{self.family}, forecasts'}"


class CreditReading(models.Model):
    """The key's total usage at an instant. Two readings bound the cost of the calls between them."""

    read_at = models.DateTimeField(help_text="Wall-clock time, in replays too.")
    key_label = models.CharField(max_length=200, help_text="The gateway's name of the key, not the key.")
    used_usd = CostField(
        help_text="Dollars spent since the key was created, including costs billed by providers whose keys are our own."
    )

    class Meta:
        indexes = [models.Index(fields=["key_label", "-read_at"], name="reading_by_key_and_time")]
        ordering = ["-read_at"]

    def __str__(self) -> str:
        return f"{self.used_usd} used by {self.read_at:%Y-%m-%d %H:%M}"


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
