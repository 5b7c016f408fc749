"""Starts a week's cohort, with an agent for each family of the line-up and each registered external family."""

from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Max

from agents.gateway.catalogue import ModelCatalogue
from agents.models import Agent, Decision, Family, Registration, Release
from agents.services import ledger
from agents.services.lineups import LineUpChange, lineup_changes, lineup_releases, rename_families
from agents.services.release_check import (
    UnusableLineUp,
    approve_releases,
    choose_releases,
    raise_unusable_alerts,
    store_catalogue_terms,
    unusable_releases,
)
from cohorts.models import Cohort, Methodology, MissedWeek
from cohorts.weeks import week_start
from markets.services.cache_versions import Scope, renew_versions


class NoEligibleFamilies(Exception):
    """The line-up in force names no active family."""


@dataclass(frozen=True, slots=True)
class CohortStart:
    """The cohort of a week, whether this call created it, and the releases whose successors it took."""

    cohort: Cohort
    created: bool
    agents: int
    replaced: tuple[LineUpChange, ...] = ()


def start_cohort(
    *,
    at: datetime,
    catalogue: ModelCatalogue | None = None,
    replace: bool = False,
    methodology: Methodology | None = None,
) -> CohortStart:
    """The cohort of the week that contains `at`, created with its agents if there is none yet.

    It follows the newest published methodology, or the one that is given, which is published thereby. Each release is
    checked, against the catalogue if one is given: with `replace`, its successor takes the place of one that can
    not be used, in a line-up of its own. Idempotent, also between concurrent processes: the week is unique.
    Raises NoEligibleFamilies, and UnusableLineUp where a release can not be used.
    """
    week = week_start(at)
    while True:
        cohort = Cohort.objects.filter(week_start=week).first()
        if cohort is not None:
            return CohortStart(cohort, created=False, agents=cohort.agents.count())
        try:
            with transaction.atomic():
                releases = lineup_releases(at)
                usable = _check_releases(releases, catalogue, week=week, at=at, replace=replace)
                new_cohort = _create_cohort(week, at, usable, methodology)
        except IntegrityError:
            # Another process created this week's cohort, or took the number for another week: look again.
            continue
        replaced = lineup_changes(releases, usable)
        return CohortStart(new_cohort, created=True, agents=new_cohort.agents.count(), replaced=replaced)


def enrol_agent(cohort: Cohort, release: Release, *, at: datetime) -> Agent:
    """The new agent of a release in a cohort, with its starting balance."""
    agent = Agent.objects.create(
        cohort=cohort,
        family_id=release.family_id,
        release=release,
        model_id=release.model_id,
        display_name=release.display_name,
        price_prompt=release.price_prompt,
        price_completion=release.price_completion,
    )
    ledger.deposit(agent, cohort.methodology.starting_balance, at=at)
    return agent


def withdraw_family(family: Family) -> bool:
    """Deactivates a family: no later cohort has it, earlier ones keep it. True if it was active."""
    with transaction.atomic():
        withdrawn = Family.objects.active().filter(pk=family.pk).update(active=False)
        if withdrawn:
            renew_versions(Scope.COMPETITION)
    return bool(withdrawn)


def _check_releases(
    releases: list[Release], catalogue: ModelCatalogue | None, *, week: datetime, at: datetime, replace: bool
) -> list[Release]:
    """The releases with what the catalogue says of them; with `replace`, successors of those that can not be used."""
    unusable = unusable_releases(releases, catalogue, week=week)
    if unusable and (not replace or any(fault.successor is None for fault in unusable)):
        raise UnusableLineUp(unusable)
    if catalogue is None:
        return releases
    if unusable:
        releases = choose_releases(releases, catalogue, models={}, week=week, at=at)
        approve_releases(releases, by="ARENA_LINEUP=auto", reason="; ".join(map(str, unusable)), at=at)
    raise_unusable_alerts(releases, (), at=at)
    store_catalogue_terms(releases, catalogue)
    return releases


def _create_cohort(week: datetime, at: datetime, releases: list[Release], methodology: Methodology | None) -> Cohort:
    if methodology is None:
        methodology = Methodology.objects.current()
    elif methodology.published_at is None:
        methodology.publish(at)
    number = (Cohort.objects.aggregate(last=Max("number"))["last"] or 0) + 1
    cohort = Cohort.objects.create(number=number, week_start=week, methodology=methodology, started_at=at)
    if not releases:
        raise NoEligibleFamilies("no line-up in force names a family that is active: nobody to enrol")
    registrations = Registration.objects.live(at).covering(Decision.PROTOCOL)
    external = [family.release_at(at) for family in Family.objects.filter(registrations__in=registrations)]
    for release in [*releases, *filter(None, external)]:
        enrol_agent(cohort, release, at=at)
    if not Cohort.objects.filter(week_start__gt=week).exists():
        rename_families(releases)
    MissedWeek.objects.filter(week_start=week).delete()
    renew_versions(Scope.COMPETITION)
    return cohort
