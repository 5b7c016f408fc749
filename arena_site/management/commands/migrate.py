"""Django's `migrate`, which on PostgreSQL gives up where it can not get a lock soon.

A change of a table waits for whoever uses the table, and all who come later wait behind the change: one long
transaction and one migration would stop every snapshot and every page.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections

PATIENCE = "5s"
"""The longest that others stand behind a migration which itself waits."""


@contextmanager
def lock_timeout(connection: Any) -> Iterator[None]:
    """Sets PostgreSQL's `lock_timeout` for the block and restores it afterwards."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout')")
        (before,) = cursor.fetchone()
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [PATIENCE])
    try:
        yield
    finally:
        if not connection.needs_rollback:  # otherwise the rollback restores the setting
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('lock_timeout', %s, false)", [before])


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        connection: Any = connections[options["database"]]
        connection.ensure_connection()
        if connection.vendor != "postgresql" or connection.is_behind_pooler():  # whose other clients would get it too
            super().handle(*args, **options)
            return
        try:
            with lock_timeout(connection):
                super().handle(*args, **options)
        except OperationalError as error:
            if not isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
                raise
            raise CommandError(
                f"another transaction held a lock for over {PATIENCE}: the migration at hand was given up and "
                "nobody waits for it. Run migrate again when that transaction has ended."
            ) from error
