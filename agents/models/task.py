"""What a model is asked to do, whatever the protocol: claimed before it is asked, final once, for ever."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from django.db import models
from django.db.models import OuterRef, Q, Subquery, Sum

from cohorts.models import Methodology

if TYPE_CHECKING:
    from agents.models.call import ModelCall


@dataclass(frozen=True, slots=True)
class Retries:
    """How often an answer may be malformed, or refused as a whole, after the first; and what the model is told."""

    malformed: int
    refused: int
    malformed_note: str
    refused_note: str


class Status(models.TextChoices):
    CLAIMED = "claimed"
    COMPLETED = "completed"
    FAILED = "failed"
    MISSED = "missed"


T = TypeVar("T", bound="Task")


class TaskQuerySet(models.QuerySet[T]):
    def final(self) -> Self:
        return self.filter(status__in=(Status.COMPLETED, Status.MISSED))

    def claimable(self, now: datetime) -> Self:
        """Failed ones, and claims whose lease is over."""
        return self.filter(Q(status=Status.FAILED) | Q(status=Status.CLAIMED, lease_until__lte=now))

    def with_costs(self) -> Self:
        """Adds `tokens_input`, `tokens_output` and `cost_usd`, summed over every call.

        Each in a query of its own: joined and grouped, a page of tasks would sum the calls of all of them first.
        """
        of: Any = self.model._meta.get_field("calls")
        calls = of.related_model._default_manager.filter(**{of.field.name: OuterRef("pk")})
        grouped = calls.order_by().values(of.field.name)
        return self.annotate(
            **{
                column: Subquery(grouped.annotate(total=Sum(column)).values("total"))
                for column in ("tokens_input", "tokens_output", "cost_usd")
            }
        )


class Task(models.Model):
    """One thing that one model is asked. A protocol says what: its prompt, how its answer is read, who pays."""

    Status = Status
    PROTOCOL: ClassVar[str]

    status = models.CharField(max_length=10, choices=Status.choices)
    claim_token = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True, help_text="On the real clock.")
    refusals = models.PositiveSmallIntegerField(
        default=0, help_text="How often a well-formed answer was refused as a whole."
    )
    error = models.TextField(blank=True)

    calls: Any  # the model calls that asked for it
    objects: ClassVar[Any] = TaskQuerySet.as_manager()

    class Meta:
        abstract = True
        constraints = [
            models.CheckConstraint(
                condition=Q(status="claimed", claim_token__isnull=False, lease_until__isnull=False)
                | (~Q(status="claimed") & Q(claim_token__isnull=True, lease_until__isnull=True)),
                name="only_a_claimed_%(class)s_has_a_lease",
            )
        ]
        indexes = [models.Index(fields=["status", "lease_until"], name="%(class)s_by_lease")]

    @classmethod
    def of_week(cls, week_start: datetime) -> Q:
        """The tasks whose calls count towards a week's spend cap."""
        raise NotImplementedError

    @property
    def week_start(self) -> datetime:
        raise NotImplementedError

    @property
    def methodology(self) -> Methodology:
        raise NotImplementedError

    @property
    def identity(self) -> str:
        """What it is, whatever its row's id: requests of one attempt share a key made of it."""
        raise NotImplementedError

    @property
    def about(self) -> dict[str, int | str]:
        """What a log line says of it."""
        raise NotImplementedError

    @property
    def retries(self) -> Retries:
        raise NotImplementedError

    @property
    def model_id(self) -> str:
        raise NotImplementedError

    @property
    def token_prices(self) -> tuple[Decimal, Decimal]:
        """US dollars per prompt token and per completion token."""
        raise NotImplementedError

    @property
    def system_prompt(self) -> str:
        raise NotImplementedError

    def user_prompt(self, call: ModelCall) -> str:
        """The user message of one of its calls as it was sent, byte for byte."""
        raise NotImplementedError

    def read(self, content: str) -> Any:
        """An answer as JSON that can be stored and carried out. Raises Malformed."""
        raise NotImplementedError
