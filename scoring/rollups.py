"""Snapshots and calls rolled up: what families were worth at each instant, since when and until when agents have
snapshots, and what each universe's decisions cost.

Triggers keep them in the very transaction that writes a snapshot or a call, whoever writes it: code, the admin, plain
SQL. PostgreSQL tells a trigger all rows of a statement, so a pass writes each family's total once; SQLite tells row by
row.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from agents.models import Agent, Decision, ModelCall
from markets.guards import Trigger
from scoring.models import FamilyTotal, Snapshot, SnapshotSpan, UniverseCost

TOTAL, SPAN, COST = (model._meta.db_table for model in (FamilyTotal, SnapshotSpan, UniverseCost))
SNAPSHOT, AGENT, DECISION, CALL = (model._meta.db_table for model in (Snapshot, Agent, Decision, ModelCall))
TOTAL_COLUMNS = f"{TOTAL} (family_id, taken_at, agents, total)"
SPAN_COLUMNS = f"{SPAN} (agent_id, oldest, newest)"
COST_COLUMNS = f"{COST} (universe_id, family_id, cost_usd)"
WRITTEN, GONE = "written", "gone"
"""What a statement's new and its old rows are called on PostgreSQL."""


@dataclass(frozen=True, slots=True)
class _Rollup:
    """What rows of snapshots put in and take out: of SQLite's NEW and OLD row, of PostgreSQL's tables of rows."""

    name: str
    put_in: str
    take_out: str
    put_all_in: str
    take_all_out: str

    def triggers(self) -> Iterator[Trigger]:
        new, old = f"NEW TABLE AS {WRITTEN}", f"OLD TABLE AS {GONE}"
        put_in, take_out, put_all_in, take_all_out = self.put_in, self.take_out, self.put_all_in, self.take_all_out
        yield self._trigger("INSERT", put_in, put_all_in, new)
        yield self._trigger("UPDATE", f"{take_out} {put_in}", f"{take_all_out} {put_all_in}", f"{old} {new}")
        yield self._trigger("DELETE", take_out, take_all_out, old)

    def _trigger(self, event: str, sqlite: str, postgresql: str, rows: str) -> Trigger:
        name = f"{self.name}_{event.lower()}"
        return Trigger(name, SNAPSHOT, "AFTER", event, sqlite, postgresql, by_row=False, rows=rows)


def triggers() -> Iterator[Trigger]:
    """What keeps them in step. No agent ever becomes another family's, no decision another universe's."""
    yield from _family_totals().triggers()
    yield from _snapshot_spans().triggers()
    yield from _universe_costs()


def add_up(connection: Any) -> None:
    """Makes each of them what the snapshots and calls there are say: for a time when no trigger kept them."""
    sums, spans, costs = _sums(SNAPSHOT), _spans(SNAPSHOT), _costs()
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        if connection.vendor == "postgresql":  # what is written meanwhile would be counted twice or not at all
            cursor.execute(f"LOCK TABLE {SNAPSHOT}, {CALL} IN SHARE ROW EXCLUSIVE MODE")
        cursor.execute(f"DELETE FROM {TOTAL} WHERE (family_id, taken_at, agents, total) NOT IN ({sums})")  # noqa: S608
        cursor.execute(
            f"INSERT INTO {TOTAL_COLUMNS} {sums} HAVING NOT EXISTS "  # noqa: S608 - our own names
            f"(SELECT 1 FROM {TOTAL} t WHERE t.family_id = a.family_id AND t.taken_at = s.taken_at)"
        )
        cursor.execute(f"DELETE FROM {SPAN}")  # noqa: S608 - our own names
        cursor.execute(f"INSERT INTO {SPAN_COLUMNS} {spans}")
        cursor.execute(f"DELETE FROM {COST} WHERE (universe_id, family_id, cost_usd) NOT IN ({costs})")  # noqa: S608
        cursor.execute(
            f"INSERT INTO {COST_COLUMNS} {costs} HAVING NOT EXISTS "  # noqa: S608 - our own names
            f"(SELECT 1 FROM {COST} c WHERE c.universe_id = d.universe_id AND c.family_id = a.family_id)"
        )


def _sums(rows: str) -> str:
    return (
        "SELECT a.family_id, s.taken_at, COUNT(*), SUM(s.total_value) "  # noqa: S608 - our own names
        f"FROM {rows} s JOIN {AGENT} a ON a.id = s.agent_id GROUP BY a.family_id, s.taken_at"
    )


def _spans(rows: str) -> str:
    return f"SELECT agent_id, MIN(taken_at), MAX(taken_at) FROM {rows} GROUP BY agent_id"  # noqa: S608


def _costs() -> str:
    return (
        f"SELECT d.universe_id, a.family_id, SUM(asked.cost_usd) FROM {CALL} asked "  # noqa: S608 - our own names
        f"JOIN {DECISION} d ON d.id = asked.decision_id JOIN {AGENT} a ON a.id = d.agent_id "
        "WHERE asked.cost_usd <> 0 AND d.universe_id IS NOT NULL GROUP BY d.universe_id, a.family_id"
    )


