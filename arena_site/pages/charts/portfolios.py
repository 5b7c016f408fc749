"""Charts of portfolios: returns by weeks since a cohort's start, and the values of one cohort over time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from math import ceil
from operator import attrgetter

from django.contrib.humanize.templatetags.humanize import apnumber

from agents.models import Agent, Family
from arena_site.pages.charts.curves import FEW, Curve, family_curve
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.lines import LineChart, line_chart
from arena_site.pages.filters import dollars
from foundation.clock import present
from scoring.selectors.cohort_returns import CohortReturns, MeanReturn
from scoring.selectors.competition import AgentSummary
from scoring.selectors.histories import agent_values, snapshot_ranges
from scoring.selectors.performance import bucket_ends, release_changes

RETURNS_TITLE = "Average change of {whose} by cohort age."
FEWER_NOTE = "Later weeks rest on fewer cohorts (week {week}: {number}), so a line does not end at the mean return."
"""The note of a chart of returns once some cohorts are younger than others."""
VALUES_NOTE = "Cash and positions at their last accepted prices. The dashed line is the starting balance of {balance}."


def returns_figure(
    returns: CohortReturns,
    agents: Iterable[Agent | AgentSummary],
    families: Mapping[str, Family],
    title: str,
    *,
    height: int = 420,
    **options: str,
) -> Figure | None:
    """The average change of each family by cohort age; families by slug. None without a snapshot.

    The note tells each change of a family's release between cohorts of the agents (family and cohort loaded).
    """
    if returns.newest is None:
        return None
    competitors = [agent for agent in agents if agent.cohort.started_at <= returns.newest]
    cohorts = len(set(map(attrgetter("cohort.pk"), competitors)))
    notes = _returns_notes(returns)
    for change in release_changes(competitors):
        notes.append(f"{families[change.family].display_name} is {change.after} from cohort {change.cohort} on.")
    return Figure(
        "returns",
        title,
        _returns_chart(returns, families, height),
        note=" ".join(notes),
        source=f"{cohorts} cohort{'' if cohorts == 1 else 's'}",
        at=returns.newest,
        **options,
    )


def _returns_notes(returns: CohortReturns) -> list[str]:
    """Sentences on the lines, the numbers of cohorts that they rest on, and the faded parts."""
    by_age = []
    for means in zip(*returns.families.values(), strict=True):
        by_age.append(max(map(attrgetter("cohorts"), filter(None, means))))
    notes = ["Each line adds up the average changes of the cohorts that have reached that age."]
    if by_age[-1] < by_age[0]:
        week = max(1, ceil(returns.weeks[-1]))
        notes.append(FEWER_NOTE.format(week=week, number=apnumber(by_age[-1])))
    if by_age[0] >= FEW:
        notes.append("The band holds the middle half of these cohorts.")
    if by_age[-1] < FEW:
        notes.append(f"Lines are faded where fewer than {apnumber(FEW)} cohorts have reached the age.")
    return notes


def _returns_chart(returns: CohortReturns, families: Mapping[str, Family], height: int) -> LineChart:
    curves = [_mean_curve(families[slug], means) for slug, means in returns.families.items()]
    chart = line_chart(
        returns.weeks,
        curves,
        axis="weeks",
        y_title="Average change since the start (%)",
        unit="percent",
        baseline=Decimal(0),
        height=height,
    )
    assert chart is not None, "there is a snapshot"
    return chart


def _mean_curve(family: Family, means: Sequence[MeanReturn | None]) -> Curve:
    """The curve of a family's mean returns, with their bands and numbers of cohorts."""
    values: list[float | None] = []
    band: list[tuple[float, float] | None] = []
    numbers: list[int | None] = []
    for mean in means:
        values.append(mean and mean.mean)
        band.append((mean.low, mean.high) if mean and mean.cohorts >= FEW else None)
        numbers.append(mean and mean.cohorts)
    return family_curve(family, values, band=band, numbers=numbers)


def values_figure(
    agents: Sequence[Agent],
    *,
    name: str,
    title: Callable[[Sequence[tuple[Agent, Decimal]]], str],
    span: timedelta | None = None,
    height: int = 420,
    query: str = "",
    until: datetime | None = None,
) -> Figure | None:
    """The total value of each agent of one cohort (family, cohort and methodology loaded); None without a snapshot.

    It covers the `span` before the newest snapshot, of those `until` an instant, or all of the time since the first.
    `title` makes the sentence of the agents and their newest values, the highest first.
    """
    instants = _instants(agents[0], until or present(), span) if agents else []
    if not instants:
        return None
    values = agent_values(agents, instants)
    curves = [family_curve(agent.family, values[agent.pk]) for agent in agents]
    methodology = agents[0].cohort.methodology
    balance = methodology.starting_balance
    chart = line_chart(instants, curves, y_title="Portfolio value (US dollars)", baseline=balance, height=height)
    newest = [(agent, value) for agent in agents if (value := values[agent.pk][-1]) is not None]
    if chart is None:
        return None
    return Figure(
        name,
        title(sorted(newest, key=lambda pair: -pair[1])),
        chart,
        note=VALUES_NOTE.format(balance=dollars(balance)),
        at=instants[-1],
        query=query,
        methodology=methodology.version,
    )


def _instants(agent: Agent, at: datetime, span: timedelta | None) -> list[datetime]:
    """The agent's newest snapshot, and the ends of the time buckets before it."""
    first_last = snapshot_ranges([agent], at)[agent.family_id].get(agent.pk)
    if first_last is None:
        return []
    first, last = first_last
    return bucket_ends(first if span is None else last - span, last)
