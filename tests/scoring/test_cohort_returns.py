"""Returns by weeks since a cohort's start: neither a new cohort nor the age of one looks like a gain or a loss."""

from datetime import timedelta
from decimal import Decimal

import pytest

from agents.models import Agent
from cohorts.models import Cohort
from scoring.selectors.cohort_returns import CohortReturns, cohort_returns
from tests.factories import WEEK, AgentFactory, SnapshotFactory

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
SLUG = "grok-4"


def values(agent: Agent, by_day: dict[float, int]) -> None:
    """The agent's total value on days after its own cohort's start."""
    for days, value in by_day.items():
        SnapshotFactory(agent=agent, taken_at=agent.cohort.week_start + days * DAY, cash=Decimal(value))


def returns_by_day(returns: CohortReturns) -> dict[float, float]:
    means = zip(returns.weeks, returns.families[SLUG], strict=True)
    return {round(weeks * 7, 6): round(mean.mean, 6) for weeks, mean in means if mean and weeks * 7 % 1 < 1e-9}


def returns_of(*agents: Agent, days: float = 100) -> CohortReturns:
    return cohort_returns(agents, at=WEEK + days * DAY)


def test_a_new_cohort_and_one_that_is_left_behind_move_nothing() -> None:
    old, young = AgentFactory(slug=SLUG), AgentFactory(slug=SLUG)
    values(old, {day: 10_000 + 100 * min(day, 8) for day in range(15)})  # +1 % a day for eight days
    values(young, {day: 10_000 + 300 * day for day in range(8)})  # +3 % a day for a week
    days = returns_by_day(returns_of(old, young))
    assert (days[0], days[1], days[7]) == (0, 2, 14)
    assert (days[8], days[14]) == (15, 15)  # the change of the old one alone
    numbers = [mean.cohorts for mean in returns_of(old, young).families[SLUG] if mean]
    assert (numbers[0], numbers[-1]) == (2, 1)


def test_band_holds_the_middle_half_of_the_cohorts() -> None:
    agents = [AgentFactory(slug=SLUG) for _ in range(5)]
    for index, agent in enumerate(agents):
        values(agent, {0: 10_000, 1: 10_000 + 100 * index})
    day = returns_of(*agents).weeks.index(1 / 7)
    mean = returns_of(*agents).families[SLUG][day]
    assert mean is not None
    assert (mean.mean, mean.low, mean.high, mean.cohorts) == pytest.approx((2, 1, 3, 5))


def test_before_its_first_snapshot_an_agent_has_no_return_and_after_its_end_it_keeps_its_last() -> None:
    late, completed = AgentFactory(slug=SLUG), AgentFactory(slug=SLUG)
    values(late, {2: 12_000, 3: 12_000})
    assert returns_by_day(returns_of(late)) == {0: 0, 1: 0, 2: 20, 3: 20}
    values(completed, {0: 10_000, 1: 10_400})
    completed.cohort.status, completed.cohort.completed_at = Cohort.Status.COMPLETED, WEEK + 9 * DAY
    completed.cohort.save()
    completed.cash = Decimal(10_600)
    values(late, {12: 12_000})
    alone = returns_by_day(returns_of(late, completed))
    assert [alone[day] for day in (1, 2, 3)] == [2, 13, 13]  # means of 0 and 4, 20 and 6, 20 and 6


def test_returns_up_to_an_instant_know_nothing_after_it() -> None:
    agent = AgentFactory(slug=SLUG)
    values(agent, {0: 10_000, 1: 11_000, 2: 12_000})
    assert returns_by_day(returns_of(agent, days=1)) == {0: 0, 1: 10}
    assert returns_of(agent, days=1).newest == WEEK + DAY
    assert returns_of(agent, days=-1) == CohortReturns(None, [], {})


def test_a_long_history_has_few_points() -> None:
    agent = AgentFactory(slug=SLUG)
    values(agent, {0: 10_000, 400: 11_000})
    returns = returns_of(agent, days=500)
    assert 50 < len(returns.weeks) <= 100
    assert returns.families[SLUG][0].mean == 0
