"""Returns of agents by calendar week: the change of each portfolio's value from Sunday to Sunday.

Cohorts overlap and hold the same markets, so that the weeks, and not the cohorts, are the independent trials of a
comparison (`scoring.selectors.return_pairs`).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal

from agents.models import Agent
from arena_verifier.weeks import marked_sundays, split_return
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
    agents = list(agents)
    ends = agent_ends(agents, at)
    sundays: set[datetime] = set()
    for agent in agents:
        sundays.update(marked_sundays(agent.cohort.week_start, ends[agent.pk]))
    instants = sorted(sundays)
    marks: dict[int, dict[datetime, Decimal]] = {agent.pk: {} for agent in agents}
    for pk, place, total in newest_values(list(marks), instants):
        marks[pk][instants[place]] = total
    returns = {}
    for agent in agents:
        by_sunday = split_return(
            agent.cohort.week_start,
            ends[agent.pk],
            marks[agent.pk].get,
            values[agent.pk].total,
            agent.cohort.methodology.starting_balance,
        )
        returns[agent.pk] = {f"{sunday:%Y-%m-%d}": value for sunday, value in by_sunday.items()}
    return returns


def agent_ends(agents: Sequence[Agent | AgentSummary], at: datetime | None = None) -> dict[int, datetime]:
    """The instant to which the weeks of each agent (family and cohort loaded) run, by agent id."""
    until = at or FOREVER
    ranges, ends = snapshot_ranges(agents, until), {}
    for agent in agents:
        newest = ranges[agent.family.pk].get(agent.pk, (None, None))[1]
        ends[agent.pk] = tracked_until(agent.cohort.week_start, agent.cohort.completed_at, newest, until)
    return ends


def tracked_until(
    week_start: datetime, completed_at: datetime | None, newest: datetime | None, until: datetime = FOREVER
) -> datetime:
    """The instant to which an agent's weeks run: its cohort's completion, else its newest snapshot, if there is one."""
    if completed_at is not None and completed_at <= until:
        return completed_at
    return newest or week_start
