"""Database triggers: the invariants that no constraint can say, held against code, admin and plain SQL alike.

Each app says in its `triggers.py` what it wants guarded. All are taken off before migrations are applied (SQLite can
not rename a table that a trigger speaks of, and drops the triggers of one that it remakes) and put back after every
migrate; `missing` says which are not there, or are not what was declared.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from django.apps import apps
from django.db.models import Model
from django.utils.module_loading import module_has_submodule

CHANGED, DELETED = "can not be changed", "can not be deleted"


@dataclass(frozen=True, slots=True)
class Trigger:
    """Does `sqlite` or `postgresql` (SQL statements) on an event, where the condition `when` holds over OLD and NEW."""

    name: str
    table: str
    moment: str
    event: str
    sqlite: str
    postgresql: str
    when: str = ""
    when_on_sqlite: str = ""
    """Where the two databases do not share words for the condition."""
    by_row: bool = True
    rows: str = ""
    """What PostgreSQL calls a statement's rows, for a trigger that is not by row: `NEW TABLE AS written`."""

    def statements(self, vendor: str) -> list[str]:
        """What makes the trigger anew; nothing where a database knows no such event."""
        if vendor == "postgresql":
            drop = f"DROP TRIGGER IF EXISTS {self.name} ON {self.table}"
            return [self._function(), drop, f"CREATE TRIGGER {self.name} {self._clause()}"]
        return [f"DROP TRIGGER IF EXISTS {self.name}", self.definition(vendor)] if self.event != "TRUNCATE" else []

    def definition(self, vendor: str) -> str:
        """What the database keeps of it, to be told from another of the name."""
        if vendor == "postgresql":
            return self._body()
        condition = self.when_on_sqlite or self.when.replace(" IS DISTINCT FROM ", " IS NOT ")
        when = f" WHEN {condition}" if condition else ""
        return f"CREATE TRIGGER {self.name} {self.moment} {self.event} ON {self.table}{when} BEGIN {self.sqlite} END"

    def _clause(self) -> str:
        rows = f" REFERENCING {self.rows}" if self.rows else ""
        each = "ROW" if self.by_row else "STATEMENT"
        return f"{self.moment} {self.event} ON {self.table}{rows} FOR EACH {each} EXECUTE FUNCTION {self.name}()"

    def _body(self) -> str:
        # A condition may look into other tables, which a trigger's own WHEN may not: it stands in the function. So
        # does the clause, so that the function's text tells all that there is to tell.
        inner = f"IF {self.when} THEN {self.postgresql} END IF;" if self.when else self.postgresql
        result = "NULL" if self.moment == "AFTER" or not self.by_row else "COALESCE(NEW, OLD)"
        return f" /* {self._clause()} */ BEGIN {inner} RETURN {result}; END "

    def _function(self) -> str:
        return f"CREATE OR REPLACE FUNCTION {self.name}() RETURNS trigger LANGUAGE plpgsql AS $${self._body()}$$"


def refusal(
    name: str, model: type[Model], event: str, message: str, when: str = "", when_on_sqlite: str = ""
) -> Trigger:
    """Refuses an event on the rows of a model for which `when` holds."""
    text = message.replace("'", "''")
    return Trigger(
        name=name,
        table=model._meta.db_table,
        moment="BEFORE",
        event=event,
        sqlite=f"SELECT RAISE(ABORT, '{text}');",
        postgresql=f"RAISE EXCEPTION '{text.replace('%', '%%')}' USING ERRCODE = 'integrity_constraint_violation';",
        when=when,
        when_on_sqlite=when_on_sqlite,
        by_row=event != "TRUNCATE",
    )


def fixed(model: type[Model], *names: str, when: str = "", name: str = "", message: str = "") -> Trigger:
    """Refuses to change a row; where fields are named, to change one of those; where `when` holds."""
    change = differs(model, names) if names else ""
    both = f"({change}) AND ({when})" if change and when else change or when
    said = message or f"{model._meta.verbose_name_plural} are on record: {', '.join(names) or 'they'} {CHANGED}"
    return refusal(name or f"{model._meta.db_table}_is_fixed", model, "UPDATE", said, both)


