"""Starts a week's cohort, with an agent for each family of the line-up and each registered external family."""

from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Max

from agents.models import Agent, Decision, Family, LineUp, Registration, Release
from agents.services import ledger
from cohorts.models import Cohort, Methodology, MissedWeek
from cohorts.weeks import week_start
from markets.services.cache_versions import Scope, renew_versions


class NoEligibleFamilies(Exception):
    """The line-up in force names no active family."""


@dataclass(frozen=True, slots=True)
class CohortStart:
    """The cohort of a week, and whether this call created it."""

    cohort: Cohort
    created: bool
    agents: int


def start_cohort(*, at: datetime) -> CohortStart:
    """The cohort of the week that contains `at`, created with its agents if there is none yet.

    Idempotent, also between concurrent processes: the week is unique. Raises NoEligibleFamilies.
    """
    week = week_start(at)
    while True:
        cohort = Cohort.objects.filter(week_start=week).first()
        if cohort is not None:
            return CohortStart(cohort, created=False, agents=cohort.agents.count())
        try:
            with transaction.atomic():
                return _create_cohort(week, at)
        except IntegrityError:
            # Another process created this week's cohort, or took the number for another week: look again.
            continue


def withdraw_family(family: Family) -> bool:
    """Deactivates a family: no later cohort has it, earlier ones keep it. True if it was active."""
    with transaction.atomic():
        withdrawn = Family.objects.active().filter(pk=family.pk).update(active=False)
        if withdrawn:
            renew_versions(Scope.COMPETITION)
    return bool(withdrawn)


def lineup_releases(at: datetime) -> list[Release]:
    """The releases of the line-up in force at an instant, in its order, of active families."""
    line_up = LineUp.objects.in_force(at)
    return [entry.release for entry in line_up.active_entries().order_by("position")] if line_up else []


def _create_cohort(week: datetime, at: datetime) -> CohortStart:
    methodology = Methodology.objects.current()
    number = (Cohort.objects.aggregate(last=Max("number"))["last"] or 0) + 1
    cohort = Cohort.objects.create(number=number, week_start=week, methodology=methodology, started_at=at)
    releases = lineup_releases(at)
    if not releases:
        raise NoEligibleFamilies("no line-up in force names a family that is active: nobody to enrol")
    registrations = Registration.objects.live(at).covering(Decision.PROTOCOL)
    external = [family.release_at(at) for family in Family.objects.filter(registrations__in=registrations)]
    for release in [*releases, *filter(None, external)]:
        agent = Agent.objects.create(
            cohort=cohort,
            family_id=release.family_id,
            release=release,
            model_id=release.model_id,
            display_name=release.display_name,
            price_prompt=release.price_prompt,
            price_completion=release.price_completion,
        )
        ledger.deposit(agent, methodology.starting_balance, at=at)
    MissedWeek.objects.filter(week_start=week).delete()
    renew_versions(Scope.COMPETITION)
    return CohortStart(cohort, created=True, agents=cohort.agents.count())
