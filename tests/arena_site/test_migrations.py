"""Migrations on a full database: none stops the snapshots for long, none loses what it should keep."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.contrib.postgres.operations import (
    AddConstraintNotValid,
    AddIndexConcurrently,
    RemoveIndexConcurrently,
    ValidateConstraint,
)
from django.core.management import call_command
from django.db import IntegrityError, connection, migrations, models
from django.db.migrations.graph import MigrationGraph
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.questioner import MigrationQuestioner
from django.db.migrations.state import ModelState, ProjectState

from arena_site.management.commands.makemigrations import FieldAutodetector
from tests.databases import DATA_MIGRATIONS, PROJECT, DatabaseCopies, postgres_url
from tests.faults.processes import CommandRunner

pytestmark = [pytest.mark.slow, pytest.mark.each_database]

OURS = ("foundation", "markets", "cohorts", "agents", "scoring")
INITIAL = {
    *(("foundation", "0001_initial"), ("markets", "0001_initial"), ("cohorts", "0001_initial")),
    *(("cohorts", "0002_methodologies"), ("agents", "0001_initial"), ("agents", "0002_lineup_2026")),
    ("scoring", "0001_initial"),
}
"""They meet an empty database: nobody can be kept waiting."""
CORRECTIONS = {("markets", "0002_indexes_on_postgresql"), ("agents", "0003_orders_on_postgresql")}
"""Later migrations that run code, but insert no row into an empty database."""
REVIEWED = CORRECTIONS
"""Later migrations that a person has found to be quick on a full PostgreSQL, whatever the rule says of them."""
BIG = {
    *("markets.priceobservation", "markets.outcome", "markets.market", "markets.universeentry", "foundation.run"),
    *("agents.decision", "agents.modelcall", "agents.instruction", "agents.trade", "agents.position"),
    *("agents.settlement", "agents.journalentry"),
    *("scoring.snapshot", "scoring.brierscore"),
}
"""Tables that grow with every week, as app and model."""
BRIEF = (
    *(migrations.CreateModel, migrations.DeleteModel, migrations.RenameModel, migrations.RenameField),
    *(migrations.RemoveField, migrations.RemoveIndex, migrations.RenameIndex, migrations.RemoveConstraint),
    *(migrations.AlterModelTable, migrations.AlterModelTableComment, migrations.AlterModelOptions),
    *(migrations.AlterModelManagers, migrations.AlterConstraint),
    *(AddIndexConcurrently, RemoveIndexConcurrently, AddConstraintNotValid, ValidateConstraint),
)
"""A moment's lock, whatever the table holds; or long, but nobody waits for it."""
LOADER = MigrationLoader(None)
TAKEN_BACK = sorted(key for key in LOADER.disk_migrations if key[0] in OURS and key[1] != "0001_initial")


def later_migrations() -> list[migrations.Migration]:
    plan = dict.fromkeys(key for leaf in LOADER.graph.leaf_nodes() for key in LOADER.graph.forwards_plan(leaf))
    return [LOADER.graph.nodes[key] for key in plan if key[0] in OURS and key not in INITIAL]


# ── locks ─────────────────────────────────────────────────────────────────────────────────────────


def may_block(operation: Any, app: str) -> bool:
    """Whether an operation, unless a person knows better, keeps others waiting on a big table."""
    if isinstance(operation, migrations.SeparateDatabaseAndState):
        return any(may_block(inner, app) for inner in operation.database_operations)
    if isinstance(operation, migrations.AddField):
        field = operation.field
        if field.null and not (field.unique or field.db_index or isinstance(field, models.GeneratedField)):
            return False
    model = getattr(operation, "model_name", None) or getattr(operation, "name", None)
    return not isinstance(operation, BRIEF) and (model is None or f"{app}.{model.lower()}" in BIG)


def test_no_migration_locks_or_rewrites_a_big_table_for_long() -> None:
    assert set(LOADER.disk_migrations) >= INITIAL
    assert {f"{app}.{model}" for app, model in LOADER.project_state().models} >= BIG
    for migration in later_migrations():
        if (migration.app_label, migration.name) not in REVIEWED:
            blocking = [operation for operation in migration.operations if may_block(operation, migration.app_label)]
            assert blocking == [], f"{migration}: let a person look at them, then name it in REVIEWED"


BY_CASH = models.Index(fields=["cash"], name="snapshot_by_cash")
CASH = models.CheckConstraint(condition=models.Q(cash__gte=0), name="snapshot_cash_not_negative")
FAMILY = ("agents.family", models.PROTECT)


