"""Guards of the snapshots and boards that are stored for good, and of the journals that agree with snapshots."""

from collections.abc import Iterator

from agents.models import JournalEntry
from foundation.guards import Trigger, append_only, fixed, protected
from scoring.models import PublishedBoard, Snapshot


def triggers() -> Iterator[Trigger]:
    yield fixed(Snapshot)
    yield from append_only(PublishedBoard)
    yield from protected(Snapshot, *_never_pruned())
    yield _journal_follows_snapshots()


def _never_pruned() -> tuple[str, str]:
    """The condition of an agent's newest snapshot and of those at 00:00 UTC, for PostgreSQL and for SQLite."""
    table = Snapshot._meta.db_table
    newest = (
        f"NOT EXISTS (SELECT 1 FROM {table} newer WHERE newer.agent_id = OLD.agent_id "  # noqa: S608 - our own names
        "AND newer.taken_at > OLD.taken_at)"
    )
    midnight = "CAST(OLD.taken_at AT TIME ZONE 'UTC' AS time) = '00:00'"
    return f"{midnight} OR {newest}", f"time(OLD.taken_at) = '00:00:00' OR {newest}"


def _journal_follows_snapshots() -> Trigger:
    """No entry is dated before a snapshot of its agent, which lacks it; nor a trade at the instant of one."""
    journal, snapshot = JournalEntry._meta.db_table, Snapshot._meta.db_table
    contradicts = "taken_at >= NEW.occurred_at AND (taken_at > NEW.occurred_at OR NEW.trade_id IS NOT NULL)"
    contradicted = f"SELECT 1 FROM {snapshot} WHERE agent_id = NEW.agent_id AND {contradicts}"  # noqa: S608
    message = "the agent has a snapshot of that time without it: journals are dated after snapshots"
    return Trigger(f"{journal}_follows_snapshots", journal, "INSERT", message, f"EXISTS ({contradicted})")
