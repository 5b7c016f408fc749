"""Portfolio values over time, as the data of charts."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.utils import timezone

from agents.models import Agent, Family
from arena_site.pages.charts import Curve, LineChart, chart_over_time, family_curve
from scoring.competition import AgentSummary
from scoring.histories import agent_values, snapshot_ranges
from scoring.performance import Performance, bucket_ends, performance

MAXIMUM_ROWS = 60
"""Rows of a chart's table; the API has every point."""


@dataclass(frozen=True, slots=True)
class CurveSet:
    """Curves over common instants, or over whole numbers."""

    instants: Sequence[Any]
    curves: Sequence[Curve]
    unit: str = "money"

    @property
    def rows(self) -> list[tuple[Any, list[Decimal | float | None]]]:
        """The rows of the chart's table, newest first, thinned to MAXIMUM_ROWS."""
        step = max(1, -(-len(self.instants) // MAXIMUM_ROWS))
        shown = [*enumerate(self.instants)][::-1][::step]
        return [(at, [curve.values[index] for curve in self.curves]) for index, at in shown]

    def chart(self, baseline: Decimal | None = None, height: int = 380) -> LineChart | None:
        return chart_over_time(self.instants, self.curves, baseline=baseline, height=height, unit=self.unit)


def family_curves(agents: Iterable[Agent | AgentSummary]) -> CurveSet:
    """The mean total value of each family over its agents (family and cohort loaded), as the API gives it.

    An agent joins its family's mean with its first snapshot. A change of release is annotated.
    """
    agents = list(agents)
    whole = performance(agents, span=None, at=timezone.now())
    return performance_curves(whole, {agent.family.slug: agent.family for agent in agents})


def performance_curves(found: Performance, families: Mapping[str, Family]) -> CurveSet:
    """The curves of a performance; families by slug."""
    annotations: dict[str, list[tuple[datetime, str]]] = defaultdict(list)
    for change in found.release_changes:
        annotations[change.family].append((change.at, f"{change.after} from cohort {change.cohort} on"))
    curves = [family_curve(families[slug], means, annotations[slug]) for slug, means in found.families.items()]
    return CurveSet(found.instants, curves)


def agent_curves(agents: Sequence[Agent]) -> CurveSet:
    """The total value of each agent of one cohort (family and cohort loaded)."""
    instants = _instants(agents[0]) if agents else []
    values = agent_values(agents, instants)
    return CurveSet(instants, [family_curve(agent.family, values[agent.pk]) for agent in agents])


def _instants(agent: Agent) -> list[datetime]:
    """The agent's newest snapshot, and the ends of the time buckets before it."""
    first_last = snapshot_ranges([agent.family_id], timezone.now())[agent.family_id].get(agent.pk)
    return bucket_ends(*first_last) if first_last else []
