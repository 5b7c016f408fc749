"""Database triggers that protect the record from code, the admin and plain SQL alike.

A trigger refuses a change that no constraint can refuse. Each app declares its own in `triggers.py`. They are installed
after every migrate; `missing` lists those that a database does not have.

SQLite's REPLACE deletes the row that is in its way without firing a trigger for that. Every table that has a trigger
gets others there that refuse to write a key that another row has.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from typing import Any

from django.apps import apps
from django.db import transaction
from django.db.models import Model, UniqueConstraint
from django.utils.module_loading import module_has_submodule

CHANGED, DELETED, REPLACED = "can not be changed", "can not be deleted", "can not be replaced"


@dataclass(frozen=True, slots=True)
class Trigger:
    """Refuses an event (INSERT, UPDATE, DELETE, TRUNCATE) with a message where `when` holds over OLD and NEW."""

    name: str
    table: str
    event: str
    message: str
    when: str = ""
    when_on_sqlite: str = ""
    """The condition where the two databases spell it differently."""
    only_on: str = ""
    """The vendor of the only database that needs the trigger."""

    def statements(self, vendor: str) -> list[str]:
        """The SQL that creates the trigger; empty where the database does not need it."""
        if self.only_on not in ("", vendor):
            return []
        if vendor == "postgresql":
            drop = f"DROP TRIGGER IF EXISTS {self.name} ON {self.table}"
            return [self._function(), drop, f"CREATE TRIGGER {self.name} {self._clause()}"]
        return [f"DROP TRIGGER IF EXISTS {self.name}", self.definition(vendor)]

    def definition(self, vendor: str) -> str:
        """The text that the database stores of the trigger, to compare with."""
        if vendor == "postgresql":
            return self._body()
        condition = self.when_on_sqlite or self.when.replace(" IS DISTINCT FROM ", " IS NOT ")
        when = f" WHEN {condition}" if condition else ""
        refuse = f"SELECT RAISE(ABORT, '{self._quoted()}');"
        return f"CREATE TRIGGER {self.name} BEFORE {self.event} ON {self.table}{when} BEGIN {refuse} END"

    def _clause(self) -> str:
        level = "STATEMENT" if self.event == "TRUNCATE" else "ROW"
        return f"BEFORE {self.event} ON {self.table} FOR EACH {level} EXECUTE FUNCTION {self.name}()"

    def _body(self) -> str:
        # The condition may look into other tables, which a trigger's own WHEN may not. The clause stands in the
        # function as a comment, so that the function's text identifies the whole trigger.
        text = self._quoted().replace("%", "%%")
        refuse = f"RAISE EXCEPTION '{text}' USING ERRCODE = 'integrity_constraint_violation';"
        inner = f"IF {self.when} THEN {refuse} END IF;" if self.when else refuse
        result = "NULL" if self.event == "TRUNCATE" else "COALESCE(NEW, OLD)"
        return f" /* {self._clause()} */ BEGIN {inner} RETURN {result}; END "

    def _function(self) -> str:
        return f"CREATE OR REPLACE FUNCTION {self.name}() RETURNS trigger LANGUAGE plpgsql AS $${self._body()}$$"

    def _quoted(self) -> str:
        return self.message.replace("'", "''")


def fixed(model: type[Model], *names: str, when: str = "", name: str = "", message: str = "") -> Trigger:
    """A trigger that refuses to update a row, or only its fields `names`, wherever `when` holds."""
    change = differs(model, names) if names else ""
    condition = f"({change}) AND ({when})" if change and when else change or when
    default = f"{model._meta.verbose_name_plural} are on record: {', '.join(names) or 'they'} {CHANGED}"
    return Trigger(
        name or f"{model._meta.db_table}_is_fixed", model._meta.db_table, "UPDATE", message or default, condition
    )


def protected(model: type[Model], when: str = "", when_on_sqlite: str = "") -> Iterator[Trigger]:
    """Triggers that refuse to delete a row for which `when` holds, and to truncate the table."""
    table, message = model._meta.db_table, f"{model._meta.verbose_name_plural} are on record: they {DELETED}"
    yield Trigger(f"{table}_is_protected", table, "DELETE", message, when, when_on_sqlite)
    yield Trigger(f"{table}_is_not_truncated", table, "TRUNCATE", message, only_on="postgresql")


def append_only(*models: type[Model]) -> Iterator[Trigger]:
    """Refuses to change and to delete rows, which are written once."""
    for model in models:
        yield fixed(model)
        yield from protected(model)


def differs(model: type[Model], names: Sequence[str]) -> str:
    """The SQL condition that an UPDATE changes one of these fields."""
    columns = _columns(model, names)
    return " OR ".join(f'OLD."{column}" IS DISTINCT FROM NEW."{column}"' for column in columns)


def _columns(model: type[Model], names: Iterable[str]) -> list[str]:
    return [str(model._meta.get_field(name).column) for name in names]  # type: ignore[union-attr]


def all_but(model: type[Model], *names: str) -> list[str]:
    """The fields of a model without these."""
    return [field.name for field in model._meta.concrete_fields if field.name not in names]


def not_replaced(model: type[Model], *events: str) -> Iterator[Trigger]:
    """Triggers of SQLite that refuse an INSERT or UPDATE with a key that another row has, and so its REPLACE."""
    table, message = model._meta.db_table, f"{model._meta.verbose_name_plural} are on record: they {REPLACED}"
    has_key = " OR ".join(_key_is_taken(table, columns, condition) for columns, condition in _keys(model))
    names = {"INSERT": f"{table}_is_not_replaced", "UPDATE": f"{table}_replaces_no_other"}
    conditions = {"INSERT": has_key.format(but=""), "UPDATE": has_key.format(but=f" AND {table}.id <> OLD.id")}
    for event in events:
        yield Trigger(names[event], table, event, message, when_on_sqlite=conditions[event], only_on="sqlite")


def _keys(model: type[Model]) -> Iterator[tuple[list[Any], Mapping[Any, Any]]]:
    """The columns of each key of a model, and the texts in other columns that it is limited to."""
    for field in model._meta.concrete_fields:
        if field.unique:
            yield [field.column], {}
    for constraint in model._meta.constraints:
        if isinstance(constraint, UniqueConstraint):
            condition: Any = constraint.condition.children if constraint.condition else ()
            yield _columns(model, constraint.fields), dict(condition)


def _key_is_taken(table: str, columns: Iterable[Any], condition: Mapping[Any, Any]) -> str:
    """The condition that a row, but for the one that is updated, has the new row's key."""
    equalities = [f'{table}."{column}" = NEW."{column}"' for column in columns]
    for column, value in condition.items():
        equalities += [f"{table}.\"{column}\" = '{value}'", f"NEW.\"{column}\" = '{value}'"]
    return f"EXISTS (SELECT 1 FROM {table} WHERE {' AND '.join(equalities)}{{but}})"  # noqa: S608 - our own names


