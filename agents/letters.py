"""Letters: what only its agent may read of a task before its seal has ended and its envelope is opened.

They are calls, instructions, refused forecasts, submissions, receipts, attempts and what envelopes hold. What an answer
changes elsewhere does not exist before. Every public reader and every published sum selects them here; jobs and
services read all. Letters are hidden from whoever reads now, of whatever instant: so the clock is read here.
"""

from datetime import datetime
from typing import Any

from django.db.models import Case, DateTimeField, F, Model, Q, Value, When

from agents.models import (
    Attempt,
    Decision,
    Elicitation,
    Envelope,
    Instruction,
    ModelCall,
    Receipt,
    RefusedForecast,
    Submission,
    Task,
)
from foundation.clock import now
from markets.models import QuestionSet, Universe

TASKS: dict[type[Model], str] = {
    ModelCall: "",
    Envelope: "",
    Instruction: "call__",
    RefusedForecast: "call__",
    Submission: "call__",
    Receipt: "submission__call__",
}
"""The path from each kind of letter to its decision or elicitation."""
FREEZES: dict[type[Model], tuple[str, ...]] = {
    Decision: ("universe",),
    Elicitation: ("batch__question_set",),
    Attempt: ("universe", "batch__question_set"),
    Receipt: ("submission__call__decision__universe", "submission__call__elicitation__batch__question_set"),
}
"""The paths to the freeze, which states the end of the seal."""


def published(rows: Any) -> Any:
    """Letters or tasks without the sealed ones."""
    return rows.exclude(sealed(rows.model))


def with_seals(rows: Any) -> Any:
    """Letters or tasks with `is_sealed`."""
    return rows.annotate(is_sealed=Case(When(sealed(rows.model), then=Value(True)), default=Value(False)))


def with_sealed_until(rows: Any) -> Any:
    """Letters or tasks with `is_sealed` and `sealed_until`: the end of the seal of a sealed one, else null.

    Envelopes state theirs themselves.
    """
    if rows.model is Envelope:
        return with_seals(rows)
    ends = []
    for freeze in FREEZES[rows.model]:
        end = f"{freeze}__sealed_until"
        ends.append(When(Q(is_sealed=True, **{f"{end}__isnull": False}), then=F(end)))
    return with_seals(rows).annotate(sealed_until=Case(*ends, default=None, output_field=DateTimeField()))


def sealed(model: type[Model]) -> Q:
    """The condition that a letter or a task is sealed: the answer waits in its envelope, or may come under the seal."""
    if model in TASKS:
        decisions, elicitations = (sealed_tasks(kind).values("pk") for kind in (Decision, Elicitation))
        path = TASKS[model]
        return Q(**{f"{path}decision__in": decisions}) | Q(**{f"{path}elicitation__in": elicitations})
    under_seal = Q()
    for freeze in FREEZES[model]:
        kind = Universe if freeze == "universe" else QuestionSet
        under_seal |= Q(**{f"{freeze}__in": kind.objects.filter(sealed_until__gt=now()).order_by().values("pk")})
    if issubclass(model, Task):
        return Q(status=Task.Status.ANSWERED) | (under_seal & ~Q(status=Task.Status.COMPLETED))
    return under_seal


def sealed_tasks(kind: type[Task]) -> Any:
    """The tasks of a kind whose letters are sealed."""
    return kind.objects.filter(sealed(kind)).order_by()


def public_error(task: Task) -> str:
    """The error of a task, unless it is sealed."""
    return "sealed" if sealed_tasks(type(task)).filter(pk=task.pk).exists() else task.error


def sealed_freezes(kind: type[Universe] | type[QuestionSet], at: datetime) -> Any:
    """The universes or question sets with sealed letters at an instant."""
    task: type[Task] = Decision if kind is Universe else Elicitation
    (freeze,) = FREEZES[task]
    answered = task.objects.filter(status=Task.Status.ANSWERED).order_by().values(freeze)
    return kind.objects.filter(Q(sealed_until__gt=at) | Q(pk__in=answered)).order_by()


def first_sealed_freeze(at: datetime) -> datetime | None:
    """The instant of the first freeze with letters that are sealed at `at`; None without any."""
    universes, sets = (sealed_freezes(kind, at).values_list("frozen_at", flat=True) for kind in (Universe, QuestionSet))
    return min(universes.union(sets), default=None)
