"""Questions with their options, and the daily frozen sets of them that forecasters are asked."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Exists, F, OuterRef, Q

from foundation.change_times import ChangeTime, TimedQuerySet
from foundation.row_hashes import RowHashField
from markets.models.market import Market, Outcome
from markets.models.universe import SEALED_AFTER_FREEZE, Universe
from markets.sources.registry import source_choices

NONE_OF_THESE = "None of these"
"""The option that completes an exclusive list; venues do not state that a list is complete."""


def frozen_before_close(prefix: str = "") -> Q:
    """The entries of questions that were frozen before these closed: forecasts of others count on no board.

    A question closes as its venue states, or where it is seen closed before. `prefix` leads to the entry.
    """
    frozen_at = F(f"{prefix}question_set__frozen_at")
    condition = Q()
    for close in ("closes_at", "closed_at"):
        field = f"{prefix}question__{close}"
        condition &= Q(**{field: None}) | Q(**{f"{field}__gt": frozen_at})
    return condition


class QuestionQuerySet(TimedQuerySet["Question"]):
    def to_resolve(self) -> QuestionQuerySet:
        """Unresolved questions with a market that is no longer active.

        So too cancelled questions with independent options of which one is decided: they were cancelled as a whole
        before each option was decided by its own market.
        """
        listed = QuestionOption.objects.filter(question=OuterRef("pk"), outcome__isnull=False)
        inactive = listed.exclude(outcome__market__status=Market.Status.ACTIVE)
        unresolved = Q(Exists(inactive), status__in=(Question.Status.OPEN, Question.Status.CLOSED))
        decided = Exists(listed.filter(outcome__market__status=Market.Status.RESOLVED))
        return self.filter(unresolved | Q(decided, status=Question.Status.CANCELLED, exclusive=False))


class Question(ChangeTime):
    """A question with its options: one market, or the markets of an event as one list.

    The list identifies the question: when an event gets another market, a new question is made.
    """

    class Status(models.TextChoices):
        OPEN = "open"
        CLOSED = "closed"
        RESOLVED = "resolved"
        CANCELLED = "cancelled"

    source = models.CharField(max_length=20, choices=source_choices, help_text="Its venue.")
    event_key = models.CharField(max_length=200, db_index=True, help_text="Shared by the questions of one event.")
    market = models.ForeignKey(
        Market, null=True, blank=True, on_delete=models.PROTECT, related_name="questions",
        help_text="Its market; null where it joins the markets of an event.",
    )  # fmt: skip
    options_sha256 = models.CharField(
        max_length=64, help_text="SHA-256 of the source, the event or market, and the options."
    )
    text = models.TextField(help_text="The question.")
    rules = models.TextField(blank=True, help_text="Its resolution rules.")
    category = models.CharField(max_length=120, blank=True, db_index=True, help_text="Its category.")
    exclusive = models.BooleanField(
        help_text="True if exactly one option happens; otherwise each happens or not on its own."
    )
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.OPEN)
    closes_at = models.DateTimeField(
        null=True, blank=True, help_text="Scheduled close, which follows its markets while it is open."
    )
    first_asked_at = models.DateTimeField(help_text="First time in a question set.")
    closed_at = models.DateTimeField(null=True, blank=True, help_text="First time seen closed.")
    resolved_at = models.DateTimeField(null=True, blank=True, help_text="Time of resolution.")

    objects = QuestionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["options_sha256"], name="one_question_per_event_and_options"),
            models.CheckConstraint(
                condition=Q(status__in=["resolved", "cancelled"], resolved_at__isnull=False)
                | Q(status__in=["open", "closed"], resolved_at__isnull=True),
                name="question_times_match_its_status",
            ),
        ]
        indexes = [
            models.Index(fields=["first_asked_at", "id"], name="question_by_first_day"),
            models.Index(fields=["closes_at", "id"], name="question_by_close"),
            models.Index(fields=["resolved_at", "id"], name="question_by_resolution"),
        ]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.text

    @property
    def is_final(self) -> bool:
        return self.status in (self.Status.RESOLVED, self.Status.CANCELLED)

    @property
    def venue_url(self) -> str | None:
        """The address of its first market's page at the venue; expects its options with their markets prefetched."""
        markets = [option.outcome.market for option in self.options.all() if option.outcome]
        return markets[0].venue_url if markets else None


