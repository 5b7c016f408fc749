"""Charts of portfolio values over time."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from django.utils import timezone

from agents.models import Agent, Family
from arena_site.pages.charts.lines import LineChart, family_curve, line_chart
from scoring.competition import AgentSummary
from scoring.histories import agent_values, snapshot_ranges
from scoring.performance import Performance, bucket_ends, performance


def family_chart(agents: Iterable[Agent | AgentSummary], baseline: Decimal, height: int = 380) -> LineChart | None:
    """The mean total value of each family over its agents (family and cohort loaded), as the API gives it.

    An agent joins its family's mean with its first snapshot. A change of release is annotated.
    """
    agents = list(agents)
    whole = performance(agents, span=None, at=timezone.now())
    return performance_chart(whole, {agent.family.slug: agent.family for agent in agents}, baseline, height)


def performance_chart(
    values: Performance, families: Mapping[str, Family], baseline: Decimal, height: int = 380
) -> LineChart | None:
    """The chart of a performance; families by slug."""
    annotations: dict[str, list[tuple[datetime, str]]] = defaultdict(list)
    for change in values.release_changes:
        annotations[change.family].append((change.at, f"{change.after} from cohort {change.cohort} on"))
    curves = [family_curve(families[slug], means, annotations[slug]) for slug, means in values.families.items()]
    return line_chart(values.instants, curves, baseline=baseline, height=height)


def agent_chart(agents: Sequence[Agent], baseline: Decimal, height: int = 380) -> LineChart | None:
    """The total value of each agent of one cohort (family and cohort loaded)."""
    instants = _instants(agents[0]) if agents else []
    values = agent_values(agents, instants)
    curves = [family_curve(agent.family, values[agent.pk]) for agent in agents]
    return line_chart(instants, curves, baseline=baseline, height=height)


def _instants(agent: Agent) -> list[datetime]:
    """The agent's newest snapshot, and the ends of the time buckets before it."""
    first_last = snapshot_ranges([agent.family_id], timezone.now())[agent.family_id].get(agent.pk)
    return bucket_ends(*first_last) if first_last else []
