"""Django's `migrate`, which on PostgreSQL gives up where it can not get a lock soon.

A change of a table waits for whoever uses the table, and all who come later wait behind the change: one long
transaction and one migration would stop every snapshot and every page.
"""

from typing import Any

import psycopg
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections

from markets.foundation.online_migrations import lock_timeout

PATIENCE = "5s"
"""The longest that others stand behind a migration which itself waits."""


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        connection = connections[options["database"]]
        if connection.vendor != "postgresql":
            super().handle(*args, **options)
            return
        try:
            with lock_timeout(connection, PATIENCE):
                super().handle(*args, **options)
        except OperationalError as error:
            if not isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
                raise
            raise CommandError(
                f"another transaction held a lock for over {PATIENCE}: the migration at hand was given up and "
                "nobody waits for it. Run migrate again when that transaction has ended."
            ) from error
