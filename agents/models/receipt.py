"""Receipts of external agents' answers, the keys that sign them, and the attempts that led to no answer."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import F, Q

from agents.models.agent import Agent
from agents.models.registration import Registration, Submission
from agents.records import new_nonce
from foundation.json_lines import instant_text
from foundation.row_hashes import RowHashField
from markets.models import QuestionBatch, Universe


class SigningKeyQuerySet(models.QuerySet["SigningKey"]):
    def in_use(self, at: datetime) -> SigningKey | None:
        """The key that signs at an instant."""
        in_future = Q(ended_at=None) | Q(ended_at__gt=at)
        return self.filter(in_future, Q(began_at=None) | Q(began_at__lte=at)).first()

    def current(self) -> SigningKey | None:
        """The newest key, which has no end."""
        return self.filter(ended_at=None).first()


class SigningKey(models.Model):
    """A public key of the arena and the time of its use. The private one is in the settings alone."""

    fingerprint = models.CharField(max_length=16, unique=True, help_text="Beginning of the public key's SHA-256.")
    public_key = models.CharField(max_length=64, unique=True, help_text="Ed25519, hex.")
    began_at = models.DateTimeField(null=True, blank=True, help_text="Beginning of its use; null for the first.")
    ended_at = models.DateTimeField(null=True, blank=True, help_text="End of its use; null while it is in use.")

    objects = SigningKeyQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(ended_at=None) | Q(began_at=None) | Q(ended_at__gt=F("began_at")),
                                   name="a_signing_key_ends_after_it_began"),
        ]  # fmt: skip
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.fingerprint


class Receipt(models.Model):
    """The receipt of an accepted answer, in the register: its body holds the hash of the receipt before it."""

    sequence = models.PositiveIntegerField(unique=True, help_text="Its place in the register, from 1.")
    submission = models.OneToOneField(Submission, on_delete=models.PROTECT, related_name="receipt")
    agent = models.CharField(max_length=80, help_text="The agent: its family's slug.")
    version = models.CharField(max_length=60, help_text="The version of the agent that answered.")
    task = models.CharField(max_length=60, help_text="batch-ID, or agent-ID-universe-ID.")
    answer_sha256 = models.CharField(max_length=64, help_text="SHA-256 of the answer as sent, secrets redacted.")
    prompt_sha256 = models.CharField(max_length=64, help_text="SHA-256 of the prompt that was shown.")
    nonce = models.CharField(max_length=64, default=new_nonce, help_text="32 random bytes in hex.")
    received_at = models.DateTimeField(help_text="Time that was compared with the deadline.")
    previous = models.CharField(
        max_length=64, unique=True, help_text="SHA-256 of the receipt before it; 64 zeros for the first."
    )
    sha256 = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the body as canonical JSON.")
    signature = models.CharField(max_length=128, help_text="Ed25519 over the body as canonical JSON, hex.")
    key = models.ForeignKey(
        SigningKey,
        on_delete=models.PROTECT,
        to_field="fingerprint",
        related_name="receipts",
        help_text="The key in `signing_keys`.",
    )

    class Meta:
        indexes = [models.Index(fields=["received_at", "id"], name="receipt_by_time")]
        ordering = ["sequence"]

    def __str__(self) -> str:
        return f"receipt {self.sequence}"

    @property
    def body(self) -> dict[str, Any]:
        """The statement that is hashed and signed."""
        texts = ("agent", "version", "task", "answer_sha256", "prompt_sha256", "nonce", "previous")
        body: dict[str, Any] = {name: getattr(self, name) for name in texts}
        return body | {"received_at": instant_text(self.received_at), "sequence": self.sequence}

    def as_json(self) -> dict[str, Any]:
        """The receipt as its agent gets it."""
        return {"body": self.body, "sha256": self.sha256, "signature": self.signature, "key_id": self.key_id}


class Attempt(models.Model):
    """A task of an external agent without an accepted answer: it was refused, came late, or never came."""

    class Kind(models.TextChoices):
        REFUSED = "refused"
        LATE = "late"
        MISSED = "missed"

    registration = models.ForeignKey(Registration, on_delete=models.PROTECT, related_name="attempts")
    version = models.CharField(max_length=60, help_text="The agent's version.")
    agent = models.ForeignKey(
        Agent,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="attempts",
        help_text="The agent in its cohort, of a decision; null otherwise.",
    )
    universe = models.ForeignKey(
        Universe,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="attempts",
        help_text="The universe of the decision; null otherwise.",
    )
    batch = models.ForeignKey(
        QuestionBatch,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="attempts",
        help_text="The batch of questions; null for a decision.",
    )
    kind = models.CharField(max_length=7, choices=Kind.choices)
    reason = models.CharField(max_length=500, blank=True, help_text="The reason.")
    key = models.CharField(max_length=255, help_text="It names the task and its kind, so that each is noted once.")
    noted_at = models.DateTimeField(help_text="When it was noted.")
    row_sha256 = RowHashField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["registration", "key"], name="one_attempt_per_registration_and_key"),
            models.CheckConstraint(
                condition=Q(batch=None, agent__isnull=False, universe__isnull=False)
                | Q(batch__isnull=False, agent=None, universe=None),
                name="attempt_is_at_one_task",
            ),
        ]
        indexes = [models.Index(fields=["noted_at", "id"], name="attempt_by_time")]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.registration.family}: {self.kind}"
