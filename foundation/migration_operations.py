"""Operations before and after those of each migration, in its transaction: they keep the guards and limit its waits.

PostgreSQL changes tables beside their triggers, so that none is dropped. A change waits for whoever uses its table, and
all who come later wait behind it: after PATIENCE the migration gives up.

SQLite can not rename a table that a trigger names, and loses the triggers of a table that it remakes: each migration
drops them first and creates them anew last. One that gives up, breaks or is killed leaves them as they were.
"""

from typing import Any

from django.db.migrations import Migration
from django.db.migrations.operations.base import Operation

from foundation import guards

PATIENCE = "5s"
"""The longest that others stand behind a migration which itself waits."""


def limit_lock_waits(connection: Any) -> None:
    """Lets the statements of the transaction at hand give up where they do not get a lock soon; on PostgreSQL."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [PATIENCE])


class BeforeMigration(Operation):
    """`dropped` gets the text of each trigger by table and name."""

    def __init__(self, dropped: dict[tuple[str, str], str]) -> None:
        self.dropped = dropped

    def state_forwards(self, app_label: str, state: Any) -> None:
        pass

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        _prepare(schema_editor.connection, self.dropped)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        _restore(schema_editor.connection, self.dropped)


class AfterMigration(BeforeMigration):
    """The other one of the pair."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        _restore(schema_editor.connection, self.dropped)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        _prepare(schema_editor.connection, self.dropped)


def surround(migration: Migration) -> None:
    """Adds both. One that is not atomic builds indexes on PostgreSQL, for which nobody waits."""
    if migration.atomic:
        dropped: dict[tuple[str, str], str] = {}
        operations = [BeforeMigration(dropped), *migration.operations, AfterMigration(dropped)]
        migration.operations = operations  # type: ignore[misc]  # each instance has its own


def _prepare(connection: Any, dropped: dict[tuple[str, str], str]) -> None:
    limit_lock_waits(connection)
    if connection.vendor == "sqlite":
        dropped.update(guards.installed(connection))
        with connection.cursor() as cursor:
            for _, name in dropped:
                cursor.execute(f"DROP TRIGGER {name}")


def _restore(connection: Any, dropped: dict[tuple[str, str], str]) -> None:
    tables = connection.introspection.table_names() if dropped else []
    with connection.cursor() as cursor:
        for (table, _), definition in dropped.items():
            if table in tables:
                cursor.execute(definition)
