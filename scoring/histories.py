"""What agents and families were worth at past instants, from snapshots and their totals by family."""

import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from itertools import accumulate
from operator import sub
from typing import Any

from django.db import connection

from agents.models import Agent, Family
from agents.models.ledger import to_cents
from cohorts.models import Cohort
from markets.fields import instant, stored_unit
from scoring.models import FamilyTotal, Snapshot, SnapshotSpan
from scoring.roster import Player

Values = Sequence[Decimal | None]
Total = tuple[int, Decimal]
"""How many agents have a snapshot of an instant, and what they are worth together."""
Life = tuple[datetime, datetime]
"""The instants of an agent's first and of its newest snapshot."""
NOTHING: Total = (0, Decimal(0))
UNKNOWN: Any = object()
"""Stands where no total tells a mean."""


def lives(families: Iterable[int], until: datetime) -> dict[int, dict[int, Life]]:
    """By family, the life until an instant of each of its agents that has a snapshot by then."""
    found: dict[int, dict[int, Life]] = defaultdict(dict)
    listed = _listed(families)
    if not listed:
        return found
    snapshot, span, agent = (model._meta.db_table for model in (Snapshot, SnapshotSpan, Agent))
    # Of a past instant, whoever played then has a snapshot of the last pass, and these lie side by side.
    last = f"(SELECT MAX(taken_at) FROM {snapshot} WHERE taken_at <= %s)"  # noqa: S608 - our own names
    sql = (
        "SELECT family_id, agent_id, oldest, CASE WHEN newest <= %s THEN newest "  # noqa: S608 - our own names
        f"WHEN agent_id IN (SELECT agent_id FROM {snapshot} WHERE taken_at = {last}) THEN {last} ELSE "
        f"(SELECT taken_at FROM {snapshot} WHERE {snapshot}.agent_id = {span}.agent_id AND taken_at <= %s "
        f"ORDER BY taken_at DESC LIMIT 1) END FROM {span} JOIN {agent} ON {agent}.id = agent_id "
        f"WHERE family_id IN ({listed}) ORDER BY agent_id"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [connection.ops.adapt_datetimefield_value(until)] * 4)
        rows = cursor.fetchall()
    # Agents of one cohort began together: each instant is made once.
    instants: Any = {bare: instant(bare) for row in rows for bare in row[2:]}
    for family, holder, first, last in rows:
        if last is not None:
            found[family][holder] = (instants[first], instants[last])
    return found


def family_values(
    agents: Iterable[Agent | Player],
    instants: Sequence[datetime],
    known: Mapping[int, Mapping[int, Life]] | None = None,
) -> list[tuple[Family, Values]]:
    """Each family (family and cohort loaded) with the mean value of its agents at each instant (ascending).

    An agent joins with its first value. Means are read from the totals wherever these hold the very agents that count;
    the rest, which is next to nothing where whole families are asked for, is looked up agent by agent. `known` are the
    families' lives until the last instant, where somebody has looked them up.
    """
    played: dict[Family, list[Agent | Player]] = {}
    by_family: dict[int, list[Agent | Player]] = {}
    for agent in agents:
        of_family = by_family.get(agent.family.pk)
        if of_family is None:
            of_family = played[agent.family] = by_family[agent.family.pk] = []
        of_family.append(agent)
    if not instants:
        return [(family, []) for family in played]
    known = lives(by_family, instants[-1]) if known is None else known
    casts = {family: _cast(agents, known.get(family.pk, {})) for family, agents in played.items()}
    totals = _totals([family.pk for family, cast in casts.items() if cast.whole], instants)
    means = {family.pk: cast.means(totals.get(family.pk, {}), instants) for family, cast in casts.items()}
    _look_up(by_family, means, instants)
    return [(family, means[family.pk]) for family in played]


@dataclass(slots=True)
class _Cast:
    """Who counts in a family's mean at an instant: those that play, and those that are over, which keep their cash."""

    whole: bool
    """Are these all agents of the family that have snapshots by then, as the totals are of all?"""
    begun: list[datetime] = field(default_factory=list)
    ended: list[datetime] = field(default_factory=list)
    over: list[datetime] = field(default_factory=list)
    kept: list[Decimal] = field(default_factory=list)
    """The cash of none, of the first, of the first two… that were over."""
    strange: list[tuple[datetime, datetime]] = field(default_factory=list)
    """When totals hold agents that do not count: from a cohort's end to its closing snapshot."""

    def means(self, totals: Mapping[int, Total], instants: Sequence[datetime]) -> list[Any]:
        """The mean at each instant, UNKNOWN where the total, by the instant's place, is not that of who plays then."""
        if not self.whole:
            return [UNKNOWN] * len(instants)
        playing, ended, over = (_reached(instants, times) for times in (self.begun, self.ended, self.over))
        strange = {p for a, b in self.strange for p in range(bisect_left(instants, a), bisect_right(instants, b))}
        counted = list(map(sub, playing, ended))
        means: list[Any] = []
        for place, (expected, left) in enumerate(zip(counted, over, strict=True)):
            agents, value = totals.get(place, NOTHING)
            if agents != expected or place in strange:
                means.append(UNKNOWN)
            elif number := agents + left:
                means.append(to_cents((value + self.kept[left]) / number))
            else:
                means.append(None)
        return means


def _reached(instants: Sequence[datetime], times: Sequence[datetime]) -> list[int]:
    """How many of the times each instant (ascending) has reached."""
    steps = [0] * (len(instants) + 1)
    for time in times:
        steps[bisect_left(instants, time)] += 1
    return list(accumulate(steps))[:-1]  # the last step is for times after all instants


