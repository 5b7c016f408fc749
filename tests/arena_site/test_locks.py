"""The check of migrations: operations that are quick on a full table, and those that keep others waiting."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.postgres.operations import AddConstraintNotValid, AddIndexConcurrently, ValidateConstraint
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState
from django.db.models.functions import Now

from markets.foundation.bulk import in_batches
from markets.foundation.fields import CostField, MoneyField
from markets.foundation.online_migrations import AddIndexOnline
from markets.models import Run
from tests.arena_site.migration_locks import BIG, slow_operations


@pytest.fixture(scope="module")
def today() -> ProjectState:
    return MigrationLoader(None).project_state()


def test_big_tables_exist(today: ProjectState) -> None:
    assert {f"{app}.{model}" for app, model in today.models} >= BIG


def faults(today: ProjectState, *operations: Any, app: str = "scoring", atomic: bool = True) -> list[str]:
    migration = migrations.Migration("0002_sample", app)
    migration.operations, migration.atomic = list(operations), atomic
    return [line.partition(": ")[2] for line in slow_operations(migration, today)]


def add(field: models.Field, model: str = "snapshot", name: str = "note") -> migrations.AddField:
    return migrations.AddField(model, name, field)


def alter(name: str, field: models.Field, model: str = "snapshot") -> migrations.AlterField:
    return migrations.AlterField(model, name, field)


BY_CASH = models.Index(fields=["cash"], name="snapshot_by_cash")
CASH = models.CheckConstraint(condition=models.Q(cash__gte=0), name="snapshot_cash_not_negative")
ONE_CASH = models.UniqueConstraint(fields=["agent", "cash"], name="one_snapshot_per_cash")


@pytest.mark.parametrize(
    "operation",
    [
        migrations.CreateModel("Note", [("id", models.BigAutoField(primary_key=True))]),
        migrations.AlterModelOptions("snapshot", {"ordering": ["pk"]}),
        add(models.TextField(null=True)),
        add(models.TextField(null=True, default="nothing")),
        add(models.IntegerField(db_default=0)),
        add(models.DateTimeField(db_default=Now())),
        add(models.ManyToManyField("agents.family")),
        add(models.ForeignKey("agents.family", models.PROTECT, null=True, db_index=False)),
        add(models.IntegerField(default=0), model="leaderboard"),
        migrations.AddIndex("leaderboard", models.Index(fields=["computed_at"], name="board_by_time")),
        alter("brier", models.FloatField(null=True, blank=True, help_text="Said anew.")),
        alter("stale_positions", models.PositiveIntegerField(null=True)),
        migrations.RemoveField("snapshot", "brier"),
        migrations.RemoveIndex("snapshot", "snapshot_by_time"),
        migrations.SeparateDatabaseAndState(state_operations=[migrations.AddIndex("snapshot", BY_CASH)]),
        AddConstraintNotValid("snapshot", CASH),
        ValidateConstraint("snapshot", "snapshot_adds_up"),
        migrations.RunSQL("DELETE FROM scoring_leaderboard", migrations.RunSQL.noop),
        migrations.RunSQL("CREATE INDEX CONCURRENTLY by_cash ON scoring_snapshot (cash)", "DROP INDEX by_cash"),
    ],
    ids=lambda operation: operation.formatted_description()[:60],
)
def test_quick_operations_pass(today: ProjectState, operation: Any) -> None:
    assert faults(today, operation) == []


def test_an_index_built_online_passes(today: ProjectState) -> None:
    assert faults(today, AddIndexOnline("snapshot", BY_CASH), atomic=False) == []


def test_longer_text_passes_and_shorter_does_not(today: ProjectState) -> None:
    assert faults(today, alter("provider", models.CharField(max_length=300), "modelcall"), app="agents") == []
    assert faults(today, alter("provider", models.TextField(), "modelcall"), app="agents") == []
    assert faults(today, alter("provider", models.CharField(max_length=50), "modelcall"), app="agents") == [
        "agents.modelcall is rewritten: provider turns from varchar(200) to varchar(50)"
    ]


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        (migrations.AddIndex("snapshot", BY_CASH), "takes no writes while the index is built"),
        (AddIndexConcurrently("snapshot", BY_CASH), "takes no writes while the index is built"),
        (migrations.AddConstraint("snapshot", CASH), "is not read while every row is checked"),
        (migrations.AddConstraint("snapshot", ONE_CASH), "takes no writes while the constraint's index is built"),
        (migrations.AlterUniqueTogether("snapshot", {("agent", "cash")}), "not known to be quick"),
        (migrations.AlterOrderWithRespectTo("snapshot", "agent"), "not known to be quick"),
        (add(models.TextField(default="")), "needs a db_default"),
        (add(models.UUIDField(db_default=models.Func(function="gen_random_uuid"))), "computes note anew for each row"),
        (add(models.TextField(null=True, unique=True)), "takes no writes while note is indexed"),
        (add(models.ForeignKey("agents.family", models.PROTECT, null=True)), "takes no writes while note is indexed"),
        (
            add(models.GeneratedField(expression=models.F("cash"), output_field=MoneyField(), db_persist=True)),
            "rewritten to compute note",
        ),
        (alter("brier", models.FloatField(default=0.0)), "is not read while every brier is looked at for null"),
        (alter("brier", models.FloatField(null=True, db_index=True)), "takes no writes while brier is indexed"),
        (alter("cash", CostField()), "rewritten: cash turns from numeric(18, 2) to numeric(18, 12)"),
        (alter("resolved_bets", models.BigIntegerField()), "rewritten: resolved_bets turns from integer to bigint"),
        (alter("resolved_bets", models.TextField()), "rewritten: resolved_bets turns from integer to text"),
        (
            migrations.SeparateDatabaseAndState([migrations.AddIndex("snapshot", BY_CASH)]),
            "takes no writes while the index is built",
        ),
        (migrations.RunSQL("UPDATE scoring_snapshot SET brier = 0", ""), "SQL that is not known to be quick"),
        (migrations.RunSQL([("UPDATE scoring_snapshot SET brier = %s", [0])]), "SQL that is not known to be quick"),
        (migrations.RunSQL("", "ALTER TABLE scoring_snapshot ADD CHECK (cash > 0)"), "not known to be quick"),
    ],
    ids=lambda value: value.formatted_description()[:60] if hasattr(value, "formatted_description") else "",
)
def test_blocking_operations_are_reported(today: ProjectState, operation: Any, fault: str) -> None:
    (line,) = faults(today, operation)
    assert "scoring.snapshot" in line
    assert fault in line


def test_an_integer_that_may_no_longer_be_negative_is_checked_row_by_row(today: ProjectState) -> None:
    first = alter("resolved_bets", models.IntegerField())
    assert faults(today, first) == []
    assert faults(today, first, alter("resolved_bets", models.PositiveIntegerField())) == [
        "scoring.snapshot is not read while every resolved_bets is checked"
    ]


def without_batches(apps: Any, schema_editor: Any) -> None:
    apps.get_model("scoring", "Snapshot").objects.update(brier=None)


def by_another_function(apps: Any, schema_editor: Any) -> None:
    _empty(apps.get_model("scoring.Snapshot"))


def _empty(model: Any) -> None:
    for batch in in_batches(model.objects.all()):
        model.objects.filter(pk__in=[pk for (pk,) in batch]).update(brier=None)


def of_a_small_table(apps: Any, schema_editor: Any) -> None:
    apps.get_model("scoring", "Leaderboard").objects.update(entries=[])


def computed_names(apps: Any, schema_editor: Any) -> None:
    for name in ("Snapshot", "BrierScore"):
        apps.get_model("scoring", name).objects.update(brier=None)


def of_an_imported_model(apps: Any, schema_editor: Any) -> None:
    Run.objects.update(error="")


def in_sql(apps: Any, schema_editor: Any) -> None:
    schema_editor.execute("UPDATE scoring_snapshot SET brier = 0")


@pytest.mark.parametrize(
    ("code", "atomic", "fault"),
    [
        (of_a_small_table, True, None),
        (by_another_function, False, None),
        (by_another_function, True, "scoring.snapshot stays locked by by_another_function until its last batch"),
        (without_batches, False, "scoring.snapshot is changed by without_batches in one go"),
        (of_an_imported_model, False, "markets.run is changed by of_an_imported_model in one go"),
        (computed_names, False, "computed_names does not say which tables it changes"),
        (in_sql, False, "in_sql does not say which tables it changes"),
    ],
)
def test_data_migrations_must_commit_in_batches(
    today: ProjectState, code: Callable[..., None], atomic: bool, fault: str | None
) -> None:
    forwards = faults(today, migrations.RunPython(code, migrations.RunPython.noop), atomic=atomic)
    backwards = faults(today, migrations.RunPython(migrations.RunPython.noop, code), atomic=atomic)
    assert forwards == backwards
    assert [line[: len(fault or "")] for line in forwards] == ([fault] if fault else [])
