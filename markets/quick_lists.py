"""Lists of records whose head costs little however many rows there are: what is counted, and what can be chosen."""

from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Model, QuerySet, TextField
from django.db.models.functions import Cast, Substr
from django.http import HttpRequest

from markets.readonly import COUNTED, BoundedPaginator, LeanChangeList, ReadOnlyAdmin

DIGITS = {"year": 4, "month": 7, "day": 10}
"""How much of a time's text tells one period from another."""
FIRST = "0001-01-01"
"""What stands for the part of a date that a period does not have."""


class KeysPaginator(BoundedPaginator):
    """Counts keys alone: of limited rows every added column would be worked out before they are counted."""

    @cached_property
    def count(self) -> int:  # type: ignore[override]
        rows: Any = self.object_list
        return rows.order_by().values("pk")[:COUNTED].count()


def periods(rows: QuerySet[Any], field: str, kind: str) -> list[datetime]:
    """The years, months or days (UTC) in which rows have a time, oldest first, as `datetimes` gives them.

    Cut out of the text of the column: SQLite would call Python for every row to truncate its time.
    """
    begun = Substr(Cast(field, TextField()), 1, DIGITS[kind])
    there = rows.exclude(**{field: None}).annotate(period=begun).order_by().values_list("period", flat=True).distinct()
    return [datetime.fromisoformat(text + FIRST[len(text) :]).replace(tzinfo=UTC) for text in sorted(there)]


def values_of(model: type[Model], column: str) -> type[admin.AllValuesFieldListFilter]:
    """A filter by a field whose values stand in a small table too: the list's own is not read through for them."""

    class Values(admin.AllValuesFieldListFilter):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            known = model._default_manager.order_by(column).values_list(column, flat=True)
            self.lookup_choices = known.distinct()

    return Values


class QuickChangeList(LeanChangeList):
    """A list that knows its days without asking Python of every row."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows: Any = self.queryset
        # Asked by the template tag of the date hierarchy.
        rows.datetimes = partial(periods, self.queryset)


class QuickAdmin(ReadOnlyAdmin):
    """Records to look at, of which there are many."""

    paginator = KeysPaginator

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return QuickChangeList
