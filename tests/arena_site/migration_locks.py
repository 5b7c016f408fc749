"""What a migration would do to a full PostgreSQL: every operation that locks or rewrites a big table for long.

Django's operations are judged by what PostgreSQL does for them while others read and write the table. Whatever is not
known to be quick is called slow: a new kind of operation is to be looked at by a person first.
"""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from django.contrib.postgres.operations import AddConstraintNotValid, RemoveIndexConcurrently, ValidateConstraint
from django.db import ConnectionHandler, migrations, models
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models.expressions import Value
from django.db.models.functions import Now

from markets.foundation.online_migrations import AddIndexOnline

BIG = {
    *("markets.priceobservation", "markets.outcome", "markets.market", "markets.universeentry", "markets.run"),
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
    *(AddIndexOnline, RemoveIndexConcurrently, AddConstraintNotValid, ValidateConstraint),
)
"""A moment's lock, whatever the table holds; or long, but nobody waits for it."""
BRIEF_SQL = re.compile(
    r"\s*(CREATE\s+(UNIQUE\s+)?INDEX\s+CONCURRENTLY|DROP\s+INDEX|ALTER\s+TABLE\s+\S+\s+VALIDATE\s+CONSTRAINT"
    r"|ALTER\s+TABLE\s+\S+\s+ADD\s+CONSTRAINT\b.*\bNOT\s+VALID\s*$)",
    re.IGNORECASE | re.DOTALL,
)
COMPUTED_MODEL = re.compile(r"""get_model\((?!(["'][\w.]+["'](, )?)+\))""")
"""A call of get_model whose arguments are not plain text."""
TEXT = re.compile(r"varchar(?:\((\d+)\))?|text")
POSTGRES: Any = ConnectionHandler({"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "any"}})["default"]
"""Never connected: it knows PostgreSQL's name for each type."""


def slow_operations(migration: migrations.Migration, state: ProjectState) -> list[str]:
    """What in `migration`, applied to `state`, would keep others waiting on a big table; a line for each."""
    lines = []
    for operation in migration.operations:
        name = f"{migration.app_label}.{migration.name}, {type(operation).__name__}"
        lines += [f"{name}: {why}" for why in _faults(operation, migration, state)]
        state = _after(operation, migration, state)
    return lines


@dataclass(frozen=True, slots=True)
class _Change:
    """An operation on one big table, with what the project looked like before it and looks like after it."""

    operation: Any
    table: str
    before: ProjectState
    after: ProjectState

    def field(self, state: ProjectState) -> models.Field:
        return state.apps.get_model(self.table)._meta.get_field(self.operation.name)


def _after(operation: Operation, migration: migrations.Migration, state: ProjectState) -> ProjectState:
    state = state.clone()
    operation.state_forwards(migration.app_label, state)
    return state


def _faults(operation: Operation, migration: migrations.Migration, state: ProjectState) -> Iterator[str]:
    if isinstance(operation, migrations.SeparateDatabaseAndState):
        for inner in operation.database_operations:
            yield from _faults(inner, migration, state)
            state = _after(inner, migration, state)
    elif isinstance(operation, migrations.RunPython):
        for code in (operation.code, operation.reverse_code):
            if code is not None and code is not migrations.RunPython.noop:
                yield from _of_code(code, migration)
    elif isinstance(operation, migrations.RunSQL):
        for sql in (operation.sql, operation.reverse_sql):
            yield from _of_sql(sql)
    elif not isinstance(operation, BRIEF):
        model = getattr(operation, "model_name", getattr(operation, "name", "?"))
        table = f"{migration.app_label}.{model.lower()}"
        if table in BIG:
            change = _Change(operation, table, state, _after(operation, migration, state))
            yield from (f"{table} {why}" for why in _of_table(change))


def _of_table(change: _Change) -> Iterator[str]:
    match change.operation:
        case migrations.AddField():
            yield from _of_new_field(change.field(change.after))
        case migrations.AlterField():
            yield from _of_changed_field(change.field(change.before), change.field(change.after))
        case migrations.AddIndex():
            yield "takes no writes while the index is built: AddIndexOnline"
        case migrations.AddConstraint(constraint=models.CheckConstraint()):
            yield "is not read while every row is checked: AddConstraintNotValid, then ValidateConstraint"
        case migrations.AddConstraint():
            yield "takes no writes while the constraint's index is built"
        case _:
            yield "meets an operation that is not known to be quick"


def _of_new_field(field: models.Field) -> Iterator[str]:
    if field.many_to_many:
        return
    if isinstance(field, models.GeneratedField):
        yield f"is rewritten to compute {field.name}"
    elif field.has_db_default():
        if hasattr(field.db_default, "resolve_expression") and not isinstance(field.db_default, Value | Now):
            yield f"is rewritten: the database computes {field.name} anew for each row"
    elif not field.null:
        yield f"takes no rows from workers that do not know {field.name} yet: it needs a db_default"
    if field.unique or field.db_index:
        yield f"takes no writes while {field.name} is indexed: db_index=False, then AddIndexOnline"


def _of_changed_field(old: models.Field, new: models.Field) -> Iterator[str]:
    if old.null and not new.null:
        yield f"is not read while every {new.name} is looked at for null"
    if (new.unique and not old.unique) or (new.db_index and not old.db_index):
        yield f"takes no writes while {new.name} is indexed"
    was, becomes = old.db_parameters(POSTGRES), new.db_parameters(POSTGRES)
    if was["type"] != becomes["type"] and not _is_wider(was["type"], becomes["type"]):
        yield f"is rewritten: {new.name} turns from {was['type']} to {becomes['type']}"
    if becomes["check"] and was["check"] != becomes["check"]:
        yield f"is not read while every {new.name} is checked"


def _is_wider(old: str, new: str) -> bool:
    """Is one type of text a longer one of the other? PostgreSQL then touches no row."""
    was, becomes = TEXT.fullmatch(old), TEXT.fullmatch(new)
    return bool(was and becomes) and (not becomes[1] or bool(was[1] and int(was[1]) <= int(becomes[1])))


def _of_code(code: FunctionType, migration: migrations.Migration) -> Iterator[str]:
    """A function that names a big model, or hides which one it uses, must go in batches outside a transaction."""
    source = _source(code)
    big = sorted(label for label in BIG if re.search(rf"\b{label.partition('.')[2]}\b", source, re.IGNORECASE))
    if "execute(" in source or COMPUTED_MODEL.search(source):
        yield f"{code.__name__} does not say which tables it changes"
    elif big and "in_batches(" not in source:
        yield f"{', '.join(big)} is changed by {code.__name__} in one go: in_batches walks it in steps"
    elif big and migration.atomic:
        yield f"{', '.join(big)} stays locked by {code.__name__} until its last batch is done: atomic = False"


def _source(code: FunctionType) -> str:
    """The source of a function and of those of its module that it calls."""
    source = inspect.getsource(code)
    called = {code.__globals__.get(name) for name in re.findall(r"\b(\w+)\(", source)} - {code}
    own = (helper for helper in called if isinstance(helper, FunctionType) and helper.__module__ == code.__module__)
    return source + "".join(map(_source, own))


def _of_sql(sql: Any) -> Iterator[str]:
    statements = [sql] if isinstance(sql, str) else sql or []
    for statement in statements:
        text = statement if isinstance(statement, str) else statement[0]
        named = sorted(label for label in BIG if re.search(rf"\b{label.replace('.', '_')}\b", text))
        if named and not BRIEF_SQL.match(text):
            yield f"{', '.join(named)} meets SQL that is not known to be quick: {' '.join(text.split())[:60]}"
