"""Locks that hold until the transaction ends, on both databases."""

from zlib import crc32

from django.db import connection
from django.db.models import F, QuerySet


def lock_rows(rows: QuerySet) -> int:
    """Makes every other writer of these rows wait; returns how many there are.

    By an update that changes nothing: SQLite ignores `SELECT … FOR UPDATE`.
    """
    column = next(field.name for field in rows.model._meta.concrete_fields if not field.primary_key)
    return rows.update(**{column: F(column)})


def lock_name(name: str) -> None:
    """Makes every other transaction that locks this name wait; on SQLite a transaction that writes is alone anyway."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [crc32(name.encode())])
