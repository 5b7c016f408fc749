"""Two families beside each other: what each made of the cohorts that both played, and is that more than chance?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from agents.models import Family
from cohorts.models import Cohort
from scoring.metrics.pairs import paired_tests
from scoring.metrics.panel import from_arrays
from scoring.roster import Roster

POINTS = 5.0
"""The difference in return, in percentage points, that a comparison should be able to find."""


@dataclass(frozen=True, slots=True)
class ReturnTest:
    """The paired comparison of two families' returns on the cohorts that both played, in percentage points."""

    cohorts: int
    difference: float
    se: float | None
    p: float | None
    p_holm: float | None
    cohorts_more: float | None
    pairs: int


class Meeting(NamedTuple):
    """A cohort that both played, with what each made of it, in percent."""

    cohort: Cohort
    first_return: float
    second_return: float


def meetings(
    first: Family, second: Family, returns: Mapping[str, Mapping[str, float]], known: Roster
) -> tuple[list[Meeting], ReturnTest | None]:
    """The cohorts that both played, newest first, and the test of their difference among all pairs of families.

    `returns` are those of the trading board: of each family's slug by the cohort's number, as JSON has it. Of external
    agents none but these two take part.
    """
    apart = {family.slug for family in known.families.values() if family.external} - {first.slug, second.slug}
    families = [slug for slug in returns if slug not in apart]
    numbers = sorted({int(number) for slug in families for number in returns[slug]})
    mine, theirs = returns.get(first.slug, {}), returns.get(second.slug, {})
    both = sorted((int(number) for number in mine.keys() & theirs.keys()), reverse=True)
    if not both:
        return [], None
    cohorts = {cohort.number: cohort for cohort in known.cohorts.values()}
    found = [Meeting(cohorts[number], mine[str(number)], theirs[str(number)]) for number in both]
    table = np.array([[returns[slug].get(str(number), np.nan) for number in numbers] for slug in families])
    return found, _tested(table, families.index(first.slug), families.index(second.slug))


def _tested(returns: Any, first: int, second: int) -> ReturnTest:
    """Cohorts stand for questions: the same paired test as of scores, corrected for all pairs of families."""
    panel = from_arrays(np.where(np.isnan(returns), np.nan, 0.5)[:, :, None], np.zeros((returns.shape[1], 1)))
    tests = paired_tests(panel, returns[panel.forecaster, panel.question], difference=POINTS)
    low, high = sorted((first, second))
    row = int(np.flatnonzero((tests.first == low) & (tests.second == high))[0])
    sign = 1 if first == low else -1
    return ReturnTest(
        cohorts=int(tests.n[row]),
        difference=sign * float(tests.difference[row]),
        se=_known(tests.se[row]),
        p=_known(tests.p[row]),
        p_holm=_known(tests.p_holm[row]),
        cohorts_more=_known(tests.questions_more[row]),
        pairs=len(tests.n),
    )


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
