"""Values of agents and families at past instants, from snapshots and family totals."""

import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from itertools import accumulate, chain
from operator import attrgetter, sub
from typing import Any

from django.db import connection

from agents.models import Agent, Family
from agents.models.ledger import to_cents
from cohorts.models import Cohort
from foundation.raw_sql import parse_timestamp, stored_unit
from scoring.models import FamilyTotal, Snapshot
from scoring.selectors.competition import AgentSummary, last_competition_index

Values = Sequence[Decimal | None]
Total = tuple[int, Decimal]
"""How many agents have a snapshot of an instant, and what they are worth together."""
SnapshotRange = tuple[datetime, datetime]
"""The instants of an agent's first and of its newest snapshot."""
NO_AGENTS: Total = (0, Decimal(0))
NOT_TOTALLED: Any = object()
"""In place of a mean that the family totals do not give."""


def snapshot_ranges(agents: Iterable[Agent | AgentSummary], until: datetime) -> dict[int, dict[int, SnapshotRange]]:
    """By family of these agents, the snapshot range up to an instant of each of its agents with a snapshot by then.

    SQL, as `_totals`: of the front page the two take 3.1 ms, by the ORM 7.0, most of it to write the statements.
    """
    ranges: dict[int, dict[int, SnapshotRange]] = defaultdict(dict)
    if not (listed := ", ".join(map(str, set(map(attrgetter("family.pk"), agents))))):
        return ranges
    snapshot, agent = Snapshot._meta.db_table, Agent._meta.db_table
    end = f"(SELECT taken_at FROM {snapshot} WHERE agent_id = {agent}.id AND taken_at <= %s ORDER BY taken_at"  # noqa: S608 - our own names
    rows_of = f"{agent} WHERE family_id IN ({listed}) ORDER BY id"
    sql = f"SELECT family_id, id, {end} LIMIT 1), {end} DESC LIMIT 1) FROM {rows_of}"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [until, until])
        rows = cursor.fetchall()
    # Agents of one cohort began together: each instant is converted once.
    instants: Any = {stored: parse_timestamp(stored) for row in rows for stored in row[2:]}
    for family, agent_id, *ends in rows:
        oldest, newest = ends
        if newest is not None:
            ranges[family][agent_id] = (instants[oldest], instants[newest])
    return ranges


def family_values(
    agents: Iterable[Agent | AgentSummary],
    instants: Sequence[datetime],
    ranges: Mapping[int, Mapping[int, SnapshotRange]] | None = None,
) -> list[tuple[Family, Values]]:
    """Each family (family and cohort loaded) with the mean value of its agents at each instant (ascending).

    An agent joins with its first value. Means come from the family totals wherever these hold exactly the agents that
    count; the rest, which is next to nothing where whole families are asked for, is looked up agent by agent. `ranges`
    are the families' snapshot ranges up to the last instant, if the caller has them.
    """
    agents = list(agents)
    by_family: dict[Family, list[Agent | AgentSummary]] = defaultdict(list)
    for agent in agents:
        by_family[agent.family].append(agent)
    if not instants:
        return [(family, []) for family in by_family]
    ranges = snapshot_ranges(agents, instants[-1]) if ranges is None else ranges
    members_of, complete = {}, []
    for family, of_family in by_family.items():
        members_of[family] = _membership(of_family, ranges.get(family.pk, {}))
        if members_of[family].is_complete:
            complete.append(family.pk)
    totals = _totals(complete, instants)
    means = {family: members.means(totals.get(family.pk, {}), instants) for family, members in members_of.items()}
    _fill_in(by_family, means, instants)
    return list(means.items())


