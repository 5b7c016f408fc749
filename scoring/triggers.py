"""Guards of the snapshots that are stored for good."""

from collections.abc import Iterator

from foundation.guards import Trigger, fixed, protected
from scoring.models import Snapshot


def triggers() -> Iterator[Trigger]:
    yield fixed(Snapshot)
    yield from protected(Snapshot, *_never_pruned())


def _never_pruned() -> tuple[str, str]:
    """The condition of an agent's newest snapshot and of those at 00:00 UTC, for PostgreSQL and for SQLite."""
    table = Snapshot._meta.db_table
    newest = (
        f"NOT EXISTS (SELECT 1 FROM {table} newer WHERE newer.agent_id = OLD.agent_id "  # noqa: S608 - our own names
        "AND newer.taken_at > OLD.taken_at)"
    )
    midnight = "CAST(OLD.taken_at AT TIME ZONE 'UTC' AS time) = '00:00'"
    return f"{midnight} OR {newest}", f"time(OLD.taken_at) = '00:00:00' OR {newest}"
