"""Filters of the admin's lists that ask what an operator asks."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from markets import clock

DAYS = 14
"""How many days back from the newest row can be chosen."""
NEWEST = 12
"""How many related rows can be chosen from; others are found by searching."""


@dataclass(frozen=True, slots=True)
class Look:
    """One question: its name in the address, its words, and the rows that answer it at an instant."""

    name: str
    words: str
    rows: Callable[[Any, datetime], Any]


def looks(*choices: Look) -> type[admin.SimpleListFilter]:
    """A filter by any one of some questions."""

    class Looks(admin.SimpleListFilter):
        title = "what to look at"
        parameter_name = "look"

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            return [(look.name, look.words) for look in choices]

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            chosen = next((look for look in choices if look.name == self.value()), None)
            return chosen.rows(queryset, clock.now()) if chosen else queryset

    return Looks


def above_median(rows: QuerySet[Any], field: str) -> QuerySet[Any]:
    """Those of the rows whose field is above the median of all of them."""
    values = sorted(rows.exclude(**{field: None}).order_by().values_list(field, flat=True))
    return rows.filter(**{f"{field}__gt": values[(len(values) - 1) // 2]}) if values else rows.none()


def days(field: str) -> type[admin.SimpleListFilter]:
    """A filter by one of the last days that have rows, for tables too big for a date hierarchy over all of them."""

    class Days(admin.SimpleListFilter):
        title = "day (UTC)"
        parameter_name = "day"

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            rows = model_admin.model._default_manager.order_by(f"-{field}")
            newest = rows.exclude(**{field: None}).values_list(field, flat=True).first()
            back = [newest - timedelta(days=number) for number in range(DAYS)] if newest else []
            return [(f"{day:%Y-%m-%d}", f"{day:%a %d %b %Y}") for day in back]

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            try:
                day = datetime.fromisoformat(f"{self.value() or ''}T00:00:00+00:00")
            except ValueError:
                return queryset
            return queryset.filter(**{f"{field}__gte": day, f"{field}__lt": day + timedelta(days=1)})

    return Days


class NewestRelated(admin.RelatedFieldListFilter):
    """A filter by one of the newest related rows, so that no list of choices grows for ever."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> Any:
        newest = field.related_model._default_manager.order_by("-pk")[:NEWEST]
        return [(row.pk, str(row)) for row in newest]
