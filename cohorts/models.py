"""Methodology versions, weekly cohorts, and missed weeks."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta
from decimal import ROUND_DOWN, Decimal
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Max, Q

from cohorts import weeks
from foundation.fields import MoneyField
from foundation.row_hashes import RowHashField
from markets.pricing import PriceRule

if TYPE_CHECKING:
    from cohorts.forecast_rules import ForecastRules, TradingRules

HASHED_NAMES = {"jump_tolerance": "gamma_tolerance"}
"""Fields that the fingerprints of published versions know by an earlier name."""


LATER_FIELDS = frozenset({"forecast", "trading", "provider_pins", "free_form_answers"})


class MethodologyQuerySet(models.QuerySet["Methodology"]):
    def current(self) -> Methodology:
        """The newest published version, which new cohorts use."""
        newest = self.filter(published_at__isnull=False).order_by("-published_at", "-pk").first()
        if newest is None:
            raise Methodology.DoesNotExist("no methodology is published: run `manage.py migrate`")
        return newest

    def forecasting(self) -> Methodology | None:
        """The newest published version that has a forecast protocol."""
        published = self.filter(published_at__isnull=False).exclude(forecast={})
        return published.order_by("-published_at", "-pk").first()


class Methodology(models.Model):
    """Everything that a result depends on, as data. A version can not change once a cohort uses it."""

    version = models.CharField(max_length=20, unique=True, help_text="The version's name.")
    title = models.CharField(max_length=200, help_text="What the version introduced.")
    published_at = models.DateTimeField(null=True, blank=True, help_text="Time of publication; null for a draft.")

    starting_balance = MoneyField(help_text="First deposit of an agent in dollars.")
    minimum_bet = MoneyField(help_text="Smallest legal bet in dollars.")
    maximum_bet_fraction = models.DecimalField(
        max_digits=5, decimal_places=4, help_text="Largest legal bet as a share of the agent's cash."
    )
    universe_size = models.PositiveIntegerField(help_text="Number of markets in a universe.")
    universe_rule = models.TextField(help_text="How the markets of a universe are chosen.")
    actions = models.JSONField(help_text="The actions that an answer may take.")
    decision_weeks = models.PositiveSmallIntegerField(help_text="Weeks in which a cohort's agents decide.")
    retry_window = models.DurationField()
    malformed_retries = models.PositiveSmallIntegerField(help_text="Further requests after a malformed answer.")
    refused_retries = models.PositiveSmallIntegerField(
        help_text="Further requests after an answer of which nothing could be executed."
    )

    temperature = models.FloatField(help_text="Sampling temperature.")
    max_tokens = models.PositiveIntegerField(help_text="Tokens that an answer may have.")
    reasoning = models.JSONField(help_text="The gateway's parameter, such as {'effort': 'medium'}.")
    provider_routing = models.JSONField(help_text="The gateway's parameter for its choice of provider.")
    provider_pins = models.JSONField(
        default=dict, blank=True,
        help_text="Model id to more routing for it, such as {'order': ['deepseek'], 'quantizations': ['fp8']}.",
    )  # fmt: skip
    free_form_answers = models.BooleanField(
        default=False, help_text="No model is asked to follow the answer's JSON schema, even if it could."
    )
    system_prompt = models.TextField(help_text="The system message.")
    user_prompt = models.TextField(help_text="A template with {portfolio}, {positions}, {awaiting} and {markets}.")
    malformed_note = models.TextField(help_text="Added when an answer was malformed, with {reason}.")
    refused_note = models.TextField(help_text="Added when every instruction was refused, with {reasons}.")

    midpoint_tolerance = models.DecimalField(
        max_digits=5,
        decimal_places=4,
        help_text="Largest difference between the order book's midpoint and the catalogue's price.",
    )
    maximum_spread = models.DecimalField(
        max_digits=5,
        decimal_places=4,
        help_text="Largest difference between best bid and best ask of a usable order book.",
    )
    jump_tolerance = models.DecimalField(
        max_digits=5,
        decimal_places=4,
        help_text="Largest step from the last accepted price of a price that no tight order book confirms.",
    )
    rulings = models.JSONField(help_text="Clarifications made by this version, one sentence each.")
    scoring = models.JSONField(help_text="Each published score and its formula.")
    forecast: Any = models.JSONField(
        default=dict, blank=True, help_text="The forecast protocol's rules and prompts; empty in versions without it."
    )
    trading: Any = models.JSONField(
        default=dict, blank=True,
        help_text="Rules of the trading protocol that came later; empty in versions without them.",
    )  # fmt: skip
    row_sha256 = RowHashField(but=("title", "published_at"))

    objects = MethodologyQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "methodologies"
        ordering = ["version"]
        constraints = [
            models.CheckConstraint(
                condition=Q(maximum_bet_fraction__gt=0, maximum_bet_fraction__lte=1),
                name="maximum_bet_fraction_is_a_share",
            ),
            models.CheckConstraint(condition=Q(minimum_bet__gt=0), name="minimum_bet_is_positive"),
        ]

    def __str__(self) -> str:
        return self.version

    def publish(self, at: datetime) -> None:
        """Makes it the newest published version from now on, as of `at` or right after the one before."""
        published = Methodology.objects.filter(published_at__isnull=False)
        newest = published.aggregate(newest=Max("published_at"))["newest"]
        self.published_at = at if newest is None else max(at, newest + timedelta(seconds=1))
        self.save(update_fields=["published_at"])

    @property
    def bankruptcy_cash(self) -> Decimal:
        """The cash below which no bet is legal."""
        return self.minimum_bet / self.maximum_bet_fraction

    def maximum_bet(self, cash: Decimal) -> Decimal:
        """The largest legal bet, exact."""
        return cash * self.maximum_bet_fraction

    def maximum_bet_shown(self, cash: Decimal) -> Decimal:
        """The largest legal bet in whole cents; zero if none is legal."""
        amount = self.maximum_bet(cash).quantize(Decimal("0.01"), rounding=ROUND_DOWN)
        return amount if amount >= self.minimum_bet else Decimal("0.00")

    @property
    def price_rule(self) -> PriceRule:
        return PriceRule(self.midpoint_tolerance, self.maximum_spread, self.jump_tolerance)

    @classmethod
    def frozen_fields(cls) -> list[models.Field]:
        """The fields that a result depends on: all but the title and the publication date."""
        return cls._meta.get_field("row_sha256").fields  # type: ignore[union-attr]

    @property
    def open_window(self) -> timedelta:
        """How long after a freeze external agents of the open track may answer, in both protocols."""
        return timedelta(hours=self.forecast.get("open_window_hours", weeks.OPEN_WINDOW_HOURS))

    @property
    def forecast_rules(self) -> ForecastRules | None:
        """The rules of the forecast protocol; None in versions without it."""
        if not self.forecast:
            return None
        from cohorts.forecast_rules import ForecastRules

        return ForecastRules.model_validate(self.forecast)

    @property
    def trading_rules(self) -> TradingRules:
        """The later rules of the trading protocol."""
        from cohorts.forecast_rules import TradingRules

        return TradingRules.model_validate(self.trading)

    @property
    def sha256(self) -> str:
        """Hash of all that a result depends on; rules that came later are left out where a version has none."""
        frozen = {}
        for field in self.frozen_fields():
            value = getattr(self, field.name)
            if value or field.name not in LATER_FIELDS:
                name = HASHED_NAMES.get(field.name, field.name)
                frozen[name] = value if isinstance(field, models.JSONField) else str(value)
        return hashlib.sha256(json.dumps(frozen, sort_keys=True).encode()).hexdigest()


class CohortQuerySet(models.QuerySet["Cohort"]):
    def active(self, at: datetime | None = None) -> CohortQuerySet:
        """Cohorts that are not completed: now, or at the instant `at`."""
        if at is None:
            return self.filter(status=Cohort.Status.ACTIVE)
        return self.filter(started_at__lte=at).filter(Q(completed_at=None) | Q(completed_at__gt=at))


class Cohort(models.Model):
    """One week's competition: one agent per family, with equal starting balances, under one methodology."""

    class Status(models.TextChoices):
        ACTIVE = "active"
        COMPLETED = "completed"

    number = models.PositiveIntegerField(unique=True, help_text="Its number.")
    week_start = models.DateTimeField(unique=True, help_text="Sunday 00:00 UTC of its first week.")
    methodology = models.ForeignKey(Methodology, on_delete=models.PROTECT, related_name="cohorts")
    started_at = models.DateTimeField(help_text="Time of its agents' deposits.")
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.ACTIVE)
    completed_at = models.DateTimeField(null=True, blank=True, help_text="Time of its last settlement.")
    voided_at = models.DateTimeField(
        null=True, blank=True, help_text="Since when it is voided: asked nothing more, and counted on no leaderboard."
    )
    void_reason = models.CharField(max_length=200, blank=True, help_text="Why it was voided.")
    row_sha256 = RowHashField(but=("status", "completed_at", "voided_at", "void_reason"))

    objects = CohortQuerySet.as_manager()

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.CheckConstraint(
                condition=Q(status="active", completed_at__isnull=True)
                | Q(status="completed", completed_at__isnull=False),
                name="completed_cohort_has_a_time",
            ),
            models.CheckConstraint(
                condition=Q(voided_at=None, void_reason="") | (Q(voided_at__isnull=False) & ~Q(void_reason="")),
                name="voided_cohort_has_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"Cohort {self.number}"

    def decision_week(self, at: datetime) -> int:
        return weeks.decision_week(self.week_start, at)

    def is_deciding(self, at: datetime) -> bool:
        """True if its agents decide in the week that contains `at`; never once it is voided."""
        return self.voided_at is None and 1 <= self.decision_week(at) <= self.methodology.decision_weeks

    def weeks_begun(self, at: datetime) -> int:
        """The newest decision week that has begun by `at`, or by its voiding."""
        return min(self.decision_week(min(at, self.voided_at or at)), self.methodology.decision_weeks)

    @property
    def decisions_end_at(self) -> datetime:
        return self.week_start + self.methodology.decision_weeks * timedelta(weeks=1)


class MissedWeek(models.Model):
    """A week in which no cohort started in time."""

    week_start = models.DateTimeField(unique=True)
    recorded_at = models.DateTimeField()
    reason = models.CharField(max_length=300)

    class Meta:
        ordering = ["-week_start"]

    def __str__(self) -> str:
        return f"{self.week_start:%Y-%m-%d}: {self.reason}"
