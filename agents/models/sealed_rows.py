"""Rows that public reads leave out while they are sealed; `agents.sealing` finds the seals and starts such a read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from django.apps import apps
from django.db import models
from django.db.models import Case, DateTimeField, Q, Value, When


@dataclass(frozen=True, slots=True)
class Seal:
    """The time in which the answers to the tasks of one freeze are secret."""

    frozen_at: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Seals:
    """The seals in force, by the ids of the universes and of the question sets whose tasks they cover."""

    universes: Mapping[int, Seal] = field(default_factory=dict)
    question_sets: Mapping[int, Seal] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.universes or self.question_sets)

    @property
    def begun_at(self) -> datetime | None:
        """The first freeze that they cover."""
        return min((seal.frozen_at for seal in [*self.universes.values(), *self.question_sets.values()]), default=None)

    @property
    def trading_begun_at(self) -> datetime | None:
        """The first freeze of a universe that they cover."""
        return min((seal.frozen_at for seal in self.universes.values()), default=None)

    @property
    def trading_until(self) -> datetime | None:
        """The last end of a universe's seal that they cover."""
        return max((seal.until for seal in self.universes.values()), default=None)

    def one_by_one(self) -> list[tuple[Seals, datetime]]:
        """Each seal alone, with its end."""
        of_universes = [(Seals(universes={pk: seal}), seal.until) for pk, seal in self.universes.items()]
        return of_universes + [(Seals(question_sets={pk: seal}), seal.until) for pk, seal in self.question_sets.items()]


@dataclass(frozen=True)
class ReaderScope:
    """A read that respects seals, which it looks up once, before the first row that may be sealed."""

    look_up: Callable[[], Seals]
    shows_tasks: bool = False
    """Whether it sees sealed tasks, though nothing of their answers."""

    @cached_property
    def seals(self) -> Seals:
        return self.look_up()

    @cached_property
    def sealed_batches(self) -> frozenset[int]:
        """The ids of the question batches whose answers are sealed."""
        if not self.seals.question_sets:
            return frozenset()
        batches = apps.get_model("markets.QuestionBatch")._base_manager.order_by()
        return frozenset(batches.filter(question_set__in=list(self.seals.question_sets)).values_list("pk", flat=True))


NO_SEALS = Seals()
Row = TypeVar("Row", bound=models.Model)
current_scope: ContextVar[ReaderScope | None] = ContextVar("current_scope", default=None)
"""None in commands, jobs and writes: they see everything."""


def seals_in_force() -> Seals:
    """The seals that the current read respects."""
    scope = current_scope.get()
    return NO_SEALS if scope is None else scope.seals


def read_seals() -> Seals:
    """The seals that the current read has looked up already: when they end it shows more, though no row changes."""
    scope = current_scope.get()
    return NO_SEALS if scope is None else scope.__dict__.get("seals", NO_SEALS)


class SealableRows:
    """Mixin of query sets without the rows that are sealed for the current read, by the model's `sealed_by(seals)`.

    A query that begins at the model's `_base_manager` has them all.
    """

    query: Any

    def __init__(self, model: Any = None, query: Any = None, *arguments: Any, **options: Any) -> None:
        super().__init__(model, query, *arguments, **options)  # type: ignore[call-arg]
        if query is None and model is not None and (seals := self.respected_seals()):
            self.query.add_q(~model.sealed_by(seals))

    @staticmethod
    def respected_seals() -> Seals:
        return seals_in_force()


class SealableTasks(SealableRows):
    """Mixin for tasks, whose existence is public: those who operate the arena see the state of a sealed one too."""

    @staticmethod
    def respected_seals() -> Seals:
        scope = current_scope.get()
        return NO_SEALS if scope is None or scope.shows_tasks else scope.seals


class SealableQuerySet(SealableRows, models.QuerySet[Row]):
    """The rows of a model without methods of its own."""


def without_sealed(rows: Any) -> Any:
    """The rows of a query that was made outside of the current read, without those that it must not see."""
    seals = seals_in_force()
    return rows.exclude(rows.model.sealed_by(seals)) if seals else rows


def with_sealed_until(rows: Any) -> Any:
    """The rows with `sealed_until`: the end of the seal in force on each, else null."""
    cases = [When(rows.model.sealed_by(seals), then=Value(until)) for seals, until in seals_in_force().one_by_one()]
    return rows.annotate(sealed_until=Case(*cases, default=None, output_field=DateTimeField()))


def follows_from_sealed_decisions(seals: Seals, time_field: str | None = None) -> Q:
    """Rows of agents that decide at a sealed universe, from its freeze on if a field holds their instant."""
    decisions = apps.get_model("agents.Decision")._base_manager.order_by()
    condition = Q(pk__in=())
    for universe, seal in seals.universes.items():
        agents = decisions.filter(universe=universe).values("agent")
        condition |= Q(agent__in=agents, **({f"{time_field}__gte": seal.frozen_at} if time_field else {}))
    return condition
