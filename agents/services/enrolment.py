"""Starting a week's cohort: one cohort per week, one agent per active family, each with its starting balance."""

from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Max

from agents.models import Agent, Family
from agents.services import ledger
from cohorts.models import Cohort, Methodology, MissedWeek
from cohorts.weeks import week_start


class NobodyToEnrol(Exception):
    """No active family has a release."""


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


def _start(week: datetime, at: datetime) -> Started:
    methodology = Methodology.objects.current()
    number = (Cohort.objects.aggregate(last=Max("number"))["last"] or 0) + 1
    cohort = Cohort.objects.create(number=number, week_start=week, methodology=methodology, started_at=at)
    agents = 0
    for family in Family.objects.active():
        release = family.release_at(at)
        if release is None:
            continue
        agent = Agent.objects.create(
            cohort=cohort,
            family=family,
            release=release,
            model_id=release.model_id,
            display_name=release.display_name,
            price_prompt=release.price_prompt,
            price_completion=release.price_completion,
        )
        ledger.deposit(agent, methodology.starting_balance, at=at)
        agents += 1
    if not agents:
        raise NobodyToEnrol("no active family has a release: nobody to enrol")
    MissedWeek.objects.filter(week_start=week).delete()
    return Started(cohort, created=True, agents=agents)
