"""What a process and a database hold: memory, descriptors, connections; tables with their rows and bytes."""

import os
import threading
from dataclasses import dataclass
from pathlib import Path

from django.apps import apps
from django.db import connection


@dataclass(frozen=True, slots=True)
class Footprint:
    """What this process holds."""

    resident: int
    """Bytes of memory."""
    descriptors: int
    connections: int
    """To the database: sessions on a server, open handles on a file."""
    threads: int


def footprint() -> Footprint:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Footprint(
        resident=pages * os.sysconf("SC_PAGE_SIZE"),
        descriptors=len(os.listdir("/proc/self/fd")),
        connections=_connections(),
        threads=threading.active_count(),
    )


def _connections() -> int:
    if connection.vendor == "postgresql":
        return int(_one("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"))
    database = os.path.realpath(str(connection.settings_dict["NAME"]))
    links = (Path("/proc/self/fd") / fd for fd in os.listdir("/proc/self/fd"))
    return sum(os.path.realpath(link) == database for link in links)


def row_counts() -> dict[str, int]:
    """Rows of every table that a model stands for, by the table's name."""
    tables = sorted({model._meta.db_table for model in apps.get_models(include_auto_created=True)})
    return {table: int(_one(f'SELECT count(*) FROM "{table}"')) for table in tables}


def table_bytes() -> dict[str, int]:
    """Bytes of every table with its indexes, once what was deleted has been made room of."""
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
        return int(_one("SELECT pg_database_size(current_database())"))
    return int(_one("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"))


def processor_seconds(pid: int) -> float:
    """Of a running process, since it began."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system = fields[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _one(sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        value = cursor.fetchone()[0]
    return int(value)
