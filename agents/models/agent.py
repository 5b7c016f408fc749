"""Who competes: families, the releases behind them, and agents in cohorts."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from django.apps import apps
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from cohorts.models import Cohort
from markets.fields import CostField, MoneyField

EXTERNAL_WINDOW = timedelta(minutes=15)
"""How long after a freeze an external agent may answer: it could wait for news, which a model can not."""


class FamilyQuerySet(models.QuerySet["Family"]):
    def active(self) -> FamilyQuerySet:
        return self.filter(active=True)

    def with_release(self, at: datetime) -> FamilyQuerySet:
        """Adds `release`, the model id behind each at an instant, as `Family.release_at` finds it for one."""
        line_up = apps.get_model("agents", "LineUp").objects.in_force(at)
        listed = apps.get_model("agents", "LineUpEntry").objects.filter(line_up=line_up, family=OuterRef("pk"))
        in_effect = Release.objects.filter(family=OuterRef("pk"), effective_from__lte=at)
        newest = in_effect.order_by("-effective_from", "-pk").values("model_id")[:1]
        return self.annotate(release=Coalesce(Subquery(listed.values("release__model_id")[:1]), Subquery(newest)))


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
    external = models.BooleanField(
        default=False, help_text="Somebody else's agent: it submits its answers by itself and is ranked apart."
    )

    objects = FamilyQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "families"
        constraints = [
            models.CheckConstraint(
                condition=Q(external=False) | Q(active=False), name="an_external_family_is_not_of_the_line_up"
            )
        ]
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.display_name

    def release_at(self, at: datetime) -> Release | None:
        """The release behind the family at an instant: the one that the line-up in force names.

        Of a family that is in no line-up, the newest that is in effect by then.
        """
        line_up = apps.get_model("agents", "LineUp").objects.in_force(at)
        entry = line_up and line_up.entries.filter(family=self).select_related("release").first()
        if entry:
            return entry.release
        return self.releases.filter(effective_from__lte=at).order_by("-effective_from", "-pk").first()

    def answers_within(self, retry_window: timedelta) -> timedelta:
        """How long after a freeze its answer counts, where models have `retry_window`."""
        return EXTERNAL_WINDOW if self.external else retry_window


class Release(models.Model):
    """An exact model behind a family from an instant on, with its prices."""

    family = models.ForeignKey(Family, on_delete=models.PROTECT, related_name="releases")
    model_id = models.CharField(max_length=120, help_text="As the gateway names it, such as openai/gpt-5.2.")
    display_name = models.CharField(max_length=80)
    price_prompt = CostField(help_text="US dollars per prompt token.")
    price_completion = CostField(help_text="US dollars per completion token.")
    effective_from = models.DateTimeField(help_text="It may play from then on, once an approved line-up names it.")

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
