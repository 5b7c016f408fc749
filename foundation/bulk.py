"""Many rows: rows by a key, iteration in batches, creation, updates of what changed, compare-and-swap."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

from django.db import connection, models, transaction

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
    """Creates the rows whose key, the named fields, no stored row has: all or none. Returns how many.

    They are read first, since the guards of SQLite refuse a stored key even where the statement would ignore it.
    PostgreSQL ignores the rows that another transaction stores meanwhile. SQLite knows no such transaction, and would
    ignore rows that break a constraint too.
    """
    created = 0
    with transaction.atomic():
        for batch in chunks(rows, BATCH):
            missing = _missing_rows(batch, key)
            stored: Any = type(batch[0])._default_manager
            stored.bulk_create(missing, ignore_conflicts=connection.vendor == "postgresql", batch_size=200)
            created += len(missing)
    return created


def _missing_rows(rows: Sequence[models.Model], key: Sequence[str]) -> list[models.Model]:
    """The rows whose key no stored row has."""
    model: Any = type(rows[0])
    names = [model._meta.get_field(name).attname for name in key]
    keys = [field_values(row, names) for row in rows]
    near = model._default_manager.order_by()
    for name, values in zip(names, zip(*keys, strict=True), strict=True):
        near = near.filter(**{f"{name}__in": set(values)})
    stored = set(near.values_list(*names))
    return [row for row, row_key in zip(rows, keys, strict=True) if row_key not in stored]


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