def _family_totals() -> _Rollup:
    def of(row: str) -> str:
        family = f"(SELECT family_id FROM {AGENT} WHERE id = {row}.agent_id)"  # noqa: S608 - our own names
        return f"taken_at = {row}.taken_at AND family_id = {family}"

    of_gone = f"g.taken_at = {TOTAL}.taken_at AND g.family_id = {TOTAL}.family_id"
    return _Rollup(
        "family_totals",
        # In two steps: on SQLite, how an outer statement meets conflicts holds within its triggers too.
        put_in=f"INSERT INTO {TOTAL_COLUMNS} SELECT family_id, NEW.taken_at, 0, 0 FROM {AGENT} "  # noqa: S608
        f"WHERE id = NEW.agent_id AND NOT EXISTS (SELECT 1 FROM {TOTAL} WHERE {of('NEW')}); "
        f"UPDATE {TOTAL} SET agents = agents + 1, total = total + NEW.total_value WHERE {of('NEW')};",
        take_out=f"UPDATE {TOTAL} SET agents = agents - 1, total = total - OLD.total_value WHERE {of('OLD')}; "  # noqa: S608
        f"DELETE FROM {TOTAL} WHERE agents = 0 AND {of('OLD')};",
        # In one order everywhere, so that two writers never wait for each other.
        put_all_in=f"INSERT INTO {TOTAL_COLUMNS} {_sums(WRITTEN)} ORDER BY 2, 1 "
        f"ON CONFLICT (taken_at, family_id) DO UPDATE "
        f"SET agents = {TOTAL}.agents + EXCLUDED.agents, total = {TOTAL}.total + EXCLUDED.total;",
        take_all_out=f"UPDATE {TOTAL} SET agents = {TOTAL}.agents - g.agents, total = {TOTAL}.total - g.total "  # noqa: S608
        f"FROM ({_sums(GONE)}) AS g (family_id, taken_at, agents, total) WHERE {of_gone}; "
        f"DELETE FROM {TOTAL} USING ({_sums(GONE)}) AS g WHERE {TOTAL}.agents = 0 AND {of_gone};",
    )


def _snapshot_spans() -> _Rollup:
    of_new = f"FROM {SPAN} WHERE agent_id = NEW.agent_id"
    return _Rollup(
        "snapshot_spans",
        put_in=f"INSERT INTO {SPAN_COLUMNS} SELECT NEW.agent_id, NEW.taken_at, NEW.taken_at "  # noqa: S608
        f"WHERE NOT EXISTS (SELECT 1 {of_new}); "
        f"UPDATE {SPAN} SET oldest = MIN(oldest, NEW.taken_at), newest = MAX(newest, NEW.taken_at) "
        "WHERE agent_id = NEW.agent_id;",
        take_out=_shrink("agent_id = OLD.agent_id", "agent_id = OLD.agent_id AND {end} = OLD.taken_at"),
        put_all_in=f"INSERT INTO {SPAN_COLUMNS} {_spans(WRITTEN)} ORDER BY 1 ON CONFLICT (agent_id) DO UPDATE "
        f"SET oldest = LEAST({SPAN}.oldest, EXCLUDED.oldest), newest = GREATEST({SPAN}.newest, EXCLUDED.newest);",
        take_all_out=_shrink(
            f"agent_id IN (SELECT agent_id FROM {GONE})",  # noqa: S608 - our own names
            f"(agent_id, {{end}}) IN (SELECT agent_id, taken_at FROM {GONE})",  # noqa: S608 - our own names
        ),
    )


def _shrink(whose: str, whose_end: str) -> str:
    """Ends the spans of whose no snapshot is left, and looks up the ends of whose outermost ones are gone."""
    own = f"FROM {SNAPSHOT} s WHERE s.agent_id = {SPAN}.agent_id"
    ends = " ".join(
        f"UPDATE {SPAN} SET {end} = (SELECT {outermost}(s.taken_at) {own}) WHERE {whose_end.format(end=end)};"  # noqa: S608
        for end, outermost in (("oldest", "MIN"), ("newest", "MAX"))
    )
    return f"DELETE FROM {SPAN} WHERE {whose} AND NOT EXISTS (SELECT 1 {own}); {ends}"  # noqa: S608


def _universe_costs() -> Iterator[Trigger]:
    """Calls are written one by one, and once more when they are answered."""
    for event, row, cost, unless in (
        ("INSERT", "NEW", "NEW.cost_usd", "NEW.cost_usd = 0"),
        ("UPDATE OF cost_usd", "NEW", "NEW.cost_usd - OLD.cost_usd", "NEW.cost_usd = OLD.cost_usd"),
        ("DELETE", "OLD", "-OLD.cost_usd", "OLD.cost_usd = 0"),
    ):
        of_call = f"{DECISION} d JOIN {AGENT} a ON a.id = d.agent_id WHERE d.id = {row}.decision_id"
        its_own = f"(universe_id, family_id) = (SELECT d.universe_id, a.family_id FROM {of_call})"  # noqa: S608
        yield Trigger(
            name=f"universe_costs_{event.split()[0].lower()}",
            table=CALL,
            moment="AFTER",
            event=event,
            sqlite=f"INSERT INTO {COST_COLUMNS} SELECT d.universe_id, a.family_id, 0 FROM {of_call} "  # noqa: S608
            f"AND d.universe_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {COST} WHERE {its_own}); "
            f"UPDATE {COST} SET cost_usd = cost_usd + ({cost}) WHERE {its_own};",
            postgresql=f"INSERT INTO {COST_COLUMNS} SELECT d.universe_id, a.family_id, {cost} FROM {of_call} "  # noqa: S608
            "AND d.universe_id IS NOT NULL ON CONFLICT (universe_id, family_id) "
            f"DO UPDATE SET cost_usd = {COST}.cost_usd + EXCLUDED.cost_usd;",
            when=f"{row}.decision_id IS NOT NULL AND NOT ({unless})",
        )
