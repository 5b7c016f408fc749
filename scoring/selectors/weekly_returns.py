"""Returns of agents by calendar week: the change of each portfolio's value from Sunday to Sunday.

Cohorts overlap and hold the same markets, so that the weeks, and not the cohorts, are the independent trials of a
comparison (`scoring.selectors.return_tests`).
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal

from agents.models import Agent
from cohorts.weeks import WEEK
from scoring.selectors.competition import AgentSummary
from scoring.selectors.histories import newest_values, snapshot_ranges
from scoring.selectors.valuations import Valuation

FOREVER = datetime(9000, 1, 1, tzinfo=UTC)
WeeklyReturns = Mapping[str, float]
"""The return of an agent in each week, in percent of its starting balance, by the date of the week's Sunday."""


def weekly_returns(
    agents: Iterable[Agent | AgentSummary], values: Mapping[int, Valuation], at: datetime | None = None
) -> dict[int, dict[str, float]]:
    """The weekly returns of agents (family, cohort and methodology loaded) that add up to their values, by agent id."""
    agents, until = list(agents), at or FOREVER
    ranges = snapshot_ranges(agents, until)
    ends = {}
    for agent in agents:
        newest = ranges[agent.family.pk].get(agent.pk, (None, None))[1]
        ends[agent.pk] = tracked_until(agent.cohort.week_start, agent.cohort.completed_at, newest, until)
    sundays: set[datetime] = set()
    for agent in agents:
        sundays.update(week_ends(agent.cohort.week_start, ends[agent.pk]))
    instants = sorted(sundays)
    marks: dict[int, dict[datetime, Decimal]] = {agent.pk: {} for agent in agents}
    for pk, place, total in newest_values(list(marks), instants):
        marks[pk][instants[place]] = total
    returns = {}
    for agent in agents:
        returns[agent.pk] = split_return(
            agent.cohort.week_start,
            ends[agent.pk],
            marks[agent.pk].get,
            values[agent.pk].total,
            agent.cohort.methodology.starting_balance,
        )
    return returns


def tracked_until(
    week_start: datetime, completed_at: datetime | None, newest: datetime | None, until: datetime = FOREVER
) -> datetime:
    """The instant to which an agent's weeks run: its cohort's completion, else its newest snapshot, if there is one."""
    if completed_at is not None and completed_at <= until:
        return completed_at
    return newest or week_start


def week_ends(week_start: datetime, end: datetime) -> list[datetime]:
    """The Sundays between the first week's start and the end."""
    sundays = []
    sunday = week_start + WEEK
    while sunday < end:
        sundays.append(sunday)
        sunday += WEEK
    return sundays


def split_return(
    week_start: datetime,
    end: datetime,
    mark: Callable[[datetime], Decimal | None],
    value: Decimal,
    balance: Decimal,
) -> dict[str, float]:
    """An agent's return by week: the changes of its value from Sunday to Sunday, the last up to its value now.

    `mark` gives the value by a Sunday's 00:00 UTC; None where there is none, as if nothing had changed since.
    """
    returns = {}
    sunday, before = week_start, balance
    for next_sunday in week_ends(week_start, end):
        total = mark(next_sunday)
        after = before if total is None else total
        returns[f"{sunday:%Y-%m-%d}"] = float((after - before) / balance * 100)
        sunday, before = next_sunday, after
    returns[f"{sunday:%Y-%m-%d}"] = float((value - before) / balance * 100)
    return returns
