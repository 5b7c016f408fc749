"""Intervals and tests of means: of bets by events, of returns by weeks."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

TOTAL_LOSS = -100.0
"""In per cent."""
LEVEL, LEAST_COHORTS, LEAST_EVENTS, NO_SPREAD = 0.95, 2, 4, 1e-10


def beta_share(x: float, a: float, b: float) -> float:
    """The probability that a Beta(a, b) variable is at most x, by the continued fraction of the incomplete beta."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_share(1 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    tiny, numerator = 1e-300, 1.0
    denominator = 1 / (1 - (a + b) * x / (a + 1))
    value = denominator
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            denominator = 1 / (1 + term * denominator or tiny)
            numerator = 1 + term / numerator or tiny
            value *= numerator * denominator
        if abs(numerator * denominator - 1) < 1e-15:
            break
    return front * value


def inverse(share: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Where an increasing function reaches a value, by bisection."""
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return middle
        if share(middle) < target:
            low = middle
        else:
            high = middle


def two_sided_p(statistic: float, freedom: float) -> float:
    """The probability of a Student's t at least so far from 0."""
    return beta_share(freedom / (freedom + statistic**2), freedom / 2, 0.5)


def t_quantile(freedom: float) -> float:
    """The 97.5 % point of Student's t."""
    x = inverse(lambda x: beta_share(x, freedom / 2, 0.5), 1 - LEVEL, 0.0, 1.0)
    return math.sqrt(freedom * (1 - x) / x)


def bounded_interval(values: Sequence[float], events: Sequence[Hashable]) -> list[float] | None:
    """The beta interval of a mean of values from 0 to 1 by events, with one unseen event of values 0 or 1."""
    sums: dict[Hashable, float] = defaultdict(float)
    sizes = Counter(events)
    for value, event in zip(values, events, strict=True):
        sums[event] += value
    if len(sizes) < LEAST_EVENTS:
        return None
    total, observed = len(values), math.fsum(values)
    unseen = sum(size**2 for size in sizes.values()) / total
    mass = total + unseen
    mean = (observed + unseen / 2) / mass
    spread = math.fsum((sums[event] - mean * size) ** 2 for event, size in sizes.items())
    spread += unseen**2 / 2 * (mean**2 + (1 - mean) ** 2)
    k = mean * (1 - mean) * mass**2 / spread - 1
    low, high = (
        inverse(lambda x: beta_share(x, mean * k, (1 - mean) * k), tail, 0.0, 1.0)
        for tail in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    )
    return [min(low, observed / total), max(high, observed / total)]


class WeekMean(NamedTuple):
    """A mean over cohorts of what they gain in all their weeks, with its error by calendar week.

    The error is None of fewer than two weeks or cohorts, 0 where only rounding varies.
    """

    mean: float
    error: float | None
    freedom: float | None
    weeks: int
    cohorts: int

    @property
    def p(self) -> float | None:
        """The two-sided p of a mean of 0 by Student's t; None where there is no test."""
        if self.error and self.freedom:
            return two_sided_p(self.mean / self.error, self.freedom)
        return 1.0 if self.error == 0 == self.mean else None


def week_mean(cohorts: Collection[Mapping[Any, float]]) -> WeekMean:
    """The mean over cohorts of the sums of their weekly values, with calendar weeks as clusters (CR3).

    Cohorts share weeks and markets. The error is never below that of independent cohort-weeks, since weeks may cancel
    by chance. A cohort without a week does not count.
    """
    played = [weeks for weeks in cohorts if weeks]
    sums: dict[Any, float] = defaultdict(float)
    observed: Counter[Any] = Counter()
    for weeks in played:
        for week, value in weeks.items():
            sums[week] += value
            observed[week] += 1
    total, mass, size, units = math.fsum(sums.values()), sum(observed.values()), len(sums), len(played)
    mean = total / units if units else 0.0
    if size < 2 or units < LEAST_COHORTS:
        return WeekMean(mean, None, None, size, units)
    square, independent, average = 0.0, 0.0, total / mass
    for week, value in sums.items():
        share = observed[week] / mass
        square += ((value - total * share) / (1 - share)) ** 2
    for weeks in played:
        independent += math.fsum((value - average) ** 2 for value in weeks.values())
    error = math.sqrt(max((size - 1) / size * square, independent))
    error = error if error > NO_SPREAD * math.fsum(map(abs, sums.values())) else 0.0
    freedom = mass**2 / sum(number**2 for number in observed.values()) - 1
    if fourth := math.fsum(value**4 for value in sums.values()):
        freedom = min(freedom, math.fsum(value**2 for value in sums.values()) ** 2 / fourth)
    return WeekMean(mean, error / units, max(freedom, 1.0), size, units)


def return_error(weeks: Mapping[Any, Mapping[Any, float]]) -> tuple[float | None, float | None]:
    """The standard error of a family's mean return over cohorts and its interval's half width; `weeks` by cohort."""
    means = week_mean(weeks.values())
    if means.error is None or means.freedom is None:
        return None, None
    return means.error, t_quantile(means.freedom) * means.error if means.error else None


def return_interval(mean: float, half: float | None) -> list[float] | None:
    """The interval about a mean return in per cent; it ends at a total loss, since no portfolio loses more."""
    return None if half is None else [max(mean - half, TOTAL_LOSS), mean + half]


class ReturnPair(NamedTuple):
    """The paired test of two families' returns on their common cohorts, and its p corrected for all pairs by Holm."""

    first: str
    second: str
    difference: WeekMean
    p: float | None
    p_holm: float | None


def return_pairs(families: Mapping[str, Mapping[Any, Mapping[Any, float]]]) -> list[ReturnPair]:
    """The tests of all pairs of families, by slug, in their order; returns by cohort and week."""
    tests = []
    for place, first in enumerate(families):
        for second in list(families)[place + 1 :]:
            differences = []
            for cohort in families[first].keys() & families[second].keys():
                first_week, second_week = families[first][cohort], families[second][cohort]
                weeks = sorted(first_week.keys() | second_week.keys())
                differences.append({week: first_week.get(week, 0.0) - second_week.get(week, 0.0) for week in weeks})
            difference = week_mean(differences)
            tests.append(ReturnPair(first, second, difference, difference.p, None))
    order = sorted((test.p, place) for place, test in enumerate(tests) if test.p is not None)
    corrected = 0.0
    for rank, (p, place) in enumerate(order):
        corrected = max(corrected, min(1.0, p * (len(order) - rank)))
        tests[place] = tests[place]._replace(p_holm=corrected)
    return tests


def rank_ranges(families: Mapping[str, Mapping[Any, Mapping[Any, float]]]) -> dict[str, tuple[int, int]]:
    """Each family's range of ranks by the corrected tests of all pairs; `families` by slug."""
    return ranges_of(list(families), return_pairs(families))


def ranges_of(families: Sequence[str], pairs: Iterable[ReturnPair]) -> dict[str, tuple[int, int]]:
    """1 and the number of those significantly better, to the number of families less those significantly worse."""
    better: Counter[str] = Counter()
    worse: Counter[str] = Counter()
    for pair in pairs:
        if pair.p_holm is not None and pair.p_holm < 1 - LEVEL:
            first_wins = pair.difference.mean > 0
            winner, loser = (pair.first, pair.second) if first_wins else (pair.second, pair.first)
            better[loser] += 1
            worse[winner] += 1
    return {family: (1 + better[family], len(families) - worse[family]) for family in families}
