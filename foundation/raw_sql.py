"""SQL by hand: values without the conversions of the ORM, the database's name, indexes on PostgreSQL alone."""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.db import connection, connections, models
from django.db.migrations import RunPython

from foundation.fields import ExactDecimalField


def stored_unit(model: type[models.Model], name: str) -> Decimal:
    """The factor from a field's raw number to its value: its last decimal place on SQLite, 1 on PostgreSQL."""
    field = model._meta.get_field(name)
    assert isinstance(field, ExactDecimalField)
    return field.unit if connections[model.objects.db].vendor == "sqlite" else Decimal(1)  # type: ignore[attr-defined]


def parse_timestamp(value: Any) -> datetime | None:
    """An aware datetime from a raw column: SQLite returns text, PostgreSQL a datetime."""
    if value is None:
        return None
    at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def database_name() -> str:
    """The name of our database, the same in each process that uses it."""
    parts = connection.settings_dict
    if connection.vendor == "sqlite":
        return str(Path(parts["NAME"]).resolve())
    host = parts["HOST"] or parts["OPTIONS"].get("host") or "localhost"
    return f"{host}:{parts['PORT'] or 5432}/{parts['NAME']}"


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