def _cast(agents: Sequence[Agent | Player], lives: Mapping[int, Life]) -> _Cast:
    cast = _Cast(whole=lives.keys() <= {agent.pk for agent in agents})
    left: list[tuple[datetime, Decimal]] = []
    for agent in agents:
        started, over = agent.cohort.started_at, agent.cohort.completed_at
        if over is not None:
            left.append((over, agent.cash))
        if agent.pk not in lives:
            continue
        first, last = lives[agent.pk]
        if first < started:
            cast.strange.append((first, started))
        if over is not None and over <= last:
            cast.strange.append((over, last))
        begun = max(first, started)
        if over is None or begun < over:
            cast.begun.append(begun)
            cast.ended += [over] if over is not None else []
    left.sort()
    cast.over, cast.kept = [at for at, _ in left], [*accumulate((cash for _, cash in left), initial=Decimal(0))]
    return cast


def _totals(families: Sequence[int], instants: Sequence[datetime]) -> dict[int, dict[int, Total]]:
    """By family, the totals by the place of their instant. By hand: the ORM would make an instant of each row again."""
    found: dict[int, dict[int, Total]] = defaultdict(dict)
    if families:
        edges, parameters = _edges(instants)
        table, unit = FamilyTotal._meta.db_table, stored_unit(FamilyTotal, "total")
        own = f"{table}.taken_at = edge.instant AND {table}.family_id IN ({_listed(families)})"
        # From the edges to their rows: either database would rather go through every row of the families.
        joined = f"{table} WHERE {own}"
        if connection.vendor == "postgresql":
            joined = f"LATERAL (SELECT * FROM {table} WHERE {own} OFFSET 0) AS {table}"  # noqa: S608
        with connection.cursor() as cursor:
            cursor.execute(
                f"{edges} SELECT family_id, place, agents, total FROM edge CROSS JOIN {joined}",  # noqa: S608
                parameters,
            )
            for family, place, agents, total in cursor.fetchall():
                found[family][place] = (agents, total * unit)
    return found


def _look_up(
    played: Mapping[int, Sequence[Agent | Player]], means: Mapping[int, list[Any]], instants: Sequence[datetime]
) -> None:
    """Puts in the means of families, by their ids, at those places that no total told."""
    unknown = {family: [p for p, mean in enumerate(row) if mean is UNKNOWN] for family, row in means.items()}
    places = sorted({place for lacking in unknown.values() for place in lacking})
    step = {place: step for step, place in enumerate(places)}
    lacking = [agent for family, agents in played.items() if unknown[family] for agent in agents]
    values = agent_values(lacking, [instants[place] for place in places])
    for family, of_family in unknown.items():
        own, row = [values[agent.pk] for agent in played[family] if of_family], means[family]
        for place in of_family:
            row[place] = _mean([value[step[place]] for value in own])


def agent_values(agents: Iterable[Agent | Player], instants: Sequence[datetime]) -> dict[int, Values]:
    """Each agent's total value (cohort loaded) at each instant (ascending), by its id.

    That is its newest snapshot by then, None before its first. Once its cohort is complete it holds nothing but cash
    and keeps it: a curve that dropped who has finished would show the survivors alone.
    """
    values: dict[int, list[Decimal | None]] = {}
    playing = []
    for agent in agents:
        over = agent.cohort.completed_at
        values[agent.pk] = [agent.cash if over is not None and over <= at else None for at in instants]
        if over is None or (instants and over > instants[0]):
            playing.append(agent.pk)
    for holder, place, total in _looked_up(playing, instants):
        values[holder][place] = total
    return dict(values)


def _looked_up(agents: Sequence[int], instants: Sequence[datetime]) -> Iterator[tuple[int, int, Decimal]]:
    """(agent, place of the instant, value) for the instants of each agent's cohort's life that have a snapshot.

    Written by hand because it must look up one place of an index for each: every spelling the ORM has for it reads all
    snapshots of the time, which are a thousand a week and agent. Most instants have a snapshot of their own, which is
    found in half the time that the newest before takes.
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
        f"WHERE {agent}.id IN ({_listed(agents)}) AND {cohort}.started_at <= edge.instant "
        f"AND ({cohort}.completed_at IS NULL OR {cohort}.completed_at > edge.instant)"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        for holder, place, total in cursor.fetchall():
            if total is not None:
                yield holder, place, total * unit


def _edges(instants: Sequence[datetime]) -> tuple[str, list[Any]]:
    """The instants with their places as a table `edge` of a statement, and the parameters of that."""
    # One parameter for all of them: to read a statement of hundreds takes longer than to carry it out.
    if connection.vendor == "postgresql":
        rows = "SELECT place - 1, instant FROM unnest(%s::timestamptz[]) WITH ORDINALITY AS edges(instant, place)"
        # Written out here: psycopg would make a parameter of each instant first.
        return f"WITH edge(place, instant) AS ({rows})", [f"{{{','.join([at.isoformat() for at in instants])}}}"]
    texts = [instant.astimezone(UTC).isoformat(" ").removesuffix("+00:00") for instant in instants]
    return "WITH edge(place, instant) AS (SELECT key, value FROM json_each(%s))", [json.dumps(texts)]


def _listed(keys: Iterable[int]) -> str:
    return ", ".join(str(int(key)) for key in keys)


def _mean(values: Values) -> Decimal | None:
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return known[0] if known else None
    return to_cents(sum(known, Decimal(0)) / len(known))
