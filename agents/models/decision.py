"""What an agent was asked and said: decisions, every call to a model, every instruction."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Q, Sum

from agents.models.agent import Agent
from cohorts.models import Cohort
from markets.fields import CostField
from markets.models import Universe


class DecisionQuerySet(models.QuerySet["Decision"]):
    def final(self) -> DecisionQuerySet:
        return self.filter(status__in=(Decision.Status.COMPLETED, Decision.Status.MISSED))

    def claimable(self, now: datetime) -> DecisionQuerySet:
        """Failed ones, and claims whose lease is over."""
        return self.filter(Q(status=Decision.Status.FAILED) | Q(status=Decision.Status.CLAIMED, lease_until__lte=now))

    def with_costs(self) -> DecisionQuerySet:
        """Adds `tokens_input`, `tokens_output` and `cost_usd`, summed over every call."""
        return self.annotate(
            tokens_input=Sum("calls__tokens_input"),
            tokens_output=Sum("calls__tokens_output"),
            cost_usd=Sum("calls__cost_usd"),
        )


class Decision(models.Model):
    """What an agent decided in one week. Claimed before the model is asked; final once, for ever."""

    class Status(models.TextChoices):
        CLAIMED = "claimed"
        COMPLETED = "completed"
        FAILED = "failed"
        MISSED = "missed"

    class Action(models.TextChoices):
        BET = "BET"
        SELL = "SELL"
        HOLD = "HOLD"

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="decisions")
    cohort = models.ForeignKey(Cohort, on_delete=models.PROTECT, related_name="decisions")
    week = models.PositiveSmallIntegerField()
    universe = models.ForeignKey(Universe, null=True, on_delete=models.PROTECT, related_name="decisions")
    status = models.CharField(max_length=10, choices=Status.choices)
    claim_token = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True, help_text="On the real clock.")
    refusals = models.PositiveSmallIntegerField(
        default=0, help_text="How often a well-formed answer had every instruction refused."
    )
    action = models.CharField(max_length=4, choices=Action.choices, null=True, blank=True)
    fallback = models.BooleanField(default=False)
    reasoning = models.TextField(blank=True)
    error = models.TextField(blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)

    objects = DecisionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent", "cohort", "week"], name="one_decision_per_agent_cohort_and_week"),
            models.CheckConstraint(
                condition=Q(status="claimed", claim_token__isnull=False, lease_until__isnull=False)
                | (~Q(status="claimed") & Q(claim_token__isnull=True, lease_until__isnull=True)),
                name="only_a_claimed_decision_has_a_lease",
            ),
            models.CheckConstraint(
                condition=(Q(status="completed") & Q(action__isnull=False, decided_at__isnull=False))
                | (~Q(status="completed") & Q(action__isnull=True)),
                name="only_a_completed_decision_has_an_action",
            ),
            models.CheckConstraint(condition=Q(fallback=False) | Q(action="HOLD"), name="a_fallback_is_a_hold"),
        ]
        indexes = [models.Index(fields=["status", "lease_until"], name="decision_by_status_and_lease")]
        ordering = ["-cohort_id", "-week", "agent_id"]

    def __str__(self) -> str:
        return f"{self.agent}, week {self.week}"


class ModelCall(models.Model):
    """One request to a model, kept whatever came of it. A retry is a new row."""

    class Result(models.TextChoices):
        SENT = "sent", "no answer yet"
        ANSWERED = "answered"
        MALFORMED = "malformed"
        DECLINED = "declined", "the model refused or said nothing"
        REFUSED = "refused", "no instruction could be carried out"
        FAILED = "failed", "the gateway failed"
        LOST = "lost", "the worker died before the answer"

    decision = models.ForeignKey(Decision, on_delete=models.PROTECT, related_name="calls")
    sequence = models.PositiveSmallIntegerField()
    attempt = models.PositiveSmallIntegerField(help_text="Transport retries of one attempt share its key.")
    idempotency_key = models.CharField(max_length=64)
    model = models.CharField(max_length=120)
    returned_model = models.CharField(max_length=200, blank=True)
    provider = models.CharField(max_length=200, blank=True)
    generation_id = models.CharField(max_length=200, blank=True)
    portfolio_block = models.TextField()
    positions_block = models.TextField()
    awaiting = models.TextField(blank=True)
    retry_note = models.TextField(blank=True)
    prompt_sha256 = models.CharField(max_length=64, help_text="Of the system and the user message.")
    result = models.CharField(max_length=10, choices=Result.choices, default=Result.SENT)
    late = models.BooleanField(default=False, help_text="Answered after its claim was lost; executed nothing.")
    raw_response = models.TextField(blank=True)
    content = models.TextField(blank=True)
    refusal = models.TextField(blank=True)
    parsed: Any = models.JSONField(null=True, blank=True)
    finish_reason = models.CharField(max_length=60, blank=True)
    http_status = models.PositiveSmallIntegerField(null=True, blank=True)
    error = models.TextField(blank=True)
    tokens_input = models.PositiveIntegerField(null=True, blank=True)
    tokens_output = models.PositiveIntegerField(null=True, blank=True)
    tokens_reasoning = models.PositiveIntegerField(null=True, blank=True)
    cost_usd = CostField(default=0)
    cost_stated = models.BooleanField(default=False, help_text="The gateway named the cost; else tokens x price.")
    latency_ms = models.PositiveIntegerField(null=True, blank=True)
    sent_at = models.DateTimeField(help_text="On the real clock.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["decision", "sequence"], name="one_call_per_decision_and_sequence")
        ]
        indexes = [models.Index(fields=["sent_at"], name="call_by_time")]
        ordering = ["decision_id", "sequence"]

    def __str__(self) -> str:
        return f"call {self.sequence} of decision {self.decision_id}"

    @property
    def system_prompt(self) -> str:
        return self.decision.cohort.methodology.system_prompt

    @property
    def user_prompt(self) -> str:
        """The user message as it was sent, byte for byte."""
        universe = self.decision.universe
        return (
            self.decision.cohort.methodology.user_prompt.format(
                portfolio=self.portfolio_block,
                positions=self.positions_block,
                awaiting=self.awaiting,
                markets=universe.market_block if universe else "",
            )
            + self.retry_note
        )

    @staticmethod
    def fingerprint(system_prompt: str, user_prompt: str) -> str:
        return hashlib.sha256(f"{system_prompt}\0{user_prompt}".encode()).hexdigest()


class Instruction(models.Model):
    """One bet or sale that an answer asked for, and what became of it."""

    call = models.ForeignKey(ModelCall, on_delete=models.PROTECT, related_name="instructions")
    sequence = models.PositiveSmallIntegerField()
    kind = models.CharField(max_length=4, choices=[("BET", "BET"), ("SELL", "SELL")])
    payload: Any = models.JSONField(help_text="The instruction as it was read.")
    executed = models.BooleanField()
    reason = models.TextField(blank=True, help_text="Why it was rejected.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["call", "sequence"], name="one_instruction_per_call_and_sequence"),
            models.CheckConstraint(
                condition=(Q(executed=True) & Q(reason="")) | (Q(executed=False) & ~Q(reason="")),
                name="a_rejected_instruction_has_a_reason",
            ),
        ]
        ordering = ["call_id", "sequence"]

    def __str__(self) -> str:
        return f"{self.kind} {self.sequence} of {self.call}"
