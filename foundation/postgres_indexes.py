"""The operation of migrations that builds indexes which PostgreSQL has and SQLite has not."""

from collections.abc import Mapping
from typing import Any

from django.db.migrations import RunPython


def postgres_indexes(definitions: Mapping[str, str]) -> RunPython:
    """Builds indexes, each `table (columns)` by its name; no writer waits, so the migration is not atomic."""

    def create(apps: Any, schema_editor: Any) -> None:
        if schema_editor.connection.vendor == "postgresql":
            for name, definition in definitions.items():
                schema_editor.execute(f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {definition}")

    def drop(apps: Any, schema_editor: Any) -> None:
        if schema_editor.connection.vendor == "postgresql":
            for name in definitions:
                schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")

    return RunPython(create, drop)
