"""The least data that bears a claim, and how much more would tell."""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from cohorts.weeks import WEEK
from markets.models import Question

EVENTS, COHORTS = "events", "cohorts"
LEAST_EVENTS, LEAST_COHORTS = 10, 6
"""Fewer resolved events, or cohorts, bear no claim: a sentence says that they are too few."""
LEAST_FREEDOM = 3
"""Degrees of freedom, the effective number of events or weeks, below which a test bears no claim either.

With fewer, one event or week carries the difference, and intervals that allow for 21 pairs are 10 standard errors wide.
"""
PACE_WEEKS = 4


class Shortage(NamedTuple):
    """A shortage of data for a claim: its unit (events, cohorts or weeks), how many there are, the least that bear one.

    `effective` where they are counted by degrees of freedom.
    """

    unit: str
    number: float
    least: int
    effective: bool


def shortage(unit: str, number: int, freedom: float | None) -> Shortage | None:
    """What a test of so many `events` or `cohorts` lacks for a claim; None where it lacks nothing."""
    least, carrier = (LEAST_COHORTS, "weeks") if unit == COHORTS else (LEAST_EVENTS, EVENTS)
    if number < least:
        return Shortage(unit, number, least, effective=False)
    if freedom is None or freedom < LEAST_FREEDOM:
        return Shortage(carrier, freedom or 0.0, LEAST_FREEDOM, effective=True)
    return None


def shortage_of(test: Mapping[str, Any]) -> Shortage | None:
    """What a paired test lacks for a claim, by its fields: `cohorts`, or else `events`, and `freedom`."""
    unit = COHORTS if COHORTS in test else EVENTS
    return shortage(unit, test[unit], test.get("freedom"))  # the first published boards state none of returns


def bears_claim(test: Mapping[str, Any]) -> bool:
    """Whether a paired test has the events, or cohorts, and the degrees of freedom that a claim needs."""
    return shortage_of(test) is None


def questions_per_week(at: datetime | None) -> float | None:
    """The mean number of questions that resolved in a week, of the PACE_WEEKS up to an instant."""
    if at is None:
        return None
    resolved = Question.objects.filter(resolved_at__gt=at - PACE_WEEKS * WEEK, resolved_at__lte=at)
    return resolved.count() / PACE_WEEKS or None


def questions_more(questions: float, se: float, *, claims: float = 1) -> int | None:
    """Further questions that find a true difference of 0.01 with 80 % power at the level left to one of the claims."""
    from forecast_rank.metrics.paired_tests import questions_needed

    needed = float(questions_needed(questions, se, claims=claims))
    return None if math.isnan(needed) else max(0, math.ceil(needed - questions))


def weeks_at_pace(questions: int | None, questions_per_week: float | None) -> int | None:
    """The weeks in which so many questions resolve; None without either number."""
    return math.ceil(questions / questions_per_week) if questions is not None and questions_per_week else None