class QuestionOption(models.Model):
    """A possible answer to a question, and the side of a market that pays if it happens."""

    question = models.ForeignKey(Question, on_delete=models.CASCADE, related_name="options")
    index = models.PositiveSmallIntegerField(help_text="Its place among the question's options.")
    name = models.CharField(max_length=300, help_text="Its name.")
    outcome = models.ForeignKey(
        Outcome, null=True, blank=True, on_delete=models.PROTECT, related_name="question_options",
        help_text="The outcome that pays if it happens; null where no market stands for it.",
    )  # fmt: skip
    happened = models.BooleanField(
        null=True,
        blank=True,
        help_text="True if the option happened; null until resolved, and where its own market was cancelled.",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["question", "index"], name="one_option_per_index"),
            models.UniqueConstraint(fields=["question", "name"], name="one_option_per_name"),
        ]
        ordering = ["question_id", "index"]

    def __str__(self) -> str:
        return self.name


class QuestionSet(models.Model):
    """The questions of a day under one methodology, frozen together. Later parts add markets traded meanwhile."""

    day = models.DateTimeField(help_text="00:00 UTC of the day.")
    methodology = models.CharField(max_length=20, help_text="The methodology's version.")
    part = models.PositiveSmallIntegerField(
        default=0, help_text="0 for the set of the day; 1 and up for questions added later that day."
    )
    universe = models.ForeignKey(
        Universe, null=True, blank=True, on_delete=models.PROTECT, related_name="question_sets",
        help_text="The universe whose prices it uses, on the day of the week's decisions.",
    )  # fmt: skip
    frozen_at = models.DateTimeField(help_text="Time of the freeze.")
    sealed_until = models.DateTimeField(
        null=True,
        blank=True,
        help_text="The end of the last window of an external agent that may answer; null without any.",
    )
    sha256 = models.CharField(max_length=64, help_text="SHA-256 of its entries.")
    evidence_sha256 = models.CharField(
        max_length=64, blank=True, help_text="SHA-256 over its evidence; empty where none was gathered."
    )
    evidence_dropped: Any = models.JSONField(
        default=dict, blank=True, help_text="Reason to the number of texts that were not shown for it."
    )
    left_out: Any = models.JSONField(
        default=dict, blank=True, help_text="Condition to the reason why it is not asked on this day though it is on."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["day", "methodology", "part"], name="one_question_set_per_day_methodology_and_part"
            ),
            models.CheckConstraint(condition=SEALED_AFTER_FREEZE, name="question_set_is_sealed_after_its_freeze"),
        ]
        indexes = [models.Index(fields=["sealed_until"], name="question_set_by_seal")]
        ordering = ["-day", "part"]

    def __str__(self) -> str:
        return f"{self.day:%Y-%m-%d} {self.methodology}" + (f", part {self.part}" if self.part else "")


class QuestionBatch(models.Model):
    """The questions of one request under one condition (arm), with the blocks of its prompt, byte for byte."""

    question_set = models.ForeignKey(QuestionSet, on_delete=models.CASCADE, related_name="batches")
    arm = models.CharField(max_length=20, help_text="The condition's name.")
    number = models.PositiveSmallIntegerField(help_text="Its number in the set and arm.")
    block = models.TextField(help_text="QUESTIONS")
    evidence_block = models.TextField(blank=True, help_text="EVIDENCE; empty in a condition without it.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["question_set", "arm", "number"], name="one_batch_per_set_arm_and_number")
        ]
        ordering = ["question_set_id", "number", "arm"]

    def __str__(self) -> str:
        return f"{self.question_set}, batch {self.number}, {self.arm}"

    @property
    def entries(self) -> models.QuerySet[QuestionEntry]:
        """The batch's questions, in order."""
        entries = QuestionEntry.objects.filter(question_set=self.question_set_id, batch=self.number)
        return entries.select_related("question").order_by("position")

    @property
    def blocks(self) -> dict[str, str]:
        """The blocks of its prompt by their headings."""
        evidence = {"EVIDENCE": self.evidence_block} if self.evidence_block else {}
        return {"QUESTIONS": self.block, **evidence}


