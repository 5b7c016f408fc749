"""Paired tests behind ranks, ties and comparisons of traders: the verifier's, as JSON values."""

import math
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from arena_verifier.intervals import ReturnPair, week_mean
from scoring.constants import DETECTABLE_DIFFERENCE
from scoring.selectors.claims import bears_claim
from scoring.selectors.weekly_returns import WeeklyReturns

FamilyReturns = Mapping[Any, WeeklyReturns]
"""A family's weekly returns by cohort."""


def return_test(family: FamilyReturns) -> dict[str, Any]:
    """The test of a family's mean return against 0, by calendar week; None of fewer than two cohorts."""
    means = week_mean(family.values())
    if not means.error:
        return dict.fromkeys(("se", "freedom", "p"))
    return {"se": means.error, "freedom": means.freedom, "p": means.p}


def pair_values(tests: Sequence[ReturnPair]) -> list[dict[str, Any]]:
    """The tests in percentage points, with margins that fit their corrected p and the cohorts that each still needs.

    A test that bears no claim has no margin: it would say hundreds of points.
    """
    from forecast_rank.metrics.paired_tests import corrected_margins, questions_needed

    differences = list(map(attrgetter("difference"), tests))
    errors = [math.nan if difference.error is None else difference.error for difference in differences]
    freedom = [difference.freedom or math.nan for difference in differences]
    p_values = [math.nan if test.p is None else test.p for test in tests]
    margins = corrected_margins(errors, freedom, p_values) if tests else ()
    claims = max(sum(test.p is not None for test in tests), 1)
    cohorts = list(map(attrgetter("cohorts"), differences))
    needed = questions_needed(cohorts, errors, claims=claims, difference=DETECTABLE_DIFFERENCE)
    pairs = []
    for test, difference, margin, count in zip(tests, differences, margins, needed, strict=True):
        more = count - difference.cohorts
        pair = {
            "first": test.first, "second": test.second, "cohorts": difference.cohorts, "weeks": difference.weeks,
            "difference": difference.mean if difference.cohorts else None, "se": difference.error,
            "freedom": difference.freedom, "p": test.p, "p_holm": test.p_holm,
            "cohorts_more": max(float(more), 0.0) if math.isfinite(more) else None,
        }  # fmt: skip
        pairs.append(pair | {"margin": float(margin) if bears_claim(pair) and math.isfinite(margin) else None})
    return pairs
