"""Agents: one family's release in one cohort."""

from __future__ import annotations

from decimal import Decimal

from django.db import models
from django.db.models import Q

from agents.models.family import Family, Release
from agents.prices import TokenPrices
from cohorts.models import Cohort
from foundation.change_times import ChangeTime, TimedQuerySet
from foundation.fields import CostField, MoneyField


class AgentQuerySet(TimedQuerySet["Agent"]):
    def playing(self) -> AgentQuerySet:
        """Active agents of active cohorts."""
        return self.filter(status=Agent.Status.ACTIVE, cohort__status=Cohort.Status.ACTIVE)


class Agent(ChangeTime):
    """One family's release in one cohort. The release's ids, names and prices at the start are frozen here."""

    class Status(models.TextChoices):
        ACTIVE = "active"
        BANKRUPT = "bankrupt"

    cohort = models.ForeignKey(Cohort, on_delete=models.PROTECT, related_name="agents")
    family = models.ForeignKey(Family, on_delete=models.PROTECT, related_name="agents")
    release = models.ForeignKey(
        Release, on_delete=models.PROTECT, related_name="agents", help_text="The release frozen into it."
    )
    model_id = models.CharField(max_length=120, help_text="The requested model.")
    display_name = models.CharField(max_length=80)
    price_prompt = CostField()
    price_completion = CostField()
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.ACTIVE)
    cash = MoneyField(default=Decimal(0), help_text="Cash now.")
    journal_length = models.PositiveIntegerField(default=0)

    objects = AgentQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cohort", "family"], name="one_agent_per_family_and_cohort"),
            models.CheckConstraint(condition=Q(cash__gte=0), name="cash_not_negative"),
        ]
        ordering = ["cohort_id", "family_id"]

    @property
    def token_prices(self) -> TokenPrices:
        """The frozen prices, with those that the release has under conditions."""
        return TokenPrices(self.price_prompt, self.price_completion, self.release.token_prices.overrides)

    def __str__(self) -> str:
        return f"{self.display_name} in cohort {self.cohort_id}"
