"""Admin pages for records: to be read, never written, and never counted in full."""

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

COUNTED = 10_000
"""How far a list counts its rows; who wants to see beyond narrows it."""


def verbatim(text: str) -> SafeString:
    """Text from outside, escaped, with its line breaks."""
    # The parser drops one line break after <pre>: it gets one of its own to drop.
    return format_html('<pre class="verbatim">\n{}</pre>', text)


def verbatim_json(value: Any) -> SafeString:
    return verbatim(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def list_link(model: type[Model], label: str, **lookup: Any) -> SafeString:
    """A link to the admin's list of `model`, narrowed by lookups."""
    url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist", query=lookup)
    return format_html('<a href="{}">{}</a>', url, label)


class BoundedPaginator(Paginator):
    """Pages over the first rows only, so that no table is ever counted in full."""

    @cached_property
    def count(self) -> int:  # type: ignore[override]
        rows: Any = self.object_list
        return rows.order_by()[:COUNTED].count()


class LeanChangeList(ChangeList):
    """A list that leaves the columns named in `list_defer` in the database."""

    model_admin: Any

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet:
        return super().get_queryset(request, exclude_parameters).defer(*self.model_admin.list_defer)


class ReadOnly:
    """Neither add nor change nor delete, whoever asks."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnlyAdmin(ReadOnly, admin.ModelAdmin):
    """Records to look at."""

    actions: Any = None
    list_defer: Sequence[str] = ()
    paginator = BoundedPaginator
    show_full_result_count = False

    class Media:
        css = {"all": ["arena/admin.css"]}

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return LeanChangeList


class ReadOnlyTable(ReadOnly, admin.TabularInline):
    extra = 0
    can_delete = False
    show_change_link = True


class ReadOnlyStack(ReadOnly, admin.StackedInline):
    extra = 0
    can_delete = False
    show_change_link = True