@dataclass(slots=True)
class _Membership:
    """The agents that count in a family's mean: those of running cohorts, and those of completed ones by their cash."""

    is_complete: bool
    """Whether these are all agents of the family that count and have snapshots by then, as they are in the totals."""
    starts: list[datetime] = field(default_factory=list)
    ends: list[datetime] = field(default_factory=list)
    completed: list[datetime] = field(default_factory=list)
    final_cash: list[Decimal] = field(default_factory=list)
    """The cash of none, of the first, of the first two… agents of completed cohorts."""
    excluded: list[tuple[datetime, datetime]] = field(default_factory=list)
    """When totals hold agents that do not count: from a cohort's end to its closing snapshot."""

    def means(self, totals: Mapping[int, Total], instants: Sequence[datetime]) -> list[Any]:
        """The mean at each instant; NOT_TOTALLED where the total, by the instant's index, is of other agents."""
        if not self.is_complete:
            return [NOT_TOTALLED] * len(instants)
        starts, ends = _counts_so_far(instants, self.starts), _counts_so_far(instants, self.ends)
        completed = _counts_so_far(instants, self.completed)
        excluded: set[int] = set()
        for begin, end in self.excluded:
            excluded.update(range(bisect_left(instants, begin), bisect_right(instants, end)))
        running = list(map(sub, starts, ends))
        means: list[Any] = []
        for index, (expected, over) in enumerate(zip(running, completed, strict=True)):
            agents, value = totals.get(index, NO_AGENTS)
            if agents != expected or index in excluded:
                means.append(NOT_TOTALLED)
            elif number := agents + over:
                means.append(to_cents((value + self.final_cash[over]) / number))
            else:
                means.append(None)
        return means


def _counts_so_far(instants: Sequence[datetime], times: Sequence[datetime]) -> list[int]:
    """The number of times up to each instant (ascending)."""
    steps = [0] * (len(instants) + 1)
    for time in times:
        steps[bisect_left(instants, time)] += 1
    return list(accumulate(steps))[:-1]  # the last step is for times after all instants


def _membership(agents: Sequence[Agent | AgentSummary], ranges: Mapping[int, SnapshotRange]) -> _Membership:
    pks, voided = {agent.pk for agent in agents}, last_competition_index().voided
    members = _Membership(is_complete=ranges.keys() - voided <= pks and not pks & voided)
    over: list[tuple[datetime, Decimal]] = []
    for agent in agents:
        start, completed = agent.cohort.started_at, agent.cohort.completed_at
        if completed is not None:
            over.append((completed, agent.cash))
        if agent.pk not in ranges:
            continue
        first, last = ranges[agent.pk]
        if first < start:
            members.excluded.append((first, start))
        if completed is not None and completed <= last:
            members.excluded.append((completed, last))
        joined = max(first, start)
        if completed is None or joined < completed:
            members.starts.append(joined)
            members.ends += [completed] if completed is not None else []
    over.sort()
    members.completed = [at for at, _ in over]
    members.final_cash = [*accumulate((cash for _, cash in over), initial=Decimal(0))]
    return members


def _totals(families: Sequence[int], instants: Sequence[datetime]) -> dict[int, dict[int, Total]]:
    """By family, the totals by the index of their instant."""
    totals: dict[int, dict[int, Total]] = defaultdict(dict)
    if families:
        edges, parameters = _edges(instants)
        unit, table = stored_unit(FamilyTotal, "total"), FamilyTotal._meta.db_table
        # Either database would rather go through all rows of the families than look up each instant: CROSS JOIN keeps
        # SQLite from it, OFFSET 0 PostgreSQL.
        at_edge = f"{table} WHERE taken_at = instant AND family_id IN ({', '.join(map(str, families))})"
        if connection.vendor == "postgresql":
            at_edge = f"LATERAL (SELECT * FROM {at_edge} OFFSET 0) AS at_edge"  # noqa: S608 - our own names
        with connection.cursor() as cursor:
            cursor.execute(
                f"{edges} SELECT family_id, place, agents, total FROM edge CROSS JOIN {at_edge}",  # noqa: S608
                parameters,
            )
            for family, place, *total in cursor.fetchall():
                totals[family][place] = (total[0], total[1] * unit)
    return totals


