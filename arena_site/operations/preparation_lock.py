"""The lock under which one `arena` at a time prepares a database: two migrations at once would break each other."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from django.db import DatabaseError, connection

LOCK_ID = int.from_bytes(b"arena", "big")
POLL_S = 0.2


@contextmanager
def preparation_lock() -> Iterator[None]:
    """Waits for every other `arena` that prepares this database, and keeps others waiting for the block."""
    with _postgres_lock() if connection.vendor == "postgresql" else _folder_lock():
        yield


@contextmanager
def _folder_lock() -> Iterator[None]:
    # The folder, not the file: closing another descriptor of its file would drop SQLite's own locks.
    folder = os.open(Path(connection.settings_dict["NAME"]).resolve().parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


@contextmanager
def _postgres_lock() -> Iterator[None]:
    """A transaction's advisory lock, on a connection of its own. Behind PgBouncer a session's would not hold."""
    lock: Any = connection.copy()
    try:
        lock.set_autocommit(False)
        while not _is_acquired(lock):
            lock.rollback()
            time.sleep(POLL_S)
        yield
    finally:
        with suppress(DatabaseError):
            lock.rollback()  # the pool logs a warning where a connection returns in a transaction
        lock.close()


def _is_acquired(lock: Any) -> bool:
    """Tries at once. Building an index concurrently waits for every statement's snapshot, so none may be left open."""
    with lock.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK_ID])
        is_acquired = bool(cursor.fetchone()[0])
        # Also ends the SELECT, whose portal PostgreSQL would keep open until the next statement.
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        return is_acquired
