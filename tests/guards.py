"""Protected tables without their guard triggers, for tests that tamper with them or empty them."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection
from django.db.models import Model

from foundation import guards


def remove_guards(*models: type[Model]) -> None:
    """Drops the guard triggers of these models' tables, or of all tables."""
    tables = {model._meta.db_table for model in models}
    # PostgreSQL drops no trigger of a table whose foreign keys are still to be checked.
    connection.check_constraints()
    with connection.cursor() as cursor:
        for table, name in guards.installed(connection):
            if not tables or table in tables:
                cursor.execute(f"DROP TRIGGER {name}" + (f" ON {table}" if connection.vendor == "postgresql" else ""))


def install_guards() -> None:
    """Creates those guard triggers that the database lacks."""
    guards.install(connection)


@contextmanager
def guards_removed(*models: type[Model]) -> Iterator[None]:
    """No guard triggers on these models' tables, or on any table, inside the block."""
    remove_guards(*models)
    try:
        yield
    finally:
        guards.install(connection)
