"""Values over time, thinned to what a chart can show."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import pairwise

from django.db import connection
from django.db.models.expressions import RawSQL

from agents.models import Agent
from agents.models.ledger import to_cents
from scoring.charts import Curve, LineChart, line_chart
from scoring.models import Snapshot

MOST_INSTANTS = 150

Values = Sequence[Decimal | None]


@dataclass(frozen=True, slots=True)
class Curves:
    """A chart's data: its instants, and the curves over them."""

    instants: Sequence[datetime]
    curves: Sequence[Curve]

    @property
    def rows(self) -> list[tuple[datetime, list[Decimal | None]]]:
        """The data as a table, newest first."""
        return [
            (at, [curve.values[index] for curve in self.curves]) for index, at in reversed([*enumerate(self.instants)])
        ]

    def chart(self, baseline: Decimal, height: int = 380) -> LineChart | None:
        return line_chart(self.instants, self.curves, baseline=baseline, height=height)


def family_curves(agents: Sequence[Agent]) -> Curves:
    """The mean total value of each family over its agents (family and cohort loaded).

    An agent joins its family's mean with its first snapshot. Where its release differs from that of the
    family's agent before it, the curve has a turn.
    """
    instants, values = _values(agents, follow=None)
    by_family: dict[int, list[Agent]] = defaultdict(list)
    for agent in sorted(agents, key=lambda agent: agent.cohort.number):
        by_family[agent.family_id].append(agent)
    curves = []
    for played in by_family.values():
        means = [_mean([values[agent.pk][index] for agent in played]) for index in range(len(instants))]
        turns = [
            (now.cohort.started_at, f"{now.model_id} from cohort {now.cohort.number} on")
            for before, now in pairwise(played)
            if before.model_id != now.model_id
        ]
        family = played[0].family
        curves.append(Curve(family.display_name, family.color, means, turns))
    return Curves(instants, curves)


def agent_curves(agents: Sequence[Agent]) -> Curves:
    """The total value of each agent of one cohort (family and cohort loaded)."""
    instants, values = _values(agents, follow=agents[0].pk if agents else None)
    return Curves(instants, [Curve(a.family.display_name, a.family.color, values[a.pk]) for a in agents])


def _values(agents: Sequence[Agent], *, follow: int | None) -> tuple[list[datetime], dict[int, Values]]:
    """At most MOST_INSTANTS instants of snapshots, evenly spread, and each agent's total value at them.

    `follow` names the agent whose instants they are; None takes those of all. A value holds until the next;
    once a cohort is complete its agents hold nothing but cash.
    """
    snapshots = Snapshot.objects.filter(agent__in=agents)
    grid = Snapshot.objects.filter(agent=follow) if follow else snapshots.none() if not agents else Snapshot.objects
    times = grid.order_by("taken_at").values_list("taken_at", flat=True)
    first, last = times.first(), times.last()
    if first is None or last is None:
        return [], {agent.pk: [] for agent in agents}
    at: dict[datetime, dict[int, Decimal]] = defaultdict(dict)
    chosen = snapshots.filter(taken_at__in=_nearest(first, last, follow))
    for holder, taken_at, total in chosen.values_list("agent", "taken_at", "total_value").order_by("taken_at"):
        at[taken_at][holder] = total
    values: dict[int, list[Decimal | None]] = {agent.pk: [] for agent in agents}
    latest: dict[int, Decimal] = {}
    for taken_at, totals in at.items():
        latest |= totals
        for agent in agents:
            over = agent.cohort.completed_at is not None and agent.cohort.completed_at <= taken_at
            values[agent.pk].append(agent.cash if over else latest.get(agent.pk))
    return list(at), dict(values)


def _nearest(first: datetime, last: datetime, follow: int | None) -> RawSQL:
    """A subquery of the newest instants at or before each of MOST_INSTANTS evenly spread ones.

    Written by hand because it must look up a few places of an index: every spelling the ORM has for it reads
    the whole table, which grows by a thousand rows a week and agent.
    """
    steps = MOST_INSTANTS - 1
    edges = [first + (last - first) * index / steps for index in range(steps)] + [last]
    of_one = " AND agent_id = %s" if follow else ""
    places = ", ".join(["(%s)"] * len(edges))
    table = connection.ops.quote_name(Snapshot._meta.db_table)
    sql = (
        f"WITH edge(instant) AS (VALUES {places}) "  # noqa: S608 - placeholders and a table's name
        f"SELECT (SELECT MAX(taken_at) FROM {table} WHERE taken_at <= edge.instant{of_one}) FROM edge"
    )
    values = [connection.ops.adapt_datetimefield_value(edge) for edge in edges]
    return RawSQL(sql, [*values, *([follow] if follow else [])])  # noqa: S611 - every value is a parameter


def _mean(values: Values) -> Decimal | None:
    known = [value for value in values if value is not None]
    return to_cents(sum(known, Decimal(0)) / len(known)) if known else None
