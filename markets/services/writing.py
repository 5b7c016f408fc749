"""Writing many rows at once: of each only what is no longer as it was read, all in one statement's form."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import connections, models, router

State = tuple[Any, ...]


def state(row: models.Model, names: Sequence[str]) -> State:
    """What the named fields of a row hold."""
    return tuple(getattr(row, name) for name in names)


def write_changes(model: Any, rows: Iterable[models.Model], before: Mapping[int, State], names: Sequence[str]) -> None:
    """Writes those of `rows` whose named fields are no longer as in `before`, and only fields that moved in any.

    In the order of their ids, whatever theirs: two that write at once then queue for rows instead of locking each
    other out.
    """
    changed = sorted((row for row in rows if state(row, names) != before[row.pk]), key=lambda row: row.pk)
    moved: list[Any] = [
        model._meta.get_field(name)
        for place, name in enumerate(names)
        if any(getattr(row, name) != before[row.pk][place] for row in changed)
    ]
    if not moved:
        return
    connection = connections[router.db_for_write(model)]
    quoted = connection.ops.quote_name
    columns = ", ".join(f"{quoted(field.column)} = %s" for field in moved)
    key: Any = model._meta.pk
    statement = f"UPDATE {quoted(model._meta.db_table)} SET {columns} WHERE {quoted(key.column)} = %s"  # noqa: S608
    values = [
        [*(field.get_db_prep_save(getattr(row, field.attname), connection) for field in moved), row.pk]
        for row in changed
    ]
    with connection.cursor() as cursor:
        cursor.executemany(statement, values)
