"""Envelopes: answers to tasks that an external agent may still answer, judged, and without effect under the seal."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import F, Q

from agents.models.call import ModelCall
from agents.models.decision import Decision
from agents.models.elicitation import Elicitation
from agents.models.task import TaskReference
from agents.records import new_nonce


class Envelope(TaskReference, models.Model):
    """One answer of a sealed task with its verdict, which takes effect when the envelope is opened.

    An external agent may replace its answer while its window is open: the envelope of the last one is opened.
    """

    class State(models.TextChoices):
        SEALED = "sealed"
        OPENED = "opened"
        REPLACED = "replaced"

    decision = models.ForeignKey(
        Decision,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="envelopes",
        help_text="The decision; null for an elicitation.",
    )
    elicitation = models.ForeignKey(
        Elicitation,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="envelopes",
        help_text="The elicitation; null for a decision.",
    )
    number = models.PositiveSmallIntegerField(help_text="Its place among the envelopes of its task, from 1.")
    call = models.OneToOneField(
        ModelCall, on_delete=models.PROTECT, related_name="envelope", help_text="The call that holds the answer."
    )
    verdict: Any = models.JSONField(
        help_text="Fields of the task, and each instruction or forecast with its figures or reason, as judged."
    )
    nonce = models.CharField(max_length=64, default=new_nonce, help_text="32 random bytes in hex, part of its record.")
    sha256 = models.CharField(max_length=64, unique=True, help_text="SHA-256 of its canonical record.")
    received_at = models.DateTimeField(
        help_text="When the answer came; `decided_at` or `made_at` of its task if it counts."
    )
    sealed_until = models.DateTimeField(help_text="The end of the seal.")
    state = models.CharField(
        max_length=8,
        choices=State.choices,
        default=State.SEALED,
        help_text="sealed, opened or replaced (by a later answer of the agent).",
    )
    opened_at = models.DateTimeField(null=True, blank=True, help_text="When it took effect.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["decision", "number"], name="one_envelope_per_decision_and_number"),
            models.UniqueConstraint(fields=["elicitation", "number"], name="one_envelope_per_elicitation_and_number"),
            models.UniqueConstraint(
                fields=["decision"], condition=Q(state="sealed"), name="one_sealed_envelope_per_decision"
            ),
            models.UniqueConstraint(
                fields=["elicitation"], condition=Q(state="sealed"), name="one_sealed_envelope_per_elicitation"
            ),
            models.UniqueConstraint(
                fields=["decision"], condition=Q(state="opened"), name="one_opened_envelope_per_decision"
            ),
            models.UniqueConstraint(
                fields=["elicitation"], condition=Q(state="opened"), name="one_opened_envelope_per_elicitation"
            ),
            models.CheckConstraint(
                condition=Q(decision__isnull=False, elicitation__isnull=True)
                | Q(decision__isnull=True, elicitation__isnull=False),
                name="envelope_is_of_one_task",
            ),
            models.CheckConstraint(
                condition=Q(state="opened", opened_at__isnull=False, opened_at__gte=F("sealed_until"))
                | (~Q(state="opened") & Q(opened_at__isnull=True)),
                name="an_envelope_is_opened_after_its_seal",
            ),
            models.CheckConstraint(
                condition=Q(received_at__lt=F("sealed_until")), name="an_envelope_is_received_under_its_seal"
            ),
        ]
        indexes = [models.Index(fields=["state", "sealed_until"], name="envelope_by_state")]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"envelope {self.number} of {self.task}"
