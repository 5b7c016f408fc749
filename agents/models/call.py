"""Model calls: every request to a model, of either protocol; and the instructions of its answer."""

from __future__ import annotations

import hashlib
from typing import Any

from django.db import models
from django.db.models import F, Q

from agents.models.decision import Decision
from agents.models.elicitation import Elicitation
from agents.models.task import PROMPT_PARTS, PromptParts, TaskReference
from foundation.change_times import ChangeTime, TimedQuerySet
from foundation.fields import CostField

COST_COLUMNS = ("tokens_input", "tokens_output", "cost_usd", "cost_source")
RECONCILED = (*COST_COLUMNS, "reconciled_at")
"""The fields that the reconciliation of a booked call writes."""


class CallQuerySet(TimedQuerySet["ModelCall"]):
    """Model calls, whose updates set the time of the change."""


class ModelCall(TaskReference, ChangeTime):
    """One request to a model, stored before it is sent, with its answer or failure. A retry is a new row."""

    class Result(models.TextChoices):
        SENT = "sent", "no answer yet"
        ANSWERED = "answered"
        REPLACED = "replaced", "a later answer of the agent counts"
        MALFORMED = "malformed"
        CUT = "cut", "the tokens ran out before the answer was complete"
        DECLINED = "declined", "the model refused or answered nothing"
        REFUSED = "refused", "nothing in it could be executed"
        FAILED = "failed", "the gateway failed"
        LOST = "lost", "the worker died before the answer"

    READ = (Result.ANSWERED, Result.CUT)
    """Results of answers that were read, of a cut one as far as it goes."""

    class CostSource(models.TextChoices):
        STATED = "stated", "stated by the gateway"
        COMPUTED = "computed", "tokens times price"
        BOOKED = "booked", "booked, not confirmed"

    decision = models.ForeignKey(Decision, null=True, blank=True, on_delete=models.PROTECT, related_name="calls")
    elicitation = models.ForeignKey(Elicitation, null=True, blank=True, on_delete=models.PROTECT, related_name="calls")
    sequence = models.PositiveSmallIntegerField()
    attempt = models.PositiveSmallIntegerField(help_text="Transport retries of one attempt share its key.")
    idempotency_key = models.CharField(max_length=64)
    model = models.CharField(max_length=120)
    returned_model = models.CharField(max_length=200, blank=True)
    provider = models.CharField(max_length=200, blank=True)
    quantization = models.CharField(max_length=40, blank=True, help_text="The weights' quantization, if stated.")
    generation_id = models.CharField(max_length=200, blank=True)
    portfolio_block = models.TextField(blank=True)
    positions_block = models.TextField(blank=True)
    awaiting = models.TextField(blank=True)
    retry_note = models.TextField(blank=True)
    questions_block = models.TextField(
        blank=True, help_text="Questions asked, if not the whole batch: those that still lacked an answer."
    )
    parameters: Any = models.JSONField(
        default=dict, blank=True, help_text="Request parameters as sent, without those that the model ignores."
    )
    prompt_sha256 = models.CharField(max_length=64, help_text="SHA-256 of the system and the user message.")
    result = models.CharField(max_length=10, choices=Result.choices, default=Result.SENT)
    late = models.BooleanField(default=False, help_text="Answered after its claim was lost; not executed.")
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
    cost_source = models.CharField(max_length=8, choices=CostSource.choices, default=CostSource.COMPUTED)
    booked_usd = CostField(
        null=True,
        blank=True,
        help_text="Highest possible cost, counted against the limit until the true cost is known.",
    )
    reconciled_at = models.DateTimeField(
        null=True, blank=True, help_text="When the gateway reported the cost of a call whose bill was missing."
    )
    searches = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="Searches that the gateway made for it; null where it had no search tool."
    )
    results: Any = models.JSONField(
        null=True, blank=True, help_text="What searches showed the model: a list of `url`, `title` and `content`."
    )
    search_cost_usd = CostField(null=True, blank=True, help_text="The part of the cost that is of searches.")
    excluded = models.CharField(
        max_length=200, blank=True, help_text="Why its forecasts count on no board: excluded host, or unknown results."
    )
    latency_ms = models.PositiveIntegerField(null=True, blank=True)
    sent_at = models.DateTimeField(help_text="Wall-clock time, in replays too.")

    objects = CallQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["decision", "sequence"], name="one_call_per_decision_and_sequence"),
            models.UniqueConstraint(fields=["elicitation", "sequence"], name="one_call_per_elicitation_and_sequence"),
            models.CheckConstraint(
                condition=Q(decision__isnull=False, elicitation__isnull=True)
                | Q(decision__isnull=True, elicitation__isnull=False),
                name="call_belongs_to_one_task",
            ),
            models.CheckConstraint(
                condition=~Q(cost_source="booked") | Q(booked_usd__isnull=False, cost_usd=F("booked_usd")),
                name="a_booked_cost_is_the_worst_case",
            ),
        ]
        indexes = [
            models.Index(fields=["sent_at"], name="call_by_time"),
            models.Index(fields=["updated_at"], name="call_by_change"),
            # Covering indexes for sums of costs: reading the rows would load prompts and answers.
            models.Index(fields=["decision", *COST_COLUMNS], name="cost_by_decision"),
            models.Index(fields=["elicitation", *COST_COLUMNS], name="cost_by_elicitation"),
        ]
        ordering = ["decision_id", "elicitation_id", "sequence"]

    def __str__(self) -> str:
        task = f"decision {self.decision_id}" if self.decision_id else f"elicitation {self.elicitation_id}"
        return f"call {self.sequence} of {task}"

    @property
    def system_prompt(self) -> str:
        return self.task.system_prompt

    @property
    def user_prompt(self) -> str:
        """The user message as it was sent, byte for byte."""
        return self.task.user_prompt(PromptParts(**{name: getattr(self, name) for name in PROMPT_PARTS}))

    @staticmethod
    def fingerprint(system_prompt: str, user_prompt: str) -> str:
        """SHA-256 over a pair of messages."""
        return hashlib.sha256(f"{system_prompt}\0{user_prompt}".encode()).hexdigest()


class Instruction(models.Model):
    """One bet or sale of an answer: executed, or rejected with a reason."""

    call = models.ForeignKey(ModelCall, on_delete=models.PROTECT, related_name="instructions")
    sequence = models.PositiveSmallIntegerField()
    kind = models.CharField(max_length=4, choices=[("BET", "BET"), ("SELL", "SELL")])
    payload: Any = models.JSONField(help_text="The instruction as parsed.")
    executed = models.BooleanField()
    reason = models.TextField(blank=True, help_text="The reason of its rejection.")

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
