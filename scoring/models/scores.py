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

    trade = models.OneToOneField(Trade, on_delete=models.PROTECT, related_name="brier_score", help_text="The purchase.")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="brier_scores")
    market = models.ForeignKey(Market, on_delete=models.PROTECT, related_name="brier_scores")
    probability = models.FloatField(help_text="The implied confidence that the side bought would win.")
    outcome = models.BooleanField(help_text="Did the side win?")
    score = models.FloatField(help_text="Squared error of the implied confidence.")
    market_probability = models.FloatField(help_text="The side's price at the trade.")
    market_score = models.FloatField(help_text="Squared error of that price.")
    resolved_at = models.DateTimeField(help_text="Time of the market's resolution.")
    scored_at = models.DateTimeField(help_text="Time of scoring.")

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
    taken_at = models.DateTimeField(help_text="Time on the grid.")
    cash = MoneyField(help_text="Cash.")
    positions_value = MoneyField(help_text="Open positions at the prices known by then.")
    total_value = MoneyField(help_text="Cash and positions.")
    pnl = MoneyField(help_text="Total less the starting balance.")
    pnl_percent = models.DecimalField(
        max_digits=14, decimal_places=4, help_text="Profit as a percentage of the starting balance."
    )
    brier = models.FloatField(null=True, blank=True, help_text="Mean bet-sizing score so far.")
    resolved_bets = models.PositiveIntegerField(help_text="Resolved purchases so far.")
    open_positions = models.PositiveIntegerField(help_text="Number of open positions.")
    stale_positions = models.PositiveIntegerField(help_text="Open positions valued at a stale price.")

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
    brier = models.FloatField(help_text="Brier score: mean over options, lower is better.")
    log = models.FloatField(help_text="Natural logarithm of the probability of the outcome, clipped at 1e-6.")
    spherical = models.FloatField(help_text="Spherical score.")
    accuracy = models.FloatField(help_text="1 if the most probable option happened, shared among ties.")
    market_brier = models.FloatField(
        null=True,
        blank=True,
        help_text="Brier score of the market's prices on the same question; null where they lack one.",
    )
    resolved_at = models.DateTimeField(help_text="Time of the question's resolution.")
    scored_at = models.DateTimeField(help_text="Time of scoring.")

    objects = ScoreQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(brier__gte=0, brier__lte=1), name="forecast_brier_between_0_and_1")
        ]
        indexes = [models.Index(fields=["updated_at"], name="forecast_score_by_change")]
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.brier:.4f} for {self.forecast}"