def kept(model: type[Model], when: str = "", when_on_sqlite: str = "") -> Iterator[Trigger]:
    """Refuses to delete a row for which `when` holds, and to empty the table at once."""
    table, said = model._meta.db_table, f"{model._meta.verbose_name_plural} are on record: they {DELETED}"
    yield refusal(f"{table}_is_kept", model, "DELETE", said, when, when_on_sqlite)
    yield refusal(f"{table}_is_not_emptied", model, "TRUNCATE", said)


def for_ever(*models: type[Model]) -> Iterator[Trigger]:
    """Rows that are written once: neither changed nor deleted."""
    for model in models:
        yield fixed(model)
        yield from kept(model)


def differs(model: type[Model], names: Sequence[str]) -> str:
    """The SQL condition that an UPDATE changes one of these fields."""
    columns = [str(model._meta.get_field(name).column) for name in names]  # type: ignore[union-attr]
    return " OR ".join(f'OLD."{column}" IS DISTINCT FROM NEW."{column}"' for column in columns)


def all_but(model: type[Model], *names: str) -> list[str]:
    """The fields of a model without these."""
    return [field.name for field in model._meta.concrete_fields if field.name not in names]


# ── all of them, in the database ──────────────────────────────────────────────────────────────────


def declared() -> list[Trigger]:
    """Every trigger that an app declares."""
    modules = [
        import_module(f"{app.name}.triggers")
        for app in apps.get_app_configs()
        if app.module is not None and module_has_submodule(app.module, "triggers")
    ]
    return [trigger for module in modules for trigger in module.triggers()]


def missing(connection: Any) -> list[Trigger]:
    """Those of the declared triggers that a database does not have as declared, as far as their tables are there."""
    there = _there(connection)
    tables = set(connection.introspection.table_names())
    vendor = connection.vendor
    return [
        trigger
        for trigger in declared()
        if trigger.table in tables
        and trigger.statements(vendor)
        and there.get((trigger.table, trigger.name)) != trigger.definition(vendor)
    ]


def unguarded(connection: Any) -> list[str]:
    """The tables that lack a trigger."""
    return sorted({trigger.table for trigger in missing(connection)})


def install(connection: Any) -> list[Trigger]:
    """Makes what is missing, and nothing else: no table is locked for a trigger that is there. Returns what it made."""
    lacking = missing(connection)
    _execute(connection, [sql for trigger in lacking for sql in trigger.statements(connection.vendor)])
    return lacking


def remove(connection: Any, triggers: Iterable[Trigger]) -> None:
    """Takes triggers away, as far as they are there."""
    there = _there(connection)
    on = " ON {}" if connection.vendor == "postgresql" else ""
    gone = [t for t in triggers if (t.table, t.name) in there]
    _execute(connection, [f"DROP TRIGGER {t.name}{on.format(t.table)}" for t in gone])


def _there(connection: Any) -> dict[tuple[str, str], str]:
    """The definition of every trigger that a database has and obeys, by table and name."""
    if connection.vendor == "postgresql":
        query = (
            "SELECT c.relname, t.tgname, p.prosrc FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
            "JOIN pg_proc p ON p.oid = t.tgfoid "
            "WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A') AND pg_table_is_visible(c.oid)"
        )
    else:
        query = "SELECT tbl_name, name, sql FROM sqlite_master WHERE type = 'trigger'"
    with connection.cursor() as cursor:
        cursor.execute(query)
        return {(table, name): definition for table, name, definition in cursor.fetchall()}


def _execute(connection: Any, statements: Sequence[str]) -> None:
    if not statements:
        return
    with connection.cursor() as cursor:
        for sql in statements if connection.vendor == "sqlite" else ["; ".join(statements)]:
            cursor.execute(sql)
