"""Indexes added online: writers do not wait on PostgreSQL; on SQLite Django's own operation runs."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from django.db import connection, models
from django.db.migrations.loader import MigrationLoader

from markets.foundation.online_migrations import AddIndexOnline
from tests.databases import PROJECT, DatabaseCopies, postgres_url

TIMEOUT_S = 20
WITH_SHORT_LOCK_TIMEOUT = """
import django
django.setup()
from django.core.management import call_command
from django.db import connection
from markets.foundation.online_migrations import lock_timeout
from tests.markets.test_online_migrations import change_index
call_command("migrate", "markets", verbosity=0)
print("migrated", flush=True)
input()
with lock_timeout(connection, "50ms"):
    change_index()
"""
FORWARDS_AND_BACKWARDS = """
import django
django.setup()
from django.core.management import call_command
from tests.markets.test_online_migrations import change_index, index_names
call_command("migrate", "markets", verbosity=0)
print(*index_names())
change_index()
print(*index_names())
change_index(backwards=True)
print(*index_names())
"""
NEW_ALERT = "INSERT INTO markets_alert (kind, subject, message, raised_at) VALUES ('sample', %s, '', now())"
WAITING_FOR_LOCK = """
SELECT query_start < clock_timestamp() - interval '200 ms' FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%INDEX CONCURRENTLY%'
"""


def change_index(*, backwards: bool = False) -> None:
    """Adds or removes an index of alerts by message, as a migration would."""
    operation = AddIndexOnline("alert", models.Index(fields=["message"], name="alert_by_message"))
    before = MigrationLoader(None).project_state()
    after = before.clone()
    operation.state_forwards("markets", after)
    with connection.schema_editor(atomic=False) as editor:
        if backwards:
            operation.database_backwards("markets", editor, after, before)
        else:
            operation.database_forwards("markets", editor, before, after)


def index_names() -> set[str]:
    with connection.cursor() as cursor:
        return set(connection.introspection.get_constraints(cursor, "markets_alert"))


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_an_index_is_added_and_removed(kind: str, tmp_path: Path) -> None:
    """In a database of its own: a schema change outside a transaction can not be rolled back after the test."""
    with DatabaseCopies("sqlite://" if kind == "sqlite" else postgres_url(), tmp_path) as server:
        url = server.address(server.fresh())
        settings = {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "arena_site.settings", "SECRET_KEY": "x"}
        process = subprocess.run(
            [sys.executable, "-c", FORWARDS_AND_BACKWARDS],
            cwd=PROJECT,
            env=os.environ | settings,
            capture_output=True,
            text=True,
        )
    assert process.returncode == 0, process.stderr
    before, added, removed = (set(line.split()) for line in process.stdout.splitlines())
    assert added == before | {"alert_by_message"}
    assert removed == before


@pytest.mark.postgres
@pytest.mark.parametrize("invalid_index_left", [False, True], ids=["first attempt", "after a failed attempt"])
def test_writers_do_not_wait_while_an_index_is_built(tmp_path: Path, invalid_index_left: bool) -> None:
    with DatabaseCopies(postgres_url(), tmp_path) as server:
        url = server.address(server.fresh())
        settings = {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "arena_site.settings", "SECRET_KEY": "x"}
        with (
            subprocess.Popen(
                [sys.executable, "-c", WITH_SHORT_LOCK_TIMEOUT],
                cwd=PROJECT, env=os.environ | settings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            ) as builder,
            psycopg.connect(url) as first,
            psycopg.connect(url, autocommit=True) as second,
        ):  # fmt: skip
            assert builder.stdout is not None
            assert builder.stdout.readline() == "migrated\n"
            if invalid_index_left:
                second.execute("CREATE INDEX alert_by_message ON markets_alert (kind)")
            first.execute(NEW_ALERT, ["one"])  # its transaction stays open: the index must wait for it
            assert builder.stdin is not None
            builder.stdin.write("\n")
            builder.stdin.flush()
            end = time.monotonic() + TIMEOUT_S
            while second.execute(WAITING_FOR_LOCK).fetchone() != (True,):
                assert builder.poll() is None, "it did not wait, or not long enough"
                assert time.monotonic() < end
                time.sleep(0.02)
            second.execute("SET lock_timeout = '1s'")
            second.execute(NEW_ALERT, ["two"])
            first.commit()
            assert builder.wait(TIMEOUT_S) == 0
            built = second.execute("SELECT indexdef FROM pg_indexes WHERE indexname = 'alert_by_message'").fetchone()
        assert built is not None
        assert built[0].endswith("(message)")
