"""Schema changes that a full PostgreSQL survives while everybody writes; on SQLite the plain ones, which are quick."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db.migrations import AddIndex

FOR_EVER = "0"


@contextmanager
def lock_patience(connection: Any, patience: str) -> Iterator[None]:
    """How long PostgreSQL waits for a lock, such as "5s", while the block runs; after it as before."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout')")
        (before,) = cursor.fetchone()
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [patience])
    try:
        yield
    finally:
        if not connection.needs_rollback:  # else it takes the setting back with all the rest
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('lock_timeout', %s, false)", [before])


class AddIndexOnline(AddIndexConcurrently):
    """Adds an index without stopping writers. Its migration needs `atomic = False` and holds nothing else.

    It waits for transactions that were open before it, while nobody waits for it: no patience ends that. What an
    attempt that broke off left behind is removed first, so that `migrate` can simply be run again.
    """

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor != "postgresql":
            AddIndex.database_forwards(self, app_label, schema_editor, from_state, to_state)
            return
        self._ensure_not_in_transaction(schema_editor)
        with lock_patience(schema_editor.connection, FOR_EVER):
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {schema_editor.quote_name(self.index.name)}")
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor != "postgresql":
            AddIndex.database_backwards(self, app_label, schema_editor, from_state, to_state)
            return
        with lock_patience(schema_editor.connection, FOR_EVER):
            super().database_backwards(app_label, schema_editor, from_state, to_state)
