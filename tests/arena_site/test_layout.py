"""A database of an earlier layout, or of a later version, is refused whole; landed migrations are never edited."""

import json
import re
import tomllib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.test import Client
from django.urls import reverse

from foundation.version import VERSION
from tests.arena_site.dashboard.accounts import sign_in
from tests.commands import run
from tests.databases import PROJECT
from tests.faults.processes import CommandRunner
from tests.markup import get_page, section, visible_text

EARLIER = "made by a version before 1.0.0: start anew with an empty one, or run that version"
OTHER = "made by version 1.0.0 with another layout: start anew with an empty one, or run that version"
LATER = "migrated by version 1.0.0 (scoring.0009_later), and this is version 1.0.0: run that version, or restore"
MAKE_OTHER = "UPDATE foundation_databaselayout SET layout = '0123456789ab'"
CASES = {
    "no layout stored": (["DROP TABLE IF EXISTS foundation_databaselayout"], EARLIER),
    "another layout": ([MAKE_OTHER], OTHER),
    "migrated later": (
        ["INSERT INTO django_migrations (app, name, applied) VALUES ('scoring', '0009_later', '2030-01-01')"], LATER,
    ),
}  # fmt: skip
CHANGES = ["ALTER TABLE foundation_alert DROP COLUMN message", "DELETE FROM django_migrations WHERE app = 'agents'"]
"""What an earlier layout may lack; its migrations have the same names."""
LANDED = PROJECT / "tests" / "arena_site" / "landed_migrations.sha256"
RELEASE = re.compile(r"^## (\S+)(?: \((\d{4}-\d\d-\d\d)\))?$", re.MULTILINE)
LOADER = MigrationLoader(None)


def execute(statements: list[str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def tables() -> list[str]:
    return sorted(connection.introspection.table_names())


def migrate_refusal() -> str:
    with pytest.raises(CommandError) as refused:
        call_command("migrate", verbosity=0)
    return str(refused.value)


@pytest.fixture
def migrated_copy(offline_arena: CommandRunner, migrated: str) -> Iterator[str]:
    name = offline_arena.database.fresh(migrated)
    yield name
    offline_arena.database.drop(name)


@pytest.mark.parametrize(("statements", "refusal"), CASES.values(), ids=CASES)
def test_database_of_another_layout_is_refused_before_anything_is_touched(
    offline_arena: CommandRunner, migrated_copy: str, statements: list[str], refusal: str
) -> None:
    offline_arena.read(migrated_copy, lambda: execute([*statements, *CHANGES]))
    before = offline_arena.read(migrated_copy, tables)
    assert refusal in offline_arena.read(migrated_copy, migrate_refusal)
    assert offline_arena.read(migrated_copy, tables) == before
    (item,) = [i for i in offline_arena.call(migrated_copy, "doctor").summary["items"] if i["name"] == "database"]
    assert not item["ok"]
    assert f"{item['detail']}: {item['remedy']}".startswith(f"the database was {refusal}")


def test_backup_of_an_earlier_layout_is_not_restored(
    offline_arena: CommandRunner, migrated_copy: str, migrated: str, tmp_path: Path
) -> None:
    live = offline_arena.database.fresh(migrated)
    for number, (statement, refusal) in enumerate(((MAKE_OTHER, OTHER), (CASES["no layout stored"][0][0], EARLIER))):
        offline_arena.read(migrated_copy, lambda sql=statement: execute([sql]))
        file = tmp_path / f"{number}.copy"
        assert offline_arena.call(migrated_copy, "backup", out=file).code == 0
        output = offline_arena.call(live, "restore", str(file), force=True)
        assert (output.code, refusal in output.stderr) == (1, True), output.stderr
        assert "foundation_databaselayout" in offline_arena.read(live, tables)
    offline_arena.database.drop(live)


@pytest.mark.django_db
def test_version_is_told_by_every_door(client: Client, tmp_path: Path) -> None:
    dashboard = get_page(sign_in("viewer"), reverse("admin:index"))
    assert f"Version {VERSION}" in visible_text(section(dashboard, "h-infrastructure"))
    assert run("export_dataset", None, out=tmp_path / "archive", format=["csv"]).code == 0
    assert json.loads((tmp_path / "archive/manifest.json").read_text())["versions"]["forecaster-arena"] == VERSION
    assert client.get("/healthz").json()["version"] == VERSION
    assert re.search(rf'^arena_info{{layout="[0-9a-f]{{12}}",version="{VERSION}"}} 1.0$',
                     client.get("/metrics").content.decode(), re.MULTILINE)  # fmt: skip
    assert tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"] == VERSION
    newest, *_ = RELEASE.findall((PROJECT / "CHANGELOG.md").read_text())
    assert newest[0] == VERSION


def test_landed_migration_is_never_edited() -> None:
    """`sha256sum` wrote the list; a migration joins it with the release that ships it, which then has its date."""
    landed = dict(line.split("  ")[::-1] for line in LANDED.read_text().splitlines())
    for path, digest in landed.items():
        assert sha256((PROJECT / path).read_bytes()).hexdigest() == digest, f"{path} was edited: add one instead"
    (_, date), *_ = RELEASE.findall((PROJECT / "CHANGELOG.md").read_text())
    files = set()
    for migration in LOADER.disk_migrations.values():
        path = PROJECT / migration.app_label / "migrations" / f"{migration.name}.py"
        if path.is_file():
            files.add(str(path.relative_to(PROJECT)))
    assert landed.keys() == files or not date, "list the migrations of this release"
