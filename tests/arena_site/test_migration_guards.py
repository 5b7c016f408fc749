"""A migration that gives up, breaks or is killed leaves every guard of the record in its place."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from tests.databases import PROJECT, DatabaseCopies, postgres_url
from tests.selection import chosen

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
ENDS = {
    "lock": ("pass", "CommandError: another transaction held a lock"),
    "broken": ("raise ValueError('broken')", "ValueError: broken"),
    "killed": ("os._exit(9)", ""),
}
TRIGGERS = {
    "sqlite": "SELECT tbl_name, name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE NOT tgisinternal",
}
SCRIPT = """
import sys
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", *sys.argv[1:]])
"""
READ = """
import django; django.setup()
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute({query!r})
    for row in sorted(cursor.fetchall()): print(*row)
    cursor.execute("SELECT count(*) FROM django_migrations WHERE name = '0002_second'")
    print(*cursor.fetchone())
"""


class LaterVersion:
    """A database, and a later version of the arena with two migrations more, the second of which ends in some way."""

    def __init__(self, url: str, folder: Path, end: str) -> None:
        package = folder / "later" / "migrations"
        package.mkdir(parents=True)
        for path in (package, package.parent):
            (path / "__init__.py").touch()
        (package / "0001_first.py").write_text(FIRST.format(locks=end == "lock"))
        (package / "0002_second.py").write_text(SECOND.format(end=ENDS[end][0]))
        (folder / "later_settings.py").write_text(SETTINGS)
        self.url, self.folder = url, folder

    def run(self, script: str, *arguments: str, settings: str = "later_settings") -> "subprocess.CompletedProcess[str]":
        env = {"DATABASE_URL": self.url, "SECRET_KEY": "only-for-tests", "DJANGO_SETTINGS_MODULE": settings}
        env |= {"PYTHONPATH": f"{self.folder}{os.pathsep}{PROJECT}"}
        command = [sys.executable, "-c", script, *arguments]
        return subprocess.run(command, cwd=PROJECT, env=os.environ | env, capture_output=True, text=True)

    def triggers(self) -> list[str]:
        """The triggers of its database by table, and the number of times that the second migration was applied."""
        query = TRIGGERS["sqlite" if self.url.startswith("sqlite") else "postgresql"]
        process = self.run(READ.format(query=query), settings="arena_site.settings")
        assert process.returncode == 0, process.stderr
        return process.stdout.splitlines()


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DatabaseCopies]:
    with DatabaseCopies(postgres_url(), tmp_path_factory.mktemp("server")) as copies:
        yield copies


@pytest.fixture(scope="module")
def template(databases: DatabaseCopies) -> str:
    """The name of a migrated PostgreSQL database."""
    name = databases.fresh()
    env = {"DATABASE_URL": databases.address(name), "SECRET_KEY": "only-for-tests"}
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=PROJECT, env=os.environ | env, check=True)
    return name


def check_guards(later: LaterVersion, end: str) -> None:
    """The guards stand after the migration that ends so, and after one that ends well."""
    before = later.triggers()
    assert len(before) > 100
    process = later.run(SCRIPT, "migrate", "-v0")
    assert process.returncode != 0
    assert ENDS[end][1] in process.stderr
    assert later.triggers() == before


@pytest.mark.parametrize("end", chosen(["broken"], ["lock", "broken", "killed"]))
def test_migration_of_sqlite_that_does_not_end_well_leaves_every_guard(
    end: str, tmp_path: Path, migrated_file: Path
) -> None:
    copies = DatabaseCopies("sqlite", tmp_path)
    later = LaterVersion(copies.address(copies.fresh(str(migrated_file))), tmp_path, end)
    check_guards(later, end)
    if end == "broken":
        (tmp_path / "later" / "migrations" / "0002_second.py").write_text(SECOND.format(end="pass"))
        process = later.run(SCRIPT, "migrate", "-v0")
        assert (process.returncode, process.stderr) == (0, "")
        *triggers, applied = later.triggers()
        assert (len(triggers) > 100, applied) == (True, "1")


@pytest.mark.postgres
@pytest.mark.parametrize("end", ["lock", pytest.param("broken", marks=pytest.mark.thorough)])
def test_migration_of_postgresql_that_does_not_end_well_leaves_every_guard(
    end: str, tmp_path: Path, databases: DatabaseCopies, template: str
) -> None:
    later = LaterVersion(databases.address(databases.fresh(template)), tmp_path, end)
    with ExitStack() as reader:
        if end == "lock":
            reads = reader.enter_context(psycopg.connect(later.url))
            reads.execute("SELECT count(*) FROM scoring_leaderboard")  # and its transaction goes on
        check_guards(later, end)
