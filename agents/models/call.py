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

    decision = models.ForeignKey(
        Decision,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="calls",
        help_text="The decision; null for a forecast call.",
    )
    elicitation = models.ForeignKey(
        Elicitation,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="calls",
        help_text="The elicitation, of a forecast call; null otherwise.",
    )
    sequence = models.PositiveSmallIntegerField(help_text="Its place among the calls of its task, from 1.")
    attempt = models.PositiveSmallIntegerField(
        help_text="Number of the attempt; transport retries of one share its number and key."
    )
    idempotency_key = models.CharField(max_length=64, help_text="The key that the request was sent with.")
    model = models.CharField(max_length=120, help_text="The requested model.")
    returned_model = models.CharField(max_length=200, blank=True, help_text="The model that answered.")
    provider = models.CharField(max_length=200, blank=True, help_text="The provider that served the answer.")
    quantization = models.CharField(
        max_length=40, blank=True, help_text="Quantization of the model's weights, if stated."
    )
    generation_id = models.CharField(max_length=200, blank=True, help_text="The gateway's id of the answer.")
    portfolio_block = models.TextField(blank=True, help_text="The PORTFOLIO block.")
    positions_block = models.TextField(blank=True, help_text="The POSITIONS block.")
    awaiting = models.TextField(blank=True, help_text="The block of positions awaiting resolution.")
    retry_note = models.TextField(blank=True, help_text="The note added after an unusable answer.")
    questions_block = models.TextField(
        blank=True, help_text="The QUESTIONS block, if only questions without an answer were asked again."
    )
    parameters: Any = models.JSONField(
        default=dict, blank=True, help_text="The request's parameters as sent; what the release ignores is not sent."
    )
    prompt_sha256 = models.CharField(
        max_length=64, help_text="SHA-256 of the system message, a NUL and the user message."
    )
    result = models.CharField(
        max_length=10, choices=Result.choices, default=Result.SENT, help_text="The outcome of the call."
    )
    late = models.BooleanField(
        default=False, help_text="True if it was answered after its claim had expired; such an answer is not executed."
    )
    raw_response = models.TextField(blank=True, help_text="The gateway's answer, byte for byte.")
    content = models.TextField(blank=True, help_text="The text of the answer.")
    refusal = models.TextField(blank=True, help_text="The model's refusal, if it stated one.")
    parsed: Any = models.JSONField(
        null=True, blank=True, help_text="The answer as it was read; null if it could not be."
    )
    finish_reason = models.CharField(max_length=60, blank=True, help_text="The model's reason for stopping.")
    http_status = models.PositiveSmallIntegerField(null=True, blank=True, help_text="HTTP status of the answer.")
    error = models.TextField(blank=True, help_text="Why no usable answer came.")
    tokens_input = models.PositiveIntegerField(null=True, blank=True, help_text="Prompt tokens.")
    tokens_output = models.PositiveIntegerField(null=True, blank=True, help_text="Completion tokens.")
    tokens_reasoning = models.PositiveIntegerField(null=True, blank=True, help_text="Reasoning tokens.")
    cost_usd = CostField(default=0, help_text="Cost of the call in US dollars.")
    cost_source = models.CharField(
        max_length=8,
        choices=CostSource.choices,
        default=CostSource.COMPUTED,
        help_text="stated by the gateway, computed from tokens and price, or booked as the worst case.",
    )
    booked_usd = CostField(
        null=True,
        blank=True,
        help_text="Highest possible cost, which counted from the sending until the true cost was known.",
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
    search_cost_usd = CostField(
        null=True, blank=True, help_text="The part of the cost that is of searches; null where it is not stated apart."
    )
    excluded = models.CharField(
        max_length=200,
        blank=True,
        help_text="Why its forecasts count on no board, if they do not: an excluded host, or unknown results.",
    )
    latency_ms = models.PositiveIntegerField(null=True, blank=True, help_text="Latency in milliseconds.")
    sent_at = models.DateTimeField(help_text="Time of sending, by the real clock, in replays too.")

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
    sequence = models.PositiveSmallIntegerField(help_text="Its place in the answer.")
    kind = models.CharField(max_length=4, choices=[("BET", "BET"), ("SELL", "SELL")])
    payload: Any = models.JSONField(help_text="The instruction as parsed.")
    executed = models.BooleanField(help_text="True if it was executed.")
    reason = models.TextField(blank=True, help_text="The reason for its rejection.")

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
