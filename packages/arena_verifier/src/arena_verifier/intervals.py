"""Intervals and tests of means: of bets by events, of returns by weeks."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

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


def week_error(sums: dict[Any, float], observed: dict[Any, int], units: int) -> tuple[float, float] | tuple[None, None]:
    """The CR3 standard error of a sum over units, per unit, with weeks as clusters, and its degrees of freedom."""
    weeks = [week for week in observed if observed[week]]
    if len(weeks) < 2:
        return None, None
    total, mass, size = math.fsum(sums.values()), sum(observed.values()), len(weeks)
    square = 0.0
    for week in weeks:
        share = observed[week] / mass
        square += ((sums[week] - total * share) / (1 - share)) ** 2
    error = math.sqrt((size - 1) / size * square)
    error = error if error > NO_SPREAD * math.fsum(map(abs, sums.values())) else 0.0
    freedom = mass**2 / sum(number**2 for number in observed.values()) - 1
    if fourth := math.fsum(value**4 for value in sums.values()):
        freedom = min(freedom, math.fsum(value**2 for value in sums.values()) ** 2 / fourth)
    return error / units, max(freedom, 1.0)


def return_error(weeks: dict[Any, dict[Any, float]]) -> tuple[float | None, float | None]:
    """The standard error of a family's mean return over cohorts and its interval's half width; `weeks` by cohort."""
    if len(weeks) < LEAST_COHORTS:
        return None, None
    sums: dict[Any, float] = defaultdict(float)
    observed: dict[Any, int] = Counter()
    for returns in weeks.values():
        for week, value in returns.items():
            sums[week] += value
            observed[week] += 1
    error, freedom = week_error(sums, observed, len(weeks))
    return error, t_quantile(freedom) * error if error and freedom else None


def rank_ranges(families: dict[str, dict[Any, dict[Any, float]]]) -> dict[str, tuple[int, int]]:
    """Each family's range of ranks by paired tests of all pairs by week with Holm's correction; `families` by slug."""
    tests = []
    for place, first in enumerate(families):
        for second in list(families)[place + 1 :]:
            common = families[first].keys() & families[second].keys()
            sums: dict[Any, float] = defaultdict(float)
            observed: dict[Any, int] = Counter()
            for cohort in common:
                first_week, second_week = families[first][cohort], families[second][cohort]
                for week in first_week.keys() | second_week.keys():
                    sums[week] += first_week.get(week, 0.0) - second_week.get(week, 0.0)
                    observed[week] += 1
            if len(common) < LEAST_COHORTS:
                continue
            error, freedom = week_error(sums, observed, len(common))
            gap = math.fsum(sums.values()) / len(common)
            if error and freedom:
                tests.append((two_sided_p(gap / error, freedom), first, second, gap))
            elif error == 0 and gap == 0:
                tests.append((1.0, first, second, gap))
    corrected = 0.0
    better: Counter[str] = Counter()
    worse: Counter[str] = Counter()
    for place, (p, first, second, gap) in enumerate(sorted(tests, key=lambda test: test[0])):
        corrected = max(corrected, p * (len(tests) - place))
        if corrected < 1 - LEVEL:
            winner, loser = (first, second) if gap > 0 else (second, first)
            better[loser] += 1
            worse[winner] += 1
    return {family: (1 + better[family], len(families) - worse[family]) for family in families}
