"""The lock under which one `arena` at a time prepares a database: two migrations at once would break each other.

No transaction is held: building an index concurrently waits for every older one, the lock's own included.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import uuid4

from django.db import Error, IntegrityError, connection

TABLE = "arena_preparation"
"""Made here and not by a migration, which the lock comes before."""
LEASE_S = 15
"""How long others wait for an `arena` that died while it prepared the database."""
RENEWAL_S, POLL_S = 3, 0.2
CREATION = f"CREATE TABLE IF NOT EXISTS {TABLE} (id int PRIMARY KEY, holder text NOT NULL, until timestamptz NOT NULL)"
LEASE = f"now() + interval '{LEASE_S} seconds'"
CLAIM = (
    f"INSERT INTO {TABLE} (id, holder, until) VALUES (1, %s, {LEASE}) ON CONFLICT (id) DO UPDATE "  # noqa: S608 - our own names
    f"SET holder = EXCLUDED.holder, until = EXCLUDED.until WHERE {TABLE}.until < now()"
)
RENEWAL = f"UPDATE {TABLE} SET until = {LEASE} WHERE holder = %s"  # noqa: S608 - our own names
RELEASE = f"DELETE FROM {TABLE} WHERE holder = %s"  # noqa: S608 - our own names


@contextmanager
def preparation_lock() -> Iterator[None]:
    """Waits for every other `arena` that prepares this database, and keeps others waiting for the block."""
    if connection.vendor == "postgresql":
        with _leased_row():
            yield
        return
    # The folder, not the file: closing another descriptor of its file would drop SQLite's own locks.
    folder = os.open(Path(connection.settings_dict["NAME"]).resolve().parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


@contextmanager
def _leased_row() -> Iterator[None]:
    """A row with a lease, renewed by a thread. It holds behind PgBouncer too, where a session's lock does not."""
    holder, stop, lock = uuid4().hex, Event(), connection.copy()
    lock.inc_thread_sharing()
    with suppress(IntegrityError):  # of two that create the table at once, one fails
        _execute(lock, CREATION)
    while not _execute(lock, CLAIM, holder):
        time.sleep(POLL_S)
    renewal = Thread(target=_renew, args=(lock, holder, stop), daemon=True)
    renewal.start()
    try:
        yield
    finally:
        stop.set()
        renewal.join()
        _execute(lock, RELEASE, holder)
        lock.close()


def _renew(lock: Any, holder: str, stop: Event) -> None:
    while not stop.wait(RENEWAL_S):
        try:
            _execute(lock, RENEWAL, holder)
        except Error:  # the next renewal opens a new connection
            lock.close()


def _execute(lock: Any, statement: str, *parameters: str) -> int:
    """The number of rows that a statement wrote, in a transaction of its own."""
    with lock.cursor() as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)
