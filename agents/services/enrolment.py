"""Starting a week's cohort: one cohort per week, each active family and each registered one with its balance."""

from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Max

from agents.models import Agent, Decision, Family, LineUp, Registration, Release
from agents.services import ledger
from cohorts.models import Cohort, Methodology, MissedWeek
from cohorts.weeks import week_start


class NobodyToEnrol(Exception):
    """The line-up in force names nobody who is active."""


@dataclass(frozen=True, slots=True)
class Started:
    cohort: Cohort
    created: bool
    agents: int


def cohort_start(*, at: datetime) -> Started:
    """The cohort of the week that holds `at`: the one on record, else started now with all its agents.

    Safe to call twice or from two processes at once: the week is unique, and whoever comes second gets the
    first one's cohort. Raises NobodyToEnrol where no family is active.
    """
    week = week_start(at)
    while True:
        known = Cohort.objects.filter(week_start=week).first()
        if known is not None:
            return Started(known, created=False, agents=known.agents.count())
        try:
            with transaction.atomic():
                return _start(week, at)
        except IntegrityError:
            # Another process took the week, or (starting another week) the number. The week's row decides;
            # without one it was the number, and the next round takes a fresh one.
            continue


def family_withdraw(family: Family) -> bool:
    """Keeps a family out of cohorts that start from now on; those it is in it plays to their end. True if it was in."""
    return bool(Family.objects.active().filter(pk=family.pk).update(active=False))


def releases_playing(at: datetime) -> list[Release]:
    """The releases of the line-up in force at an instant, in its order, without the families that were withdrawn."""
    line_up = LineUp.objects.in_force(at)
    return [entry.release for entry in line_up.playing().order_by("position")] if line_up else []


def _start(week: datetime, at: datetime) -> Started:
    methodology = Methodology.objects.current()
    number = (Cohort.objects.aggregate(last=Max("number"))["last"] or 0) + 1
    cohort = Cohort.objects.create(number=number, week_start=week, methodology=methodology, started_at=at)
    registered = Registration.objects.live(at).covering(Decision.PROTOCOL)
    of_the_line_up = releases_playing(at)
    if not of_the_line_up:
        raise NobodyToEnrol("no line-up in force names a family that is active: nobody to enrol")
    external = [family.release_at(at) for family in Family.objects.filter(registrations__in=registered)]
    for release in [*of_the_line_up, *filter(None, external)]:
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
    return Started(cohort, created=True, agents=cohort.agents.count())
