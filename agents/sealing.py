"""Sealed answers: while an external agent may still answer a task, nobody reads what its competitors answered.

A seal begins with the freeze and ends with the last window of the agents that take part. Public reads leave the sealed
rows out, REST lists show that they exist, and the hash of each stands in its chain from the beginning.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db.models import Exists, F, Q, Value

from agents.models import Agent, Decision, Elicitation, Family, Registration
from agents.models.family import EXTERNAL_WINDOW
from agents.models.sealed_rows import NO_SEALS, ReaderScope, Seal, Seals, current_scope
from cohorts.models import Methodology
from cohorts.weeks import LONGEST_OPEN_WINDOW, week_start
from markets.models import QuestionSet, Universe, UniverseEntry


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
    of_open_track = Registration.objects.filter(family__track=Family.Track.OPEN)
    recent = Q(frozen_at__gt=at - EXTERNAL_WINDOW) | Q(frozen_at__gt=at - LONGEST_OPEN_WINDOW) & Exists(of_open_track)
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
        until = row.frozen + _last_window(row.kind, row.version, frozen_at=row.frozen)
        if at < until:
            sealed[row.kind][row.task_id] = Seal(row.frozen, until)
    return Seals(sealed[Decision.PROTOCOL], sealed[Elicitation.PROTOCOL])


def sealed_offers(at: datetime) -> Q:
    """The markets that sealed decisions may trade: what is done for those that they did trade tells which."""
    universes = list(open_seals(at).universes)
    return Q(pk__in=UniverseEntry.objects.filter(universe__in=universes).order_by().values("market"))


def _last_window(protocol: str, version: str, *, frozen_at: datetime) -> timedelta:
    """The longest window of the external agents that may answer the tasks of a freeze; zero without any."""
    registrations = Registration.objects.live(frozen_at).covering(protocol)
    if protocol == Elicitation.PROTOCOL:
        tracks = set(registrations.order_by().values_list("family__track", flat=True))
    else:
        participants = Agent.objects.playing().filter(cohort__methodology__version=version)
        agents = participants.filter(family__in=registrations.values("family"))
        tracks = set()
        for agent in agents.select_related("cohort__methodology", "family"):
            if agent.cohort.is_deciding(week_start(frozen_at)):
                tracks.add(agent.family.track)
    if Family.Track.OPEN in tracks:
        return max(EXTERNAL_WINDOW, Methodology.objects.get(version=version).open_window)
    return EXTERNAL_WINDOW if tracks else timedelta(0)