@pytest.mark.parametrize(
    ("operation", "blocks"),
    [
        (migrations.CreateModel("Note", [("id", models.BigAutoField(primary_key=True))]), False),
        (migrations.AddField("snapshot", "note", models.TextField(null=True)), False),
        (migrations.AddField("snapshot", "family", models.ForeignKey(*FAMILY, null=True, db_index=False)), False),
        (migrations.AddField("leaderboard", "note", models.TextField(default="")), False),
        (migrations.AddIndex("leaderboard", models.Index(fields=["computed_at"], name="by_time")), False),
        (migrations.RemoveField("snapshot", "brier"), False),
        (migrations.SeparateDatabaseAndState(state_operations=[migrations.AddIndex("snapshot", BY_CASH)]), False),
        (AddIndexConcurrently("snapshot", BY_CASH), False),
        (AddConstraintNotValid("snapshot", CASH), False),
        (migrations.AddField("snapshot", "note", models.TextField(default="")), True),
        (migrations.AddField("snapshot", "note", models.TextField(null=True, unique=True)), True),
        (migrations.AddField("snapshot", "family", models.ForeignKey(*FAMILY, null=True)), True),
        (migrations.AlterField("snapshot", "brier", models.FloatField(default=0.0)), True),
        (migrations.AddIndex("snapshot", BY_CASH), True),
        (migrations.AddConstraint("snapshot", CASH), True),
        (migrations.AlterUniqueTogether("snapshot", {("agent", "cash")}), True),
        (migrations.AlterOrderWithRespectTo("snapshot", "agent"), True),
        (migrations.SeparateDatabaseAndState([migrations.AddIndex("snapshot", BY_CASH)]), True),
        (migrations.RunSQL("UPDATE scoring_snapshot SET brier = 0", ""), True),
        (migrations.RunPython(migrations.RunPython.noop), True),
    ],
    ids=lambda value: value.formatted_description()[:60] if hasattr(value, "formatted_description") else "",
)
def test_operations_that_may_block_are_for_a_person_to_review(operation: Any, blocks: bool) -> None:
    assert may_block(operation, "scoring") is blocks


@pytest.mark.thorough
@pytest.mark.postgres
def test_migrating_leaves_the_lock_timeout_of_its_connection_as_it_was(tmp_path: Path) -> None:
    script = """
import django; django.setup()
from django.core.management import call_command
from django.db import connection
call_command("migrate", verbosity=0)
with connection.cursor() as cursor:
    cursor.execute("SELECT current_setting('lock_timeout')")
    print(cursor.fetchone())
"""
    with DatabaseCopies(postgres_url(), tmp_path) as server:
        settings = {"DATABASE_URL": server.address(server.fresh()), "SECRET_KEY": "x"}
        settings["DJANGO_SETTINGS_MODULE"] = "arena_site.settings"
        process = subprocess.run(
            [sys.executable, "-c", script], cwd=PROJECT, env=os.environ | settings, capture_output=True, text=True
        )
    assert (process.stdout, process.stderr) == ("('0',)\n", "")


def test_every_migration_can_be_taken_back() -> None:
    ours = [migration for (app, _), migration in LOADER.disk_migrations.items() if app in OURS]
    assert [
        (str(m), type(operation).__name__) for m in ours for operation in m.operations if not operation.reversible
    ] == []


def test_restored_rows_are_those_of_all_data_migrations() -> None:
    filling = {
        f"{migration.app_label}.migrations.{migration.name}"
        for key, migration in LOADER.disk_migrations.items()
        if key[0] in (*OURS, "arena_site")
        and key not in CORRECTIONS
        and any(isinstance(operation, migrations.RunPython) for operation in migration.operations)
    }
    assert filling == {name for name, _ in DATA_MIGRATIONS}


@pytest.mark.parametrize(
    ("changed", "apps"),
    [
        (models.CharField(max_length=9, help_text="Another meaning."), []),
        (models.CharField(max_length=8, help_text="The same meaning."), ["notes"]),
        (models.CharField(max_length=9, help_text="The same meaning.", null=True), ["notes"]),
    ],
)
def test_all_but_another_help_text_needs_a_migration(changed: Any, apps: list[str]) -> None:
    states = []
    for field in (models.CharField(max_length=9, help_text="The same meaning."), changed):
        state = ProjectState()
        state.add_model(ModelState("notes", "Note", [("id", models.BigAutoField(primary_key=True)), ("text", field)]))
        states.append(state)
    autodetector = FieldAutodetector(*states, MigrationQuestioner(specified_apps={"notes"}))
    assert list(autodetector.changes(MigrationGraph())) == apps


