"""Values over time, thinned to what a chart can show."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.utils import timezone

from agents.models import Agent, Family
from scoring.charts import Curve, LineChart, curve_of, line_chart
from scoring.histories import agent_values
from scoring.models import SnapshotSpan
from scoring.performance import Performance, bucket_ends, performance
from scoring.roster import Player

MOST_ROWS = 60
"""Rows of a chart's table; the API has every point."""


@dataclass(frozen=True, slots=True)
class Curves:
    """A chart's data: its instants, and the curves over them."""

    instants: Sequence[datetime]
    curves: Sequence[Curve]
    unit: str = "money"

    @property
    def rows(self) -> list[tuple[datetime, list[Decimal | float | None]]]:
        """The data as a table, newest first, thinned to what a reader can take in."""
        step = max(1, -(-len(self.instants) // MOST_ROWS))
        shown = [*enumerate(self.instants)][::-1][::step]
        return [(at, [curve.values[index] for curve in self.curves]) for index, at in shown]

    def chart(self, baseline: Decimal | None = None, height: int = 380) -> LineChart | None:
        return line_chart(self.instants, self.curves, baseline=baseline, height=height, unit=self.unit)


def family_curves(agents: Iterable[Agent | Player]) -> Curves:
    """The mean total value of each family over its agents (family and cohort loaded), as the API gives it.

    An agent joins its family's mean with its first snapshot. Where its release differs from that of the
    family's agent before it, the curve has a turn.
    """
    agents = list(agents)
    whole = performance(agents, span=None, at=timezone.now())
    return performance_curves(whole, {agent.family.slug: agent.family for agent in agents})


def performance_curves(found: Performance, families: Mapping[str, Family]) -> Curves:
    """The curves that the API gives, as a chart: families by slug, with their changes of release."""
    turns: dict[str, list[tuple[datetime, str]]] = defaultdict(list)
    for change in found.release_changes:
        turns[change.family].append((change.at, f"{change.after} from cohort {change.cohort} on"))
    curves = [curve_of(families[slug], means, turns[slug]) for slug, means in found.families.items()]
    return Curves(found.instants, curves)


def agent_curves(agents: Sequence[Agent]) -> Curves:
    """The total value of each agent of one cohort (family and cohort loaded)."""
    instants = _instants(agents[0]) if agents else []
    values = agent_values(agents, instants)
    return Curves(instants, [curve_of(agent.family, values[agent.pk]) for agent in agents])


def _instants(agent: Agent) -> list[datetime]:
    """The agent's newest snapshot and the ends of buckets before it, which stay where they are as time goes on."""
    span = SnapshotSpan.objects.filter(agent=agent).order_by().values_list("oldest", "newest")
    return next((bucket_ends(oldest, newest) for oldest, newest in span), [])
