"""A migration that gives up, breaks or is killed leaves every guard of the record in its place."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.databases import PROJECT, DatabaseCopies, postgres_url

SETTINGS = """
from arena_site.settings import *
INSTALLED_APPS += ["later"]
if "sqlite" in DATABASES["default"]["ENGINE"]:
    options = DATABASES["default"]["OPTIONS"]
    options["timeout"], options["init_command"] = 0.2, options["init_command"].replace("30000", "200")
from foundation import migration_operations
migration_operations.PATIENCE = "300ms"
"""
FIRST = """
import sqlite3
from django.db import migrations
writers = []
def take_lock(apps, schema_editor):
    database = schema_editor.connection.settings_dict["NAME"]
    if {locks} and schema_editor.connection.vendor == "sqlite":
        writers.append(sqlite3.connect(database, isolation_level=None))
        writers[0].execute("BEGIN IMMEDIATE")
class Migration(migrations.Migration):
    atomic = False
    dependencies = [("agents", "0003_orders_on_postgresql"), ("scoring", "0001_initial")]
    operations = [migrations.RunPython(take_lock)]
"""
SECOND = """
import os
from django.db import migrations, models
def end(apps, schema_editor):
    {end}
class Later(migrations.AddField):
    def __init__(self, model, app):
        super().__init__(model, "later", models.TextField(null=True, unique=True))  # SQLite makes the table anew
        self.app = app
    def state_forwards(self, app_label, state):
        super().state_forwards(self.app, state)
    def database_forwards(self, app_label, *rest):
        super().database_forwards(self.app, *rest)
class Migration(migrations.Migration):
    dependencies = [("later", "0001_first")]
    operations = [Later("trade", "agents"), Later("leaderboard", "scoring"), migrations.RunPython(end)]
"""
ENDS = {"killed": "os._exit(9)", "well": "pass"}
GAVE_UP = "CommandError: another transaction held a lock"
SCRIPT = """
import sys
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", *sys.argv[1:]])
"""
TRIGGERS = {
    "sqlite": "SELECT tbl_name, name FROM sqlite_master WHERE type = 'trigger'",
    "postgres": "SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE NOT tgisinternal",
}
APPLIED = "SELECT count(*) FROM django_migrations WHERE name = '0002_second'"


class LaterVersion:
    """A database, and a later version of the arena with two migrations more."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder, self.migrations = url, folder, folder / "later" / "migrations"
        self.migrations.mkdir(parents=True)
        for path in (self.migrations, self.migrations.parent):
            (path / "__init__.py").touch()
        (folder / "later_settings.py").write_text(SETTINGS)

    def migrate(self, *, end: str = "well", locks: bool = False) -> "subprocess.CompletedProcess[str]":
        """The migration of which the second step ends so, after the first took a lock."""
        (self.migrations / "0001_first.py").write_text(FIRST.format(locks=locks))
        (self.migrations / "0002_second.py").write_text(SECOND.format(end=ENDS[end]))
        env = {"DATABASE_URL": self.url, "SECRET_KEY": "only-for-tests", "DJANGO_SETTINGS_MODULE": "later_settings"}
        env |= {"PYTHONPATH": f"{self.folder}{os.pathsep}{PROJECT}", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", SCRIPT, "migrate", "-v0"]
        return subprocess.run(command, cwd=PROJECT, env=os.environ | env, capture_output=True, text=True)

    def state(self) -> tuple[list[Any], int]:
        """The triggers of its database by table, and the number of times that the second migration was applied."""
        scheme, _, path = self.url.partition(":///")
        with closing(sqlite3.connect(path) if scheme == "sqlite" else psycopg.connect(self.url)) as database:
            triggers = database.execute(TRIGGERS["sqlite" if scheme == "sqlite" else "postgres"]).fetchall()
            ((applied,),) = database.execute(APPLIED).fetchall()
        return sorted(triggers), applied


def test_migration_of_sqlite_that_does_not_end_well_leaves_every_guard(tmp_path: Path, migrated_file: Path) -> None:
    copies = DatabaseCopies("sqlite", tmp_path)
    later = LaterVersion(copies.address(copies.fresh(str(migrated_file))), tmp_path)
    before = later.state()
    assert len(before[0]) > 100
    gave_up = later.migrate(locks=True)
    assert (gave_up.returncode != 0, GAVE_UP in gave_up.stderr, later.state()) == (True, True, before)
    assert later.migrate(end="killed").returncode == 9
    assert later.state() == before
    migrated = later.migrate()
    assert (migrated.returncode, migrated.stderr) == (0, "")
    assert later.state() == (before[0], 1)


@pytest.mark.postgres
def test_migration_of_postgresql_that_does_not_end_well_leaves_every_guard(tmp_path: Path) -> None:
    with DatabaseCopies(postgres_url(), tmp_path) as copies:
        url = copies.address(copies.fresh())
        env = {"DATABASE_URL": url, "SECRET_KEY": "only-for-tests"}
        subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=PROJECT, env=os.environ | env, check=True)
        later = LaterVersion(url, tmp_path)
        before = later.state()
        assert len(before[0]) > 100
        with psycopg.connect(url) as reads, psycopg.connect(url, autocommit=True) as page:
            reads.execute("SELECT count(*) FROM scoring_leaderboard")  # and its transaction goes on
            gave_up = later.migrate()
            page.execute("SET lock_timeout = '1s'")
            page.execute("SELECT count(*) FROM scoring_leaderboard")  # nobody waits behind the migration any more
        (line,) = gave_up.stderr.strip().splitlines()
        assert (gave_up.returncode, gave_up.stdout, line.startswith(GAVE_UP), later.state()) == (1, "", True, before)
