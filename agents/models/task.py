"""The task: one request for an answer of one model, claimed before the model is asked; final once completed or missed.

An answer that is sealed waits in an envelope: until that is opened, the task is `answered`.

`Decision` is the task of the trading protocol, `Elicitation` that of the forecast protocol.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from django.db import models
from django.db.models import OuterRef, Q, Subquery, Sum, Value
from django.db.models.functions import Coalesce

from agents.models.family import Release
from agents.records import new_nonce
from arena_verifier.answer_texts import Malformed
from cohorts.models import Methodology
from foundation.change_times import ChangeTime, TimedQuerySet

if TYPE_CHECKING:
    from agents.models.agent import Agent
    from agents.prices import TokenPrices
    from cohorts.forecast_rules import ForecastRules
    from markets.selection_rule import SearchTool


@dataclass(frozen=True, slots=True)
class PromptParts:
    """The parts of a user message that differ from call to call, named as the columns of `ModelCall`."""

    portfolio_block: str = ""
    positions_block: str = ""
    awaiting: str = ""
    retry_note: str = ""
    questions_block: str = ""


PROMPT_PARTS = tuple(field.name for field in fields(PromptParts))


class Status(models.TextChoices):
    CLAIMED = "claimed"
    ANSWERED = "answered"
    COMPLETED = "completed"
    FAILED = "failed"
    MISSED = "missed"


AnyTask = TypeVar("AnyTask", bound="Task")


class TaskQuerySet(TimedQuerySet[AnyTask]):
    def final(self) -> Self:
        """The tasks that are asked no more: completed, missed, or answered under a seal."""
        return self.filter(status__in=(Status.ANSWERED, Status.COMPLETED, Status.MISSED))

    def claimable(self, now: datetime) -> Self:
        """Failed tasks, and claimed ones whose lease has expired."""
        return self.filter(Q(status=Status.FAILED) | Q(status=Status.CLAIMED, lease_until__lte=now))

    def with_costs(self, calls: Any) -> Self:
        """Adds `tokens_input`, `tokens_output` and `cost_usd`, summed over those of these calls; 0 without any."""
        relation: Any = self.model._meta.get_field("calls")
        of_task = calls.filter(**{relation.field.name: OuterRef("pk")})
        grouped = of_task.order_by().values(relation.field.name)
        sums = {}
        # A subquery each: joined and grouped, a page of tasks would first sum the calls of all tasks.
        for column in ("tokens_input", "tokens_output", "cost_usd"):
            zero = Value(0, output_field=relation.related_model._meta.get_field(column))
            sums[column] = Coalesce(Subquery(grouped.annotate(total=Sum(column)).values("total")), zero)
        return self.annotate(**sums)


class Task(ChangeTime):
    """The claim, the status and the calls of one task. A protocol adds its prompt, its parser and its records."""

    Status = Status
    PROTOCOL: ClassVar[str]

    status = models.CharField(
        max_length=10, choices=Status.choices, help_text="claimed, answered (under seal), completed, failed or missed."
    )
    lease_id = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True, help_text="Wall-clock time, in replays too.")
    refusals = models.PositiveSmallIntegerField(default=0, help_text="Well-formed answers that were refused whole.")
    error = models.TextField(blank=True, help_text="The last error.")
    nonce = models.CharField(
        max_length=64,
        default=new_nonce,
        help_text="32 random bytes in hex, part of its record in the chain; public with the answer.",
    )

    is_sealed: bool
    """Whether its letters are sealed; of tasks that are read `with_seals`."""
    calls: Any  # the reverse relation of ModelCall's foreign key
    envelopes: Any  # and of Envelope's
    objects: ClassVar[Any] = TaskQuerySet.as_manager()

    class Meta:
        abstract = True
        constraints = [
            models.CheckConstraint(
                condition=Q(status="claimed", lease_id__isnull=False, lease_until__isnull=False)
                | (~Q(status="claimed") & Q(lease_id__isnull=True, lease_until__isnull=True)),
                name="only_a_claimed_%(class)s_has_a_lease",
            )
        ]
        indexes = [
            models.Index(fields=["status", "lease_until"], name="%(class)s_by_lease"),
            models.Index(fields=["updated_at"], name="%(class)s_by_change"),
        ]

    @classmethod
    def in_week(cls, week_start: datetime) -> Q:
        """The filter for tasks whose calls count towards a week's spend limit."""
        raise NotImplementedError

    @property
    def seal_end(self) -> datetime | None:
        """The end of the seal of its freeze; None without one."""
        raise NotImplementedError

    def is_sealed_at(self, at: datetime) -> bool:
        """Whether an answer of this instant takes effect only when the seal ends."""
        return self.seal_end is not None and at < self.seal_end

    @property
    def week_start(self) -> datetime:
        raise NotImplementedError

    @property
    def methodology(self) -> Methodology:
        raise NotImplementedError

    @property
    def rules(self) -> Methodology | ForecastRules:
        """The part of the methodology with the protocol's prompts and retry notes."""
        return self.methodology

    @property
    def stable_key(self) -> str:
        """A key that is the same in every database; idempotency keys are derived from it."""
        raise NotImplementedError

    @property
    def log_context(self) -> dict[str, int | str]:
        """The fields that identify the task in a log event."""
        raise NotImplementedError

    @property
    def release(self) -> Release:
        raise NotImplementedError

    @property
    def competitor(self) -> Agent | Release:
        """The agent or the release that is asked, with the model id and the prices that hold for the task."""
        return self.release

    @property
    def answer_schema(self) -> dict[str, Any]:
        """The JSON schema of an answer, for models that can be held to one; the parser decides all the same."""
        raise NotImplementedError

    @property
    def temperature(self) -> float:
        return self.methodology.temperature

    @property
    def search_tool(self) -> SearchTool | None:
        """The search that the model may use; None for none."""
        return None

    @property
    def model_id(self) -> str:
        return self.competitor.model_id

    @property
    def token_prices(self) -> TokenPrices:
        """US dollars per token, with the prices under conditions."""
        return self.competitor.token_prices

    @property
    def system_prompt(self) -> str:
        return self.rules.system_prompt

    def user_prompt(self, parts: PromptParts) -> str:
        """The user message, byte for byte as it is sent."""
        raise NotImplementedError

    def parse(self, content: str) -> Any:
        """An answer as JSON that can be stored and executed. Raises Malformed."""
        raise NotImplementedError

    def is_answer(self, content: str) -> bool:
        """Whether a text is a whole, well-formed answer."""
        try:
            self.parse(content)
        except Malformed:
            return False
        return True

    def parse_cut(self, content: str) -> Any:
        """The complete items of an answer that breaks off, as `parse` returns them; None if there are none."""
        return None


class TaskReference:
    """A row that belongs to one decision or one elicitation."""

    decision: Any
    elicitation: Any

    @property
    def task(self) -> Task:
        return self.decision or self.elicitation
