"""Sizes of this process and of the database: memory, descriptors, connections; tables with their rows and bytes."""

import os
from pathlib import Path

from django.apps import apps
from django.db import connection

DESCRIPTORS = Path("/proc/self/fd")


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptor_count() -> int:
    return len(os.listdir(DESCRIPTORS))


def connection_count() -> int:
    """Sessions on a database server, open handles on a database file."""
    if connection.vendor == "postgresql":
        return _select_number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
    database = os.path.realpath(str(connection.settings_dict["NAME"]))
    return sum(os.path.realpath(DESCRIPTORS / name) == database for name in os.listdir(DESCRIPTORS))


def row_counts() -> dict[str, int]:
    """Rows of every table that a model stands for, by the table's name."""
    tables = sorted({model._meta.db_table for model in apps.get_models(include_auto_created=True)})
    return {table: _select_number(f'SELECT count(*) FROM "{table}"') for table in tables}


def table_bytes() -> dict[str, int]:
    """Bytes of every table with its indexes, on PostgreSQL after a vacuum."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("VACUUM")
            cursor.execute("SELECT relname, pg_total_relation_size(relid) FROM pg_stat_user_tables")
        else:
            cursor.execute(
                "SELECT s.tbl_name, SUM(d.pgsize) FROM dbstat d JOIN sqlite_master s ON s.name = d.name"
                " WHERE d.aggregate = TRUE GROUP BY 1"
            )
        return {str(name): int(size) for name, size in cursor.fetchall()}


def database_bytes() -> int:
    if connection.vendor == "postgresql":
        return _select_number("SELECT pg_database_size(current_database())")
    return _select_number("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")


def _select_number(sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return int(cursor.fetchone()[0])
