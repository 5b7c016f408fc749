"""Reads of one state of the database, while others write."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction


@contextmanager
def consistent_reads() -> Iterator[None]:
    """Lets every query of the block see the database as the first one does. The block must not write.

    Inside a transaction, which a test may have begun, nothing changes.
    """
    if connection.in_atomic_block:
        yield
        return
    reading = connections[DEFAULT_DB_ALIAS]
    reading.ensure_connection()  # which sets the transaction mode
    mode, settings = getattr(reading, "transaction_mode", None), reading.settings_dict
    if reading.vendor == "sqlite":
        reading.transaction_mode = "DEFERRED"  # type: ignore[attr-defined] # a read lock, which in WAL mode stops nobody
    reading.settings_dict = settings | {"DISABLE_SERVER_SIDE_CURSORS": False}  # a transaction keeps them
    try:
        with transaction.atomic():
            if reading.vendor == "postgresql":
                with reading.cursor() as cursor:
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            reading.reads_one_state = True  # type: ignore[attr-defined]
            yield
    finally:
        reading.settings_dict = settings
        reading.reads_one_state = False  # type: ignore[attr-defined]
        if reading.vendor == "sqlite":
            reading.transaction_mode = mode  # type: ignore[attr-defined]


@contextmanager
def second_connection() -> Iterator[bool]:
    """Makes writes possible during consistent reads, by a connection of their own. False in other transactions."""
    reading = connections[DEFAULT_DB_ALIAS]
    if not reading.in_atomic_block:
        yield True
    elif not getattr(reading, "reads_one_state", False):
        yield False
    else:
        connections[DEFAULT_DB_ALIAS] = writing = reading.copy()
        try:
            yield True
        finally:
            connections[DEFAULT_DB_ALIAS] = reading
            writing.close()
