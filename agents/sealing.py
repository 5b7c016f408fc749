"""Sealed answers: while an external agent may still answer a task, nobody reads what its competitors answered.

A seal begins with the freeze and ends with the agents' window. Public reads leave the sealed rows out, REST lists show
that they exist, and the hash of each stands in its chain from the beginning.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db.models import F, Q, Value

from agents.models import Agent, Decision, Elicitation, Registration
from agents.models.family import EXTERNAL_WINDOW
from agents.models.sealed_rows import NO_SEALS, ReaderScope, Seal, Seals, current_scope
from cohorts.weeks import week_start
from markets.models import QuestionSet, Universe


@contextmanager
def respecting_seals(*, at: datetime, shows_tasks: bool = False) -> Iterator[None]:
    """While the block runs, this thread's reads leave out what is sealed at an instant. It is looked up when needed."""
    token = current_scope.set(ReaderScope(lambda: open_seals(at), shows_tasks))
    try:
        yield
    finally:
        current_scope.reset(token)


def open_seals(at: datetime) -> Seals:
    """The seals in force at an instant: of tasks that an external agent may still answer."""
    recent = Q(frozen_at__gt=at - EXTERNAL_WINDOW)
    columns = {"task_id": F("pk"), "frozen": F("frozen_at"), "version": F("methodology")}
    universes = Universe.objects.filter(recent).order_by().annotate(kind=Value(Decision.PROTOCOL), **columns)
    sets = QuestionSet.objects.filter(recent).order_by().annotate(kind=Value(Elicitation.PROTOCOL), **columns)
    names = ("kind", *columns)
    sealed: dict[str, dict[int, Seal]] = {Decision.PROTOCOL: {}, Elicitation.PROTOCOL: {}}
    # One query, since nearly every public read asks it; outside these minutes it finds nothing.
    frozen = list(universes.values_list(*names, named=True).union(sets.values_list(*names, named=True), all=True))
    if not frozen or not Registration.objects.exists():
        return NO_SEALS
    for row in frozen:
        if _has_external_agent(row.kind, row.version, frozen_at=row.frozen, at=at):
            sealed[row.kind][row.task_id] = Seal(row.frozen, row.frozen + EXTERNAL_WINDOW)
    return Seals(sealed[Decision.PROTOCOL], sealed[Elicitation.PROTOCOL])


def _has_external_agent(protocol: str, methodology: str, *, frozen_at: datetime, at: datetime) -> bool:
    """Whether an external agent could answer the tasks of a freeze at some time up to `at`."""
    registered = Q(registered_at__lte=max(at, frozen_at)) & (Q(revoked_at=None) | Q(revoked_at__gt=frozen_at))
    registrations = Registration.objects.filter(registered).covering(protocol)
    if protocol == Elicitation.PROTOCOL:
        return registrations.exists()
    agents = Agent.objects.playing().filter(
        family__in=registrations.values("family"), cohort__methodology__version=methodology
    )
    cohorts = {agent.cohort for agent in agents.select_related("cohort__methodology")}
    return any(cohort.is_deciding(week_start(frozen_at)) for cohort in cohorts)
