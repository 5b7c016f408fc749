"""Django's `migrate`, which refuses databases of another layout, and says in one line that it gave up on a lock."""

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections
from psycopg.errors import LockNotAvailable

from arena_site.management.commands.makemigrations import FieldAutodetector
from foundation.layout import layout_refusal


class Command(migrate.Command):
    autodetector = FieldAutodetector

    def handle(self, *args: Any, **options: Any) -> None:
        if refusal := layout_refusal(connections[options["database"]]):
            raise CommandError(refusal)
        try:
            super().handle(*args, **options)
        except OperationalError as error:
            if not (isinstance(error.__cause__, LockNotAvailable) or "database is locked" in str(error)):
                raise
            raise CommandError(
                "another transaction held a lock for too long: the migration at hand was given up and nobody waits "
                "for it. Run migrate again when that transaction has ended."
            ) from error
