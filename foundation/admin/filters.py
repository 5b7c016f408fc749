"""Filters for admin lists: preset queries, recent days, newest related rows, values read from a small table."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from foundation import clock

RECENT_DAYS = 14
"""Days that can be chosen, back from the newest row."""
NEWEST_ROWS = 12
"""Related rows that can be chosen; others are found by searching."""


@dataclass(frozen=True, slots=True)
class FilterPreset:
    """A named query: its value in the address, its label, and the rows that it selects at an instant."""

    name: str
    label: str
    rows: Callable[[Any, datetime], Any]


def preset_filter(*presets: FilterPreset) -> type[admin.SimpleListFilter]:
    """A filter by one of several presets."""

    class PresetFilter(admin.SimpleListFilter):
        title = "preset"
        parameter_name = "preset"

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            return [(preset.name, preset.label) for preset in presets]

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            active_preset = next((preset for preset in presets if preset.name == self.value()), None)
            return active_preset.rows(queryset, clock.now()) if active_preset else queryset

    return PresetFilter


def rows_above_median(rows: QuerySet[Any], field: str) -> QuerySet[Any]:
    """The rows whose field is above its median over all of them."""
    values = sorted(rows.exclude(**{field: None}).order_by().values_list(field, flat=True))
    return rows.filter(**{f"{field}__gt": values[(len(values) - 1) // 2]}) if values else rows.none()


def recent_days_filter(field: str) -> type[admin.SimpleListFilter]:
    """A filter by one of the last days that have rows, for tables too large for a date hierarchy."""

    class RecentDaysFilter(admin.SimpleListFilter):
        title = "day (UTC)"
        parameter_name = "day"

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            rows = model_admin.model._default_manager.order_by(f"-{field}")
            newest = rows.exclude(**{field: None}).values_list(field, flat=True).first()
            days = [newest - timedelta(days=number) for number in range(RECENT_DAYS)] if newest else []
            return [(f"{day:%Y-%m-%d}", f"{day:%a %d %b %Y}") for day in days]

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            try:
                day = datetime.fromisoformat(f"{self.value() or ''}T00:00:00+00:00")
            except ValueError:
                return queryset
            return queryset.filter(**{f"{field}__gte": day, f"{field}__lt": day + timedelta(days=1)})

    return RecentDaysFilter


class NewestRelatedFilter(admin.RelatedFieldListFilter):
    """A filter by one of the newest related rows, so that the list of choices stays short."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> Any:
        newest = field.related_model._default_manager.order_by("-pk")[:NEWEST_ROWS]
        return [(row.pk, str(row)) for row in newest]


def related_values_filter(model: type[Model], column: str) -> type[admin.AllValuesFieldListFilter]:
    """A filter by a field whose possible values are read from the smaller table of `model`."""

    class RelatedValuesFilter(admin.AllValuesFieldListFilter):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            values = model._default_manager.order_by(column).values_list(column, flat=True)
            self.lookup_choices = values.distinct()

    return RelatedValuesFilter
