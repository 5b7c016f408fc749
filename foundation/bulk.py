"""Many rows: rows by a key, iteration in batches, insertion, updates of what changed, compare-and-swap."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

from django.db import connection, connections, models, router, transaction
from django.utils import timezone

from foundation.change_times import UPDATED_AT, ChangeTime

BATCH = 2_000
"""Rows of one batch; few enough that the lock of a statement on them is short."""

FieldValues = tuple[Any, ...]
Row = TypeVar("Row")


def rows_by(name: str, rows: Iterable[Row]) -> dict[Any, Row]:
    """The rows by an attribute; of several with the same the last."""
    rows = list(rows)
    return dict(zip(map(attrgetter(name), rows), rows, strict=True))


def mappings_by(key: str, mappings: Iterable[Any]) -> dict[Any, Any]:
    """The mappings by one of their values; of several with the same the last."""
    mappings = list(mappings)
    return dict(zip(map(itemgetter(key), mappings), mappings, strict=True))


def subset(mapping: Mapping[Any, Any], keys: Iterable[Any]) -> dict[Any, Any]:
    """The part of a mapping under these keys, in their order."""
    return {key: mapping[key] for key in keys}


def chunks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """The items in lists of a size, the last one shorter."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def in_batches(rows: models.QuerySet, *fields: str) -> Iterator[list[tuple]]:
    """The primary keys of `rows` with `fields`, `BATCH` at a time, each found by the last key before it."""
    last = 0
    while batch := list(rows.filter(pk__gt=last).order_by("pk").values_list("pk", *fields)[:BATCH]):
        yield batch
        last = batch[-1][0]


def field_values(row: models.Model, names: Sequence[str]) -> FieldValues:
    return tuple(getattr(row, name) for name in names)


def create_missing(rows: Sequence[models.Model], *key: str) -> int:
    """Creates those of the rows whose key, the named fields, no stored row has; returns how many.

    They are read first, since the guards of SQLite refuse a stored key even where the statement would ignore it.
    PostgreSQL ignores the rows that another transaction stores meanwhile.
    """
    if not rows:
        return 0
    model: Any = type(rows[0])
    names = [model._meta.get_field(name).attname for name in key]
    keys = [field_values(row, names) for row in rows]
    with transaction.atomic():
        near = model._default_manager.order_by()
        for name, values in zip(names, zip(*keys, strict=True), strict=True):
            near = near.filter(**{f"{name}__in": set(values)})
        stored = set(near.values_list(*names))
        missing = [row for row, row_key in zip(rows, keys, strict=True) if row_key not in stored]
        model._default_manager.bulk_create(missing, ignore_conflicts=True, batch_size=200)
    return len(missing)


def insert_rows(model: Any, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Inserts all rows or none, each the values of the named fields; a row that is stored already is left out.

    The names must cover every column without a default; a `ChangeTime` gets its time. Not by `bulk_create`, whose
    `ignore_conflicts` on SQLite leaves out rows that break a constraint too.
    """
    fields: list[Any] = list(map(model._meta.get_field, names))
    changed_at = [timezone.now()] if issubclass(model, ChangeTime) else []
    fields += [model._meta.get_field(UPDATED_AT)] * len(changed_at)
    connection = connections[router.db_for_write(model)]
    columns_of_values = list(zip(*([*row, *changed_at] for row in rows), strict=True))
    if not columns_of_values:
        return
    prepared = list(map(partial(_prepared, connection), fields, columns_of_values))
    quoted = connection.ops.quote_name
    into = f"INSERT INTO {quoted(model._meta.db_table)} ({', '.join(quoted(field.column) for field in fields)})"
    # As in `bulk_create`: without a transaction SQLite would commit each row by itself.
    with transaction.atomic(using=connection.alias, savepoint=False), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # Columns as arrays: 50,000 scores take 2.5 s on two busy cores, with a statement for each row 5.6 s.
            arrays = ", ".join(f"%s::{field.db_type(connection).partition('(')[0]}[]" for field in fields)
            cursor.execute(f"{into} SELECT * FROM UNNEST({arrays}) ON CONFLICT DO NOTHING", prepared)  # noqa: S608 - our own names
        else:
            places = ", ".join(["%s"] * len(fields))
            cursor.executemany(f"{into} VALUES ({places}) ON CONFLICT DO NOTHING", list(zip(*prepared, strict=True)))


def _prepared(connection: Any, field: Any, values: Sequence[Any]) -> list[Any]:
    """The values of a column as the driver takes them; one that many rows share, such as an instant, is made once.

    Values must be hashable: no JSON.
    """
    by_value = {value: field.get_db_prep_save(value, connection) for value in set(values)}
    return [by_value[value] for value in values]


def update_changed(rows: Iterable[Any], before: Mapping[int, FieldValues], names: Sequence[str]) -> None:
    """Updates the rows whose named fields differ from `before`, setting the fields that differ in any row.

    PostgreSQL locks them in the order of their ids, so that two writers wait for each other instead of deadlocking.
    """
    changed = sorted((row for row in rows if field_values(row, names) != before[row.pk]), key=attrgetter("pk"))
    fields = []
    for place, name in enumerate(names):
        if any(getattr(row, name) != before[row.pk][place] for row in changed):
            fields.append(name)
    for batch in chunks(changed, BATCH):
        stored = type(batch[0])._default_manager
        with transaction.atomic(savepoint=False):
            if connection.features.has_select_for_update:
                locked = stored.filter(pk__in=[row.pk for row in batch]).order_by("pk").select_for_update()
                list(locked.values_list("pk"))
            stored.bulk_update(batch, fields)


def compare_and_swap(
    model: Any, values: Mapping[int, FieldValues], names: Sequence[str], *, field: str, expected: Mapping[int, Any]
) -> list[int]:
    """Stores new values, by id, in the rows whose `field` has its expected value; returns the ids of these rows."""
    swapped = []
    for pk in sorted(values):  # in one order, so that two writers wait for each other instead of deadlocking
        row = model._default_manager.filter(pk=pk, **{field: expected[pk]})
        if row.update(**dict(zip(names, values[pk], strict=True))):
            swapped.append(pk)
    return swapped
