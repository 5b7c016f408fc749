"""A migration's indexes for orders that end with the rows without a value, which only PostgreSQL has.

Migrations that were applied use it: what it creates under a name may not change.
"""

from collections.abc import Mapping
from typing import Any

from django.db.migrations import RunPython


def null_last_indexes(columns: Mapping[str, tuple[str, str]]) -> RunPython:
    """The operation that creates indexes, descending with nulls last, on tables' columns by the index's name."""

    def create(apps: Any, schema_editor: Any) -> None:
        if schema_editor.connection.vendor == "postgresql":
            for name, (table, column) in columns.items():
                schema_editor.execute(f'CREATE INDEX {name} ON {table} ("{column}" DESC NULLS LAST, id DESC)')

    def drop(apps: Any, schema_editor: Any) -> None:
        if schema_editor.connection.vendor == "postgresql":
            for name in columns:
                schema_editor.execute(f"DROP INDEX IF EXISTS {name}")

    return RunPython(create, drop)
