"""Who competes: families, the releases behind them, and agents in cohorts."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

from cohorts.models import Cohort
from markets.fields import CostField, MoneyField


class FamilyQuerySet(models.QuerySet["Family"]):
    def active(self) -> FamilyQuerySet:
        return self.filter(active=True)


class Family(models.Model):
    """A stable competitor slot. Its slug joins results over years; its display name may change."""

    # Slugs carry dots ("gpt-5.1"), which Django's SlugField refuses.
    slug = models.CharField(
        max_length=60,
        unique=True,
        validators=[RegexValidator(r"^[a-z0-9][a-z0-9.\-]*$", "a-z, 0-9, dots, dashes")],
    )
    display_name = models.CharField(max_length=80)
    provider = models.CharField(max_length=80)
    color = models.CharField(max_length=7, validators=[RegexValidator(r"^#[0-9a-f]{6}$", "must look like #1a2b3c")])
    active = models.BooleanField(default=True)

    objects = FamilyQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "families"
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.display_name

    def release_at(self, at: datetime) -> Release | None:
        """The release behind the family at an instant: the newest that is in effect by then."""
        return self.releases.filter(effective_from__lte=at).order_by("-effective_from", "-pk").first()


class Release(models.Model):
    """An exact model behind a family from an instant on, with its prices."""

    family = models.ForeignKey(Family, on_delete=models.PROTECT, related_name="releases")
    model_id = models.CharField(max_length=120, help_text="As the gateway names it, such as openai/gpt-5.2.")
    display_name = models.CharField(max_length=80)
    price_prompt = CostField(help_text="US dollars per prompt token.")
    price_completion = CostField(help_text="US dollars per completion token.")
    effective_from = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["family", "effective_from"], name="one_release_per_family_and_instant"),
            models.CheckConstraint(
                condition=Q(price_prompt__gte=0, price_completion__gte=0), name="token_prices_not_negative"
            ),
        ]
        ordering = ["family_id", "-effective_from"]

    def __str__(self) -> str:
        return self.model_id


class AgentQuerySet(models.QuerySet["Agent"]):
    def playing(self) -> AgentQuerySet:
        return self.filter(status=Agent.Status.ACTIVE, cohort__status=Cohort.Status.ACTIVE)


class Agent(models.Model):
    """One family's release playing in one cohort. What it was at the start is frozen into its row."""

    class Status(models.TextChoices):
        ACTIVE = "active"
        BANKRUPT = "bankrupt"

    cohort = models.ForeignKey(Cohort, on_delete=models.PROTECT, related_name="agents")
    family = models.ForeignKey(Family, on_delete=models.PROTECT, related_name="agents")
    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="agents")
    model_id = models.CharField(max_length=120)
    display_name = models.CharField(max_length=80)
    price_prompt = CostField()
    price_completion = CostField()
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.ACTIVE)
    cash = MoneyField(default=Decimal(0))
    journal_length = models.PositiveIntegerField(default=0)

    objects = AgentQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cohort", "family"], name="one_agent_per_cohort_and_family"),
            models.CheckConstraint(condition=Q(cash__gte=0), name="cash_not_negative"),
        ]
        ordering = ["cohort_id", "family_id"]

    def __str__(self) -> str:
        return f"{self.display_name} in cohort {self.cohort_id}"