# ── the triggers of a database ────────────────────────────────────────────────────────────────────


def declared() -> list[Trigger]:
    """Every trigger that an app declares, and those of SQLite that go with them."""
    triggers: list[Trigger] = []
    for app in apps.get_app_configs():
        if app.module is not None and module_has_submodule(app.module, "triggers"):
            triggers += import_module(f"{app.name}.triggers").triggers()
    tables = set(map(attrgetter("table"), triggers))
    never_updated = {trigger.table for trigger in triggers if trigger.event == "UPDATE" and not trigger.when}
    for model in apps.get_models():
        table = model._meta.db_table
        if table in tables:
            triggers += not_replaced(model, "INSERT", *(() if table in never_updated else ("UPDATE",)))
    return triggers


def missing(connection: Any) -> list[Trigger]:
    """The declared triggers that a database does not have as declared, of the tables that it has."""
    definitions = installed(connection)
    tables = set(connection.introspection.table_names())
    vendor = connection.vendor
    triggers = []
    for trigger in declared():
        definition = definitions.get((trigger.table, trigger.name))
        if trigger.table in tables and trigger.statements(vendor) and definition != trigger.definition(vendor):
            triggers.append(trigger)
    return triggers


def unguarded(connection: Any) -> list[str]:
    """The tables that lack a trigger."""
    return sorted(set(map(attrgetter("table"), missing(connection))))


def install(connection: Any) -> list[Trigger]:
    """Creates the missing triggers and returns them; a table that has all of its own is not locked."""
    triggers = missing(connection)
    statements: list[str] = []
    for trigger in triggers:
        statements += trigger.statements(connection.vendor)
    _execute(connection, statements)
    return triggers


def installed(connection: Any) -> dict[tuple[str, str], str]:
    """The definition of every enabled trigger of a database, by table and name."""
    if connection.vendor == "postgresql":
        query = (
            "SELECT c.relname, t.tgname, p.prosrc FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
            "JOIN pg_proc p ON p.oid = t.tgfoid "
            "WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A') AND pg_table_is_visible(c.oid)"
        )
    else:
        query = "SELECT tbl_name, name, sql FROM sqlite_master WHERE type = 'trigger'"
    with connection.cursor() as cursor:
        cursor.execute(query)  # the ORM knows no system tables
        return {(table, name): definition for table, name, definition in cursor.fetchall()}


def _execute(connection: Any, statements: Sequence[str]) -> None:
    """Executes them all or none."""
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        for sql in statements:
            cursor.execute(sql)
