"""Errors, intervals and paired tests: the one test behind ranks, ties and comparisons of traders, by calendar week."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from forecast_rank.metrics.cluster_means import observed_means, paired_by_cluster, rank_ranges_of_tests
from forecast_rank.metrics.sample_mean import cluster_interval
from forecast_rank.metrics.uncertainty import LEVEL
from scoring.constants import DETECTABLE_DIFFERENCE, SIGNIFICANCE, TOTAL_LOSS
from scoring.selectors.weekly_returns import WeeklyReturns

LEAST_COHORTS = 2
"""Of one cohort there is neither an interval nor a test."""
FamilyReturns = Mapping[Any, WeeklyReturns]
"""A family's weekly returns by cohort."""


class ReturnError(NamedTuple):
    """The standard error and the 95 % interval of a family's mean return over cohorts, by calendar week."""

    standard_error: float | None
    interval: tuple[float, float] | None


class ReturnTests(NamedTuple):
    """The paired tests of all pairs of families as JSON values, and the rank range of each family that they leave."""

    pairs: list[dict[str, Any]]
    rank_ranges: list[tuple[int, int]]


def return_error(family: FamilyReturns, *, of: int = 1) -> ReturnError:
    """The error of a family's mean return, with calendar weeks as clusters.

    The interval of one chosen among several families is corrected for their number, `of`.
    """
    if len(family) < LEAST_COHORTS:
        return ReturnError(None, None)
    means = observed_means(_table([family]))
    low, high = means.intervals(1 - SIGNIFICANCE / of)[0].tolist()
    interval = None if math.isnan(low) else (max(low, TOTAL_LOSS), high)
    return ReturnError(_finite(means.standard_error[0]), interval)


def return_tests(families: Mapping[str, FamilyReturns]) -> ReturnTests:
    """The tests of all pairs of families, by slug, on their common cohorts; differences in percentage points."""
    slugs = list(families)
    tests = paired_by_cluster(_table([*families.values()]), least_units=LEAST_COHORTS, difference=DETECTABLE_DIFFERENCE)
    pairs = []
    for place, (first, second) in enumerate(zip(tests.first.tolist(), tests.second.tolist(), strict=True)):
        pair = {"first": slugs[first], "second": slugs[second]}
        pair |= {"cohorts": int(tests.n[place]), "weeks": int(tests.events[place])}
        for name in ("difference", "se", "p", "p_holm", "margin"):
            pair[name] = _finite(getattr(tests, name)[place])
        pairs.append(pair | {"cohorts_more": _finite(tests.questions_more[place])})
    ranges = rank_ranges_of_tests(tests, len(slugs)).astype(int).tolist()
    return ReturnTests(pairs, list(map(tuple, ranges)))


def _table(families: Sequence[FamilyReturns]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The returns by family, cohort and week; NaN where a cohort does not run."""
    weeks_of: dict[Any, set[Any]] = defaultdict(set)
    for family in families:
        for cohort, returns in family.items():
            weeks_of[cohort].update(returns)
    weeks = sorted(set().union(*weeks_of.values()))
    cohort_places = dict(zip(sorted(weeks_of, key=int), count(), strict=False))
    week_places = dict(zip(weeks, count(), strict=False))
    table = np.full((len(families), len(weeks_of), len(weeks)), np.nan)
    for row, family in enumerate(families):
        for cohort, returns in family.items():
            for week, value in returns.items():
                table[row, cohort_places[cohort], week_places[week]] = value
    return table


def _finite(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def difference_interval(
    differences: ArrayLike, events: Sequence[str], *, level: float = LEVEL
) -> tuple[float, float] | None:
    """The studentised interval over events, cut at -1 and 1; None for fewer than four events."""
    interval = cluster_interval(differences, events, level=level)
    return None if interval is None else (max(interval[0], -1.0), min(interval[1], 1.0))
