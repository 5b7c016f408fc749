"""What of this floor is on record: snapshots, as far as they are kept for ever. And what keeps derived rows in step:
tokens, totals, boards of past instants.
"""

from collections.abc import Iterator

from markets.guards import Trigger, fixed, kept
from scoring import past, revisions, rollups
from scoring.models import Snapshot


def triggers() -> Iterator[Trigger]:
    yield fixed(Snapshot)
    yield from kept(Snapshot, *_never_pruned())
    yield from revisions.triggers()
    yield from rollups.triggers()
    yield from past.triggers()


def _never_pruned() -> tuple[str, str]:
    """An agent's newest snapshot, and those of 00:00 UTC; for PostgreSQL and for SQLite."""
    table = Snapshot._meta.db_table
    newest = (
        f"NOT EXISTS (SELECT 1 FROM {table} newer WHERE newer.agent_id = OLD.agent_id "  # noqa: S608 - our own names
        "AND newer.taken_at > OLD.taken_at)"
    )
    midnight = "CAST(OLD.taken_at AT TIME ZONE 'UTC' AS time) = '00:00'"
    return f"{midnight} OR {newest}", f"time(OLD.taken_at) = '00:00:00' OR {newest}"
