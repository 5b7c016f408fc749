"""Who plays and played, and by which rules: kept by the process for as long as none of it changes.

Every page needs these few rows, and nobody changes them but once a week. What is kept under a token that the database
renews with the change itself (`scoring.revisions`) is never stale.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal

from agents.models import Agent, Family
from cohorts.models import Cohort, Methodology
from scoring.revisions import PLAYERS, tokens


@dataclass(frozen=True, slots=True)
class Player:
    """An agent, as far as its history rests on it: `cash` is what it was left with, if its cohort is over."""

    pk: int
    family: Family
    cohort: Cohort
    model_id: str
    cash: Decimal


@dataclass(frozen=True, slots=True)
class Roster:
    """Families by their order, cohorts by number with their methodologies, and all agents. To be read, never written:
    all threads share the objects."""

    families: Mapping[int, Family]
    cohorts: Mapping[int, Cohort]
    methodologies: Mapping[int, Methodology]
    players: Sequence[Player]
    current: Methodology | None
    """The newest that is published."""

    @property
    def by_slug(self) -> dict[str, Family]:
        return {family.slug: family for family in self.families.values()}

    @property
    def methodology(self) -> Methodology:
        """The version that new cohorts get. Raises Methodology.DoesNotExist where none is published."""
        return self.current or Methodology.objects.current()

    def cohort(self, number: int) -> Cohort | None:
        return next((cohort for cohort in self.cohorts.values() if cohort.number == number), None)


_kept: tuple[str, Roster] | None = None


def roster() -> Roster:
    """The roster as of now."""
    global _kept
    # Asked before the rows are read: what changes in between is then kept under a token that no longer holds.
    token = tokens().get(PLAYERS)
    kept = _kept
    if kept is None or token is None or kept[0] != token:
        kept = (token or "", _read())
        _kept = kept
    return kept[1]


def _read() -> Roster:
    families = {family.pk: family for family in Family.objects.order_by("pk")}
    methodologies = {methodology.pk: methodology for methodology in Methodology.objects.order_by("version")}
    cohorts = {cohort.pk: cohort for cohort in Cohort.objects.order_by("number")}
    for cohort in cohorts.values():
        Cohort.methodology.field.set_cached_value(cohort, methodologies[cohort.methodology_id])
    rows = Agent.objects.values_list("pk", "family", "cohort", "model_id", "cash")
    players = [Player(pk, families[family], cohorts[cohort], model, cash) for pk, family, cohort, model, cash in rows]
    current = None
    with suppress(Methodology.DoesNotExist):
        current = Methodology.objects.current()
    return Roster(families, cohorts, methodologies, players, current)


def with_company(agents: Iterable[Agent], known: Roster | None = None) -> list[Agent]:
    """The agents with their families, cohorts and methodologies, each of these once; `known` spares a look at them."""
    found = list(agents)
    known = known or roster()
    for agent in found:
        Agent.family.field.set_cached_value(agent, known.families[agent.family_id])
        Agent.cohort.field.set_cached_value(agent, known.cohorts[agent.cohort_id])
    return found
