"""Returns of families by the time since their cohorts' starts.

A mean over calendar time falls towards the starting balance with every new cohort, and a mean over the cohorts of an
age jumps where the youngest are left behind. Neither is a gain or a loss, so the means of the changes are added up.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import chain
from operator import attrgetter, itemgetter
from statistics import fmean, quantiles
from typing import NamedTuple

from agents.models import Agent
from cohorts.weeks import WEEK
from foundation.bulk import subset
from scoring.selectors.competition import AgentSummary, started_by
from scoring.selectors.histories import SnapshotRange, Values, agent_values, snapshot_ranges
from scoring.selectors.performance import BUCKETS

STEPS = tuple(width for width in BUCKETS if width <= WEEK)
"""Distances of points. Cohorts start with a week, so that one grid has the same ages for all of them."""
MAXIMUM_AGES, MAXIMUM_VALUES = 100, 3_000
"""Points of a line, and values of agents behind all lines: each is looked up."""


class MeanReturn(NamedTuple):
    """The mean return of a family's agents at an age, in percent, with the ends of the middle half around it.

    It is the sum of the mean changes up to the age, each over the cohorts that have reached its end.
    """

    mean: float
    low: float
    high: float
    cohorts: int


@dataclass(frozen=True, slots=True)
class CohortReturns:
    """Mean returns by weeks since the start, and the newest snapshot behind them."""

    newest: datetime | None
    weeks: Sequence[float]
    families: Mapping[str, Sequence[MeanReturn | None]]


def cohort_returns(agents: Iterable[Agent | AgentSummary], *, at: datetime) -> CohortReturns:
    """The mean returns by family of agents (family, cohort and methodology loaded) up to an instant.

    Before its first snapshot an agent's return is zero; that of a completed cohort stays what it was at its end.
    """
    running = started_by(agents, at)
    ranges = snapshot_ranges(running, at)
    range_of: dict[int, SnapshotRange] = {}
    for ranges_of_family in ranges.values():
        range_of.update(ranges_of_family)
    valued = [agent for agent in running if agent.pk in range_of]
    if not valued:
        return CohortReturns(None, [], {})
    spans = subset(range_of, map(attrgetter("pk"), valued)).values()
    newest = max(map(itemgetter(1), spans))
    first = min(map(attrgetter("cohort.week_start"), valued))
    step = _step(valued, range_of, newest)
    instants = [first + step * index for index in range((newest - first) // step + 1)]
    values = agent_values(valued, instants, since=min(map(itemgetter(0), spans)))
    by_family: dict[str, list[list[float]]] = defaultdict(list)
    for agent in valued:
        since_start = values[agent.pk][(agent.cohort.week_start - first) // step :]
        by_family[agent.family.slug].append(_returns(since_start, agent.cohort.methodology.starting_balance))
    ages = max(map(len, chain.from_iterable(by_family.values())))
    weeks = [index * step / WEEK for index in range(ages)]
    families = {slug: _means(returns, ages) for slug, returns in by_family.items()}
    return CohortReturns(newest, weeks, families)


def _step(agents: Sequence[Agent | AgentSummary], range_of: Mapping[int, SnapshotRange], newest: datetime) -> timedelta:
    """The smallest step with at most MAXIMUM_AGES ages and MAXIMUM_VALUES values of running cohorts."""
    oldest, looked_up = timedelta(), timedelta()
    for agent in agents:
        oldest = max(oldest, newest - agent.cohort.week_start)
        looked_up += range_of[agent.pk][1] - agent.cohort.week_start
    for step in STEPS:
        if oldest <= MAXIMUM_AGES * step and looked_up <= MAXIMUM_VALUES * step:
            return step
    return STEPS[-1]


def _returns(values: Values, balance: Decimal) -> list[float]:
    returns = []
    for value in values:
        returns.append(0.0 if value is None else float((value - balance) / balance * 100))
    return returns


def _means(returns: Sequence[Sequence[float]], ages: int) -> list[MeanReturn | None]:
    longest_first = sorted(returns, key=len, reverse=True)
    remaining = len(longest_first)
    means: list[MeanReturn | None] = []
    mean, previous = 0.0, list[float]()
    for index in range(ages):
        while remaining and len(longest_first[remaining - 1]) <= index:
            remaining -= 1
        if not remaining:
            means.append(None)
            continue
        values = [agent_returns[index] for agent_returns in longest_first[:remaining]]
        change_mean = fmean(values)
        mean += change_mean - fmean(previous[:remaining]) if index else change_mean
        low, _, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
        shift = mean - change_mean
        means.append(MeanReturn(mean, low + shift, high + shift, len(values)))
        previous = values
    return means
