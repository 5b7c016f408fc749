"""Schema changes beside writers: on PostgreSQL nobody waits for them, on SQLite they are the plain ones."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from django.db import connection, models
from django.db.migrations.loader import MigrationLoader

from markets.online import AddIndexOnline
from tests.databases import postgres_url
from tests.kills import ROOT, Database

PATIENCE_S = 20
IMPATIENT = """
import django
django.setup()
from django.core.management import call_command
from django.db import connection
from markets.online import lock_patience
from tests.markets.test_online import indexed
call_command("migrate", "markets", verbosity=0)
print("migrated", flush=True)
input()
with lock_patience(connection, "50ms"):
    indexed()
"""
THERE_AND_BACK = """
import django
django.setup()
from django.core.management import call_command
from tests.markets.test_online import indexed, indexes
call_command("migrate", "markets", verbosity=0)
print(*indexes())
indexed()
print(*indexes())
indexed(and_taken_back=True)
print(*indexes())
"""
NEW_ALERT = "INSERT INTO markets_alert (kind, subject, message, raised_at) VALUES ('sample', %s, '', now())"
WAITING = """
SELECT query_start < clock_timestamp() - interval '200 ms' FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%INDEX CONCURRENTLY%'
"""


def indexed(*, and_taken_back: bool = False) -> None:
    """Indexes alerts by message, as a migration would."""
    operation = AddIndexOnline("alert", models.Index(fields=["message"], name="alert_by_message"))
    before = MigrationLoader(None).project_state()
    after = before.clone()
    operation.state_forwards("markets", after)
    with connection.schema_editor(atomic=False) as editor:
        if and_taken_back:
            operation.database_backwards("markets", editor, after, before)
        else:
            operation.database_forwards("markets", editor, before, after)


def indexes() -> set[str]:
    with connection.cursor() as cursor:
        return set(connection.introspection.get_constraints(cursor, "markets_alert"))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_an_index_is_added_and_taken_back(kind: str, tmp_path: Path) -> None:
    """In a database of its own: a schema change outside a transaction can not be rolled back after the test."""
    with Database("sqlite://" if kind == "sqlite" else postgres_url(), tmp_path) as server:
        url = server.address(server.fresh())
        settings = {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "arena_site.settings", "SECRET_KEY": "x"}
        said = subprocess.run(
            [sys.executable, "-c", THERE_AND_BACK], cwd=ROOT, env=os.environ | settings, capture_output=True, text=True
        )
    assert said.returncode == 0, said.stderr
    before, there, back = (set(line.split()) for line in said.stdout.splitlines())
    assert there == before | {"alert_by_message"}
    assert back == before


@pytest.mark.parametrize("left_behind", [False, True], ids=["at first", "after an attempt that broke off"])
def test_writers_go_on_while_an_index_is_built(tmp_path: Path, left_behind: bool) -> None:
    with Database(postgres_url(), tmp_path) as server:
        url = server.address(server.fresh())
        settings = {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "arena_site.settings", "SECRET_KEY": "x"}
        with (
            subprocess.Popen(
                [sys.executable, "-c", IMPATIENT],
                cwd=ROOT, env=os.environ | settings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            ) as builder,
            psycopg.connect(url) as first,
            psycopg.connect(url, autocommit=True) as second,
        ):  # fmt: skip
            assert builder.stdout is not None
            assert builder.stdout.readline() == "migrated\n"
            if left_behind:
                second.execute("CREATE INDEX alert_by_message ON markets_alert (kind)")
            first.execute(NEW_ALERT, ["one"])  # its transaction stays open: the index must wait for it
            assert builder.stdin is not None
            builder.stdin.write("\n")
            builder.stdin.flush()
            end = time.monotonic() + PATIENCE_S
            while second.execute(WAITING).fetchone() != (True,):
                assert builder.poll() is None, "it did not wait, or not long enough"
                assert time.monotonic() < end
                time.sleep(0.02)
            second.execute("SET lock_timeout = '1s'")
            second.execute(NEW_ALERT, ["two"])
            first.commit()
            assert builder.wait(PATIENCE_S) == 0
            built = second.execute("SELECT indexdef FROM pg_indexes WHERE indexname = 'alert_by_message'").fetchone()
        assert built is not None
        assert built[0].endswith("(message)")