class QuestionEntry(models.Model):
    """A question in a set, with the prices of its options at the freeze."""

    class Reason(models.TextChoices):
        SELECTED = "selected", "selected by the rule"
        TRADED = "traded", "an agent bet on it or holds it"

    question_set = models.ForeignKey(QuestionSet, on_delete=models.CASCADE, related_name="entries")
    question = models.ForeignKey(Question, on_delete=models.PROTECT, related_name="entries")
    position = models.PositiveIntegerField(help_text="Its place in the set.")
    batch = models.PositiveSmallIntegerField(help_text="The number of its question batch in each arm.")
    reason = models.CharField(
        max_length=10, choices=Reason.choices, help_text="selected (by the rule) or traded (its market was traded)."
    )
    prices: Any = models.JSONField(
        help_text="Option to `price` (mid), `ask`, `no_ask` (US dollars a share, or null) and `stale`."
    )
    facts: Any = models.JSONField(
        default=dict, blank=True,
        help_text="What a prompt may show besides: `event`, `volume_24h_usd`, and `spread` by option.",
    )  # fmt: skip
    closes_on = models.DateField(
        null=True, blank=True, help_text="Day of the scheduled close at the freeze, as prompts show it (YYYY-MM-DD)."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["question_set", "question"], name="one_entry_per_set_and_question"),
            models.UniqueConstraint(fields=["question_set", "position"], name="one_entry_per_set_and_position"),
        ]
        ordering = ["question_set_id", "position"]

    def __str__(self) -> str:
        return f"{self.question_set}: {self.question}"

    def price(self, option: str) -> float | None:
        """The option's mid price at the freeze."""
        text = self.prices.get(option, {}).get("price")
        return None if text is None else float(text)


def day_of(at: datetime) -> datetime:
    """00:00 UTC of the day that holds `at`."""
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


class EvidenceClaim(models.Model):
    """A lease on the evidence of a day under one methodology: only its holder may pay for queries."""

    day = models.DateTimeField(help_text="00:00 UTC of the day.")
    methodology = models.CharField(max_length=20, help_text="The methodology's version.")
    lease_until = models.DateTimeField(help_text="Wall-clock time, in replays too.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["day", "methodology"], name="one_evidence_claim_per_day_and_methodology")
        ]
        ordering = ["-day", "methodology"]

    def __str__(self) -> str:
        return f"evidence of {self.day:%Y-%m-%d} {self.methodology}"


class EvidenceSnippet(models.Model):
    """A snippet about a question, as every model is shown it. Dates are those that its source states."""

    entry = models.ForeignKey(
        QuestionEntry, on_delete=models.CASCADE, related_name="snippets", help_text="The entry of its question."
    )
    position = models.PositiveSmallIntegerField(help_text="Its place among the snippets of its question, from 1.")
    title = models.CharField(max_length=500, blank=True, help_text="Its title.")
    url = models.TextField(blank=True, help_text="Its address.")
    source = models.CharField(max_length=200, blank=True, help_text="The publisher, or the host of the address.")
    published_at = models.DateTimeField(null=True, blank=True, help_text="As its source states; null if it does not.")
    retrieved_at = models.DateTimeField(help_text="When it was retrieved; never after the freeze.")
    text = models.TextField(help_text="The snippet.")
    sha256 = models.CharField(max_length=64, help_text="SHA-256 of the text.")
    states_outcome = models.BooleanField(
        null=True, blank=True, help_text="True if it states what happened; null until its question has resolved."
    )
    audited_at = models.DateTimeField(null=True, blank=True)
    row_sha256 = RowHashField(but=("states_outcome", "audited_at"))

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["entry", "position"], name="one_snippet_per_entry_and_position"),
        ]
        ordering = ["entry_id", "position"]

    def __str__(self) -> str:
        return self.title or self.url or self.text[:80]

    @property
    def link(self) -> str:
        """Its address, if it is one of the web; a page must link to no other."""
        return self.url if self.url.startswith(("https://", "http://")) else ""
