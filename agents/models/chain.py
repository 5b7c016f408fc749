"""Hash chains over completed tasks, archives and published boards.

A known head proves that no earlier record was changed.
"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q

from agents.models.call import ModelCall
from agents.models.decision import Decision
from agents.models.elicitation import Elicitation
from agents.models.envelope import Envelope
from agents.models.task import TaskReference
from agents.records import GENESIS, canonical


class Protocol(models.TextChoices):
    TRADING = "trading"
    FORECAST = "forecast"
    ARCHIVE = "archive"
    BOARD = "board"
    RECEIPT = "receipt"


class Chain(models.Model):
    """The length and head of one chain. Adding a link updates this row, which locks the chain."""

    protocol = models.CharField(
        max_length=20, choices=Protocol.choices, unique=True, help_text="trading, forecast, archive, board or receipt."
    )
    length = models.PositiveIntegerField(default=0, help_text="Number of links.")
    head = models.CharField(max_length=64, default=GENESIS, help_text="SHA-256 of the last link.")

    class Meta:
        ordering = ["protocol"]

    def __str__(self) -> str:
        return f"{self.protocol}: {self.length} links, {self.head}"


class DailyAnchor(models.Model):
    """The chain heads of a day, signed: `document` holds the instant, the heads, the public key and the signature."""

    day = models.DateField(unique=True)
    made_at = models.DateTimeField()
    document: Any = models.JSONField()

    class Meta:
        ordering = ["-day"]

    def __str__(self) -> str:
        return f"Chain heads of {self.day}"

    @property
    def contents(self) -> bytes:
        """The file of the day, byte for byte: its SHA-256 can be time-stamped."""
        return f"{canonical(self.document)}\n".encode()


OF_DECISION = Q(protocol="trading", decision__isnull=False, elicitation__isnull=True)
OF_ELICITATION = Q(protocol="forecast", decision__isnull=True, elicitation__isnull=False)
OF_NO_TASK, OF_A_PROTOCOL = Q(decision__isnull=True, elicitation__isnull=True), Q(protocol__in=("trading", "forecast"))
RECORDED = Q(protocol__in=("archive", "board"), envelope__isnull=True, record__isnull=False, call__isnull=True)


class ChainLink(TaskReference, models.Model):
    """A completed task, an envelope, an archive or a publication of boards in its chain.

    `sha256` covers the previous hash and the record's. The record of a task or an envelope is made from its rows; those
    of an archive and of a publication are stored.
    """

    protocol = models.CharField(
        max_length=20, choices=Protocol.choices, help_text="trading, forecast, board or archive."
    )
    sequence = models.PositiveIntegerField(help_text="Its place in its chain, from 1.")
    decision = models.OneToOneField(
        Decision,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="link",
        help_text="The decision; null in the other chains.",
    )
    elicitation = models.OneToOneField(
        Elicitation,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="link",
        help_text="The elicitation; null in the other chains.",
    )
    envelope = models.OneToOneField(
        Envelope, null=True, blank=True, on_delete=models.PROTECT, related_name="link",
        help_text="The envelope of an answer under seal; its task has a link of its own once it is opened.",
    )  # fmt: skip
    call = models.ForeignKey(
        ModelCall, null=True, blank=True, on_delete=models.PROTECT, related_name="links",
        help_text="The call whose prompt and answer are in the record.",
    )  # fmt: skip
    record: Any = models.JSONField(
        null=True,
        blank=True,
        help_text="The record of an archive, or of boards published together; others follow from their rows.",
    )
    record_sha256 = models.CharField(max_length=64, help_text="SHA-256 of the canonical record.")
    previous = models.CharField(max_length=64, help_text="SHA-256 of the link before it; 64 zeros for the first.")
    sha256 = models.CharField(max_length=64, help_text="SHA-256 of `previous`, a line feed and `record_sha256`.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["protocol", "sequence"], name="one_link_per_protocol_and_sequence"),
            models.UniqueConstraint(fields=["protocol", "previous"], name="one_link_after_each_hash"),
            models.CheckConstraint(
                condition=(Q(envelope__isnull=True, record__isnull=True) & (OF_DECISION | OF_ELICITATION))
                | (Q(envelope__isnull=False, record__isnull=True, call__isnull=True) & OF_NO_TASK & OF_A_PROTOCOL)
                | (RECORDED & OF_NO_TASK),
                name="link_holds_one_task_or_a_record",
            ),
        ]
        indexes = [
            models.Index(fields=["sequence", "id"], name="link_by_sequence"),
            models.Index(fields=["decision", "sequence"], name="link_by_decision"),
        ]
        ordering = ["protocol", "sequence"]

    def __str__(self) -> str:
        return f"{self.protocol} {self.sequence}: {self.sha256}"
