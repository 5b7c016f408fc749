"""Snapshots rolled up by family and instant, kept by triggers in the very transaction that writes them.

Whoever writes a snapshot keeps its family's total: code, the admin, plain SQL.
"""

from collections.abc import Iterator
from typing import Any

from django.db import transaction

from agents.models import Agent
from markets.guards import Trigger
from scoring.models import FamilyTotal, Snapshot

TOTAL, SNAPSHOT, AGENT = FamilyTotal._meta.db_table, Snapshot._meta.db_table, Agent._meta.db_table
COLUMNS = f"{TOTAL} (family_id, taken_at, agents, total)"
SUMS = (
    "SELECT a.family_id, s.taken_at, COUNT(*), SUM(s.total_value) "  # noqa: S608 - our own names
    f"FROM {SNAPSHOT} s JOIN {AGENT} a ON a.id = s.agent_id"
)
GROUPED = "GROUP BY a.family_id, s.taken_at"


def triggers() -> Iterator[Trigger]:
    """What keeps the totals in step with snapshots. No agent ever becomes another family's."""
    yield _trigger("insert", "INSERT", _put_in(), _upsert())
    columns = "UPDATE OF agent_id, taken_at, total_value"
    yield _trigger("update", columns, f"{_take_out()} {_put_in()}", f"{_take_out()} {_upsert()}")
    yield _trigger("delete", "DELETE", _take_out(), _take_out())


def add_up(connection: Any) -> None:
    """Makes every total that of the snapshots there are: for a time when no trigger kept them."""
    sums = f"{SUMS} {GROUPED}"
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        if connection.vendor == "postgresql":  # what is written meanwhile would be counted twice or not at all
            cursor.execute(f"LOCK TABLE {SNAPSHOT} IN SHARE ROW EXCLUSIVE MODE")
        cursor.execute(f"DELETE FROM {TOTAL} WHERE (family_id, taken_at, agents, total) NOT IN ({sums})")  # noqa: S608
        cursor.execute(
            f"INSERT INTO {COLUMNS} {sums} HAVING NOT EXISTS "  # noqa: S608
            f"(SELECT 1 FROM {TOTAL} t WHERE t.family_id = a.family_id AND t.taken_at = s.taken_at)"
        )


def _trigger(name: str, event: str, sqlite: str, postgresql: str) -> Trigger:
    return Trigger(
        name=f"family_totals_{name}",
        table=SNAPSHOT,
        moment="AFTER",
        event=event,
        sqlite=sqlite,
        postgresql=postgresql,
    )


def _of(row: str) -> str:
    return f"taken_at = {row}.taken_at AND family_id = (SELECT family_id FROM {AGENT} WHERE id = {row}.agent_id)"  # noqa: S608


def _put_in() -> str:
    """In two steps: on SQLite, how an outer statement meets conflicts holds within its triggers too."""
    return (
        f"INSERT INTO {COLUMNS} SELECT family_id, NEW.taken_at, 0, 0 FROM {AGENT} "  # noqa: S608
        f"WHERE id = NEW.agent_id AND NOT EXISTS (SELECT 1 FROM {TOTAL} WHERE {_of('NEW')}); "
        f"UPDATE {TOTAL} SET agents = agents + 1, total = total + NEW.total_value WHERE {_of('NEW')};"
    )


def _upsert() -> str:
    return (
        f"INSERT INTO {COLUMNS} SELECT family_id, NEW.taken_at, 1, NEW.total_value FROM {AGENT} "  # noqa: S608
        "WHERE id = NEW.agent_id ON CONFLICT (taken_at, family_id) "
        f"DO UPDATE SET agents = {TOTAL}.agents + 1, total = {TOTAL}.total + EXCLUDED.total;"
    )


def _take_out() -> str:
    return (
        f"UPDATE {TOTAL} SET agents = agents - 1, total = total - OLD.total_value WHERE {_of('OLD')}; "  # noqa: S608
        f"DELETE FROM {TOTAL} WHERE agents = 0 AND {_of('OLD')};"
    )
