"""Schema changes that do not block writers on PostgreSQL; on SQLite, Django's own operations, which are quick."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db.migrations import AddIndex

NO_TIMEOUT = "0"


@contextmanager
def lock_timeout(connection: Any, timeout: str) -> Iterator[None]:
    """Sets PostgreSQL's `lock_timeout`, such as "5s", for the block and restores it afterwards."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout')")
        (before,) = cursor.fetchone()
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [timeout])
    try:
        yield
    finally:
        if not connection.needs_rollback:  # otherwise the rollback restores the setting
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('lock_timeout', %s, false)", [before])


class AddIndexOnline(AddIndexConcurrently):
    """Adds an index without blocking writers. Its migration needs `atomic = False` and no other operation.

    PostgreSQL waits for the transactions that were open before it, for which no timeout applies here because nobody
    waits for the index. An invalid index that a failed attempt left is dropped first, so `migrate` can be repeated.
    """

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor != "postgresql":
            AddIndex.database_forwards(self, app_label, schema_editor, from_state, to_state)
            return
        self._ensure_not_in_transaction(schema_editor)
        with lock_timeout(schema_editor.connection, NO_TIMEOUT):
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {schema_editor.quote_name(self.index.name)}")
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor != "postgresql":
            AddIndex.database_backwards(self, app_label, schema_editor, from_state, to_state)
            return
        with lock_timeout(schema_editor.connection, NO_TIMEOUT):
            super().database_backwards(app_label, schema_editor, from_state, to_state)