@pytest.mark.django_db
def test_models_are_those_of_the_migrations() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)  # exits where they are not


# ── there and back on a full database ─────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def full(offline_arena: CommandRunner) -> str:
    name = offline_arena.migrated()
    offline_arena.read(name, _fill)
    return name


@pytest.mark.thorough
@pytest.mark.parametrize("app", sorted({app for app, _ in TAKEN_BACK}))
def test_migrations_taken_back_and_applied_again_lose_nothing_but_their_own(
    offline_arena: CommandRunner, full: str, app: str
) -> None:
    name = offline_arena.database.fresh(full)
    before = offline_arena.read(name, _rows)
    for key in reversed([key for key in TAKEN_BACK if key[0] == app]):
        offline_arena.read(name, lambda key=key: call_command("migrate", *_before(key), verbosity=0))
        without = offline_arena.read(name, _rows)
        without.pop("markets_cacheversion")  # renewed by every change of the rows that a version covers
        for table, rows in without.items():
            assert _narrowed(before.get(table, []), to=rows) == rows, (key, table)  # a table that goes is empty
    offline_arena.read(name, lambda: call_command("migrate", verbosity=0))
    restored = offline_arena.read(name, _rows)
    assert restored.keys() == before.keys()
    for table, rows in without.items():
        assert _narrowed(restored.get(table, []), to=rows) == rows, table
    assert offline_arena.call(name, "verify_ledger").code == 0
    assert "can not be changed" in offline_arena.read(name, _bend_the_rules)
    offline_arena.database.drop(name)


@pytest.mark.thorough
def test_all_the_way_back_and_up_again_is_an_arena_that_starts(offline_arena: CommandRunner, full: str) -> None:
    name = offline_arena.database.fresh(full)
    for app in ("scoring", "agents"):
        offline_arena.read(name, lambda app=app: call_command("migrate", app, "zero", verbosity=0))
    markets = offline_arena.read(name, _rows)
    assert len(markets["markets_outcome"]) == len(offline_arena.read(full, _rows)["markets_outcome"]) > 0
    assert "agents_agent" not in markets
    for app in ("arena_site", "cohorts", "markets", "foundation"):
        offline_arena.read(name, lambda app=app: call_command("migrate", app, "zero", verbosity=0))
    assert not {table for table in offline_arena.read(name, _rows) if table.startswith(OURS)}
    offline_arena.read(name, lambda: call_command("migrate", verbosity=0))
    assert offline_arena.call(name, "start_cohort").summary == {"cohort": 1, "created": True, "agents": 7}
    offline_arena.database.drop(name)


def _before(key: tuple[str, str]) -> tuple[str, str]:
    """What the app is migrated to so that this migration, and what rests on it, is taken back."""
    parents = [parent for parent in LOADER.graph.node_map[key].parents if parent.key[0] == key[0]]
    return (key[0], parents[0].key[1]) if parents else (key[0], "zero")


def _fill() -> None:
    """A season in bulk, one of each kind of row, and a cohort of each methodology: a version in use stays."""
    from cohorts.models import Methodology
    from tests.bulk_factories import create_portfolios
    from tests.factories import CohortFactory, play_week

    create_portfolios(cohorts=2, positions=10, markets=60)
    play_week()
    for number, version in enumerate(Methodology.objects.all(), start=90):
        CohortFactory(methodology=version, number=number)
    call_command("rebuild_derived", verbosity=0)


def _rows() -> dict[str, list[dict[str, Any]]]:
    """Every row of every table of ours."""
    rows = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if table.startswith(OURS):
                cursor.execute(f'SELECT * FROM "{table}" ORDER BY 1')
                columns = [column[0] for column in cursor.description]
                rows[table] = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
    return rows


def _narrowed(rows: list[dict[str, Any]], *, to: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with the columns that others have."""
    return [{column: row[column] for column in to[0]} for row in rows] if to else rows


def _bend_the_rules() -> str:
    from cohorts.models import Methodology

    try:
        Methodology.objects.filter(cohorts__isnull=False).update(minimum_bet=1)
    except IntegrityError as refused:
        return str(refused)
    return "bent"