def _fill_in(
    members: Mapping[Family, Sequence[Agent | AgentSummary]],
    means: Mapping[Family, list[Any]],
    instants: Sequence[datetime],
) -> None:
    """Replaces NOT_TOTALLED in the means of families with means over their agents."""
    unknown = {}
    for family, row in means.items():
        unknown[family] = [i for i, mean in enumerate(row) if mean is NOT_TOTALLED]
    places = sorted(set(chain.from_iterable(unknown.values())))
    step = {place: step for step, place in enumerate(places)}
    agents: list[Agent | AgentSummary] = []
    for family, of_family in members.items():
        agents += of_family if unknown[family] else []
    values = agent_values(agents, [instants[place] for place in places])
    for family, missing in unknown.items():
        for place in missing:
            means[family][place] = _mean([values[agent.pk][step[place]] for agent in members[family]])


def agent_values(
    agents: Iterable[Agent | AgentSummary], instants: Sequence[datetime], *, since: datetime | None = None
) -> dict[int, Values]:
    """Each agent's total value (cohort loaded) at each instant (ascending), by its id.

    That is its newest snapshot by then, None before its first. Once its cohort is complete its value is its cash: a
    curve without completed agents would show the survivors alone. No snapshot is older than `since`, if it is given.
    """
    values: dict[int, list[Decimal | None]] = {}
    running = []
    for agent in agents:
        completed = agent.cohort.completed_at
        before_end = len(instants) if completed is None else bisect_left(instants, completed)
        values[agent.pk] = [None] * before_end + [agent.cash] * (len(instants) - before_end)
        if completed is None or before_end:
            running.append(agent.pk)
    unseen = bisect_left(instants, since) if since is not None else 0  # instants that need no look
    for agent_id, place, total in newest_values(running, instants[unseen:]):
        values[agent_id][unseen + place] = total
    return dict(values)


def newest_values(agents: Sequence[int], instants: Sequence[datetime]) -> Iterator[tuple[int, int, Decimal]]:
    """(agent, index of the instant, value) for each instant of a running cohort by which the agent has a snapshot.

    SQL, since the ORM has no way to look up one index entry for each agent and instant: whatever it offers reads all
    snapshots of the time, a thousand for each week and agent. Most instants have a snapshot of their own, which takes
    half the time of the newest one before.
    """
    if not agents or not instants:
        return
    edges, parameters = _edges(instants)
    snapshot, agent, cohort = (model._meta.db_table for model in (Snapshot, Agent, Cohort))
    unit = stored_unit(Snapshot, "total_value")
    sql = (
        f"{edges} SELECT {agent}.id, edge.place, COALESCE(at_edge.total_value, "  # noqa: S608 - our own names
        f"(SELECT total_value FROM {snapshot} WHERE agent_id = {agent}.id AND taken_at <= edge.instant "
        f"ORDER BY taken_at DESC LIMIT 1)) FROM edge CROSS JOIN {agent} JOIN {cohort} ON {cohort}.id = cohort_id "
        f"LEFT JOIN {snapshot} at_edge ON at_edge.agent_id = {agent}.id AND at_edge.taken_at = edge.instant "
        f"WHERE {agent}.id IN ({', '.join(map(str, agents))}) AND {cohort}.started_at <= edge.instant "
        f"AND ({cohort}.completed_at IS NULL OR {cohort}.completed_at > edge.instant)"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        for agent_id, place, total in cursor.fetchall():
            if total is not None:
                yield agent_id, place, total * unit


def _edges(instants: Sequence[datetime]) -> tuple[str, list[Any]]:
    """The instants with their indexes as a table `edge` of a statement, and its parameters."""
    # One parameter for all: to parse a statement with hundreds of them takes longer than to execute it.
    if connection.vendor == "postgresql":
        rows = "SELECT place - 1, instant FROM unnest(%s::timestamptz[]) WITH ORDINALITY AS edges(instant, place)"
        # As text, since psycopg would adapt each instant by itself.
        return f"WITH edge(place, instant) AS ({rows})", [f"{{{','.join([at.isoformat() for at in instants])}}}"]
    texts = [instant.astimezone(UTC).isoformat(" ").removesuffix("+00:00") for instant in instants]
    return "WITH edge(place, instant) AS (SELECT key, value FROM json_each(%s))", [json.dumps(texts)]


def _mean(values: Values) -> Decimal | None:
    totals = [value for value in values if value is not None]
    return to_cents(sum(totals, Decimal(0)) / len(totals)) if totals else None
