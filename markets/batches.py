"""Walking a big table a batch at a time: each step a moment's lock, so that nobody who writes meanwhile waits long."""

from collections.abc import Iterator

from django.db.models import QuerySet

BATCH = 2_000
"""Rows of one step."""


def in_batches(rows: QuerySet, *fields: str) -> Iterator[list[tuple]]:
    """The primary keys of `rows` with `fields`, `BATCH` at a time; each goes on behind the last one."""
    last = 0
    while batch := list(rows.filter(pk__gt=last).order_by("pk").values_list("pk", *fields)[:BATCH]):
        yield batch
        last = batch[-1][0]
