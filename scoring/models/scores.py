"""Scores of bets and forecasts, and portfolios over time."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import F, Q

from agents.models import Agent, Family, Forecast, Trade
from foundation.change_times import ChangeTime, TimedQuerySet
from foundation.fields import MoneyField
from markets.models import Market


class ScoreQuerySet(TimedQuerySet[Any]):
    """Scores, whose updates set the time of the change."""


class BrierScore(ChangeTime):
    """The bet-sizing score of one purchase on a market that resolved with a winner."""

    trade = models.OneToOneField(Trade, on_delete=models.PROTECT, related_name="brier_score")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="brier_scores")
    market = models.ForeignKey(Market, on_delete=models.PROTECT, related_name="brier_scores")
    probability = models.FloatField(help_text="The implied confidence that the side bought would win.")
    outcome = models.BooleanField(help_text="Did the side win?")
    score = models.FloatField()
    market_probability = models.FloatField(help_text="The side's price at the trade.")
    market_score = models.FloatField()
    resolved_at = models.DateTimeField()
    scored_at = models.DateTimeField()

    objects = ScoreQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(score__gte=0, score__lte=1), name="brier_score_between_0_and_1"),
            models.CheckConstraint(
                condition=Q(probability__gte=0, probability__lte=1), name="brier_probability_between_0_and_1"
            ),
        ]
        indexes = [
            models.Index(fields=["agent", "resolved_at"], name="brier_by_agent_and_time"),
            models.Index(fields=["score", "id"], name="brier_by_score"),
            models.Index(fields=["resolved_at", "id"], name="brier_by_resolution"),
            models.Index(fields=["scored_at", "id"], name="brier_by_time"),
            models.Index(fields=["updated_at"], name="brier_by_change"),
        ]
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.score:.4f} for {self.trade}"


class Snapshot(models.Model):
    """An agent's portfolio at an instant of the ten-minute grid."""

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="snapshots")
    taken_at = models.DateTimeField()
    cash = MoneyField()
    positions_value = MoneyField()
    total_value = MoneyField()
    pnl = MoneyField()
    pnl_percent = models.DecimalField(max_digits=14, decimal_places=4)
    brier = models.FloatField(null=True, blank=True)
    resolved_bets = models.PositiveIntegerField()
    open_positions = models.PositiveIntegerField()
    stale_positions = models.PositiveIntegerField(help_text="Positions marked at a price flagged stale.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent", "taken_at"], name="one_snapshot_per_agent_and_instant"),
            models.CheckConstraint(condition=Q(total_value=F("cash") + F("positions_value")), name="snapshot_adds_up"),
        ]
        indexes = [models.Index(fields=["-taken_at"], name="snapshot_by_time")]
        ordering = ["-taken_at", "agent_id"]

    def __str__(self) -> str:
        return f"{self.agent} at {self.taken_at:%Y-%m-%d %H:%M}: {self.total_value}"


class FamilyTotal(models.Model):
    """The total value of a family's agents at an instant, over those with a snapshot of it.

    Derived from snapshots, in the transaction that writes them (`scoring.services.family_totals`): a curve reads one
    row for an instant, however many cohorts there are. Curves of 200 running cohorts take 0.04 s, from their 600,000
    snapshots 0.4 to 0.6 s (SQLite, two busy cores).
    """

    family = models.ForeignKey(Family, on_delete=models.PROTECT, related_name="totals")
    taken_at = models.DateTimeField()
    agents = models.PositiveIntegerField()
    total = MoneyField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["taken_at", "family"], name="one_total_per_instant_and_family")]
        ordering = ["-taken_at", "family_id"]

    def __str__(self) -> str:
        return f"{self.family} at {self.taken_at:%Y-%m-%d %H:%M}: {self.total} of {self.agents}"


class ForecastScore(ChangeTime):
    """The scores of one forecast on a question that resolved, beside the market's on the same."""

    forecast = models.OneToOneField(Forecast, on_delete=models.PROTECT, related_name="score")
    brier = models.FloatField(help_text="Mean form: at most 1.")
    log = models.FloatField(help_text="Natural, clipped at 1e-6.")
    spherical = models.FloatField()
    accuracy = models.FloatField(help_text="Was the top option the one that happened? Tied options share the credit.")
    market_brier = models.FloatField(null=True, blank=True, help_text="Null where the market had no price.")
    resolved_at = models.DateTimeField()
    scored_at = models.DateTimeField()

    objects = ScoreQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(brier__gte=0, brier__lte=1), name="forecast_brier_between_0_and_1")
        ]
        indexes = [models.Index(fields=["updated_at"], name="forecast_score_by_change")]
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.brier:.4f} for {self.forecast}"
