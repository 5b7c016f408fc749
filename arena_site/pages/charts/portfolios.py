"""Charts of portfolios: returns by weeks since a cohort's start, and the values of one cohort over time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from django.utils import timezone

from agents.models import Agent, Family
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.lines import LineChart, family_curve, line_chart
from arena_site.pages.filters import dollars
from scoring.cohort_returns import CohortReturns
from scoring.competition import AgentSummary
from scoring.histories import agent_values, snapshot_ranges
from scoring.performance import bucket_ends, release_changes

RETURNS_NOTE = (
    "Each line adds up the mean changes of the cohorts that have reached that week, so that neither the start of a "
    "cohort nor its age looks like a gain or a loss. The band holds the middle half of these cohorts."
)
"""The note below a chart of returns: its content, and the reason for it."""
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
    """The mean return of each family by weeks since a cohort's start; families by slug. None without a snapshot.

    The note tells each change of a family's release between cohorts of the agents (family and cohort loaded).
    """
    if returns.newest is None:
        return None
    started = [agent for agent in agents if agent.cohort.started_at <= returns.newest]
    cohorts = len({agent.cohort.pk for agent in started})
    changes = [
        f"{families[change.family].display_name} is {change.after} from cohort {change.cohort} on."
        for change in release_changes(started)
    ]
    return Figure(
        "returns",
        title,
        _returns_chart(returns, families, height),
        note=" ".join([RETURNS_NOTE, *changes]),
        source=f"{cohorts} cohort{'' if cohorts == 1 else 's'}",
        at=returns.newest,
        **options,
    )


def _returns_chart(returns: CohortReturns, families: Mapping[str, Family], height: int) -> LineChart:
    curves = [
        family_curve(
            families[slug],
            [mean and mean.mean for mean in means],
            band=[mean and (mean.low, mean.high) for mean in means],
            numbers=[mean and mean.cohorts for mean in means],
        )
        for slug, means in returns.families.items()
    ]
    chart = line_chart(
        returns.weeks,
        curves,
        axis="weeks",
        y_title="Mean return (%)",
        unit="percent",
        baseline=Decimal(0),
        height=height,
    )
    assert chart is not None, "there is a snapshot"
    return chart


def values_figure(
    agents: Sequence[Agent],
    *,
    name: str,
    title: Callable[[Sequence[tuple[Agent, Decimal]]], str],
    span: timedelta | None = None,
    height: int = 420,
    query: str = "",
) -> Figure | None:
    """The total value of each agent of one cohort (family, cohort and methodology loaded); None without a snapshot.

    It covers the `span` before the newest snapshot, or all of the time since the first. `title` makes the sentence of
    the agents and their newest values, the highest first.
    """
    instants = _instants(agents[0], timezone.now(), span) if agents else []
    if not instants:
        return None
    values = agent_values(agents, instants)
    curves = [family_curve(agent.family, values[agent.pk]) for agent in agents]
    balance = agents[0].cohort.methodology.starting_balance
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
    )


def _instants(agent: Agent, at: datetime, span: timedelta | None) -> list[datetime]:
    """The agent's newest snapshot, and the ends of the time buckets before it."""
    first_last = snapshot_ranges([agent.family_id], at)[agent.family_id].get(agent.pk)
    if first_last is None:
        return []
    first, last = first_last
    return bucket_ends(first if span is None else last - span, last)
