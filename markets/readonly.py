"""Admin pages for records: to be read and taken away, never written, and never counted in full."""

import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import SEARCH_VAR, ChangeList
from django.core.exceptions import FieldDoesNotExist, PermissionDenied
from django.core.paginator import Paginator
from django.db.models import F, Model, QuerySet
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, StreamingHttpResponse
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from markets.spreadsheets import cell

COUNTED = 10_000
"""How far a list counts its rows; who wants to see beyond narrows it."""
MOST_ROWS = 100_000
"""Rows of a list that are given as CSV at once; whole tables are exported by `export_dataset`."""
CHUNK = 2000
KEY = re.compile(r"=(.+__)?id")
"""A searched field that is a row's number."""


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

    def get_ordering_field(self, field_name: Any) -> Any:
        """Sorted by what rows belong to: where that goes by its keys, these are in the rows already."""
        found: Any = super().get_ordering_field(field_name)
        try:
            field: Any = self.lookup_opts.get_field(found)
        except FieldDoesNotExist:
            return found
        order = list(field.related_model._meta.ordering) if field.many_to_one else []
        if order == ["-pk"]:
            return F(field.attname).desc()
        return field.attname if order == ["pk"] else found

    def get_results(self, request: HttpRequest) -> None:
        """Finds a page's keys, then its rows by them: what is only filtered or sorted is neither joined nor read."""
        super().get_results(request)
        found: Any = self.result_list
        keys = list(found.values_list("pk", flat=True)) if self.result_count else []
        rows = self.apply_select_related(self.root_queryset.filter(pk__in=keys))
        self.result_list = rows.defer(*self.model_admin.list_defer).order_by(*self.queryset.query.order_by)


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
    # Django takes about a millisecond to draw each row.
    list_per_page = 50
    list_max_show_all = 100
    paginator = BoundedPaginator
    show_full_result_count = False
    # Beside each filter, the rows of the whole table that it would leave.
    show_facets = admin.ShowFacets.NEVER

    class Media:
        css = {"all": ["arena/admin.css"]}

    def get_search_fields(self, request: HttpRequest) -> Any:
        """A number alone is a row's, where a list knows rows by number; words are compared with texts alone.

        Each is looked for in a whole table otherwise, by all that the list can be searched for.
        """
        fields = super().get_search_fields(request)
        numbers = [word.isdecimal() for word in request.GET.get(SEARCH_VAR, "").split()]
        if numbers and all(numbers):
            return [name for name in fields if KEY.fullmatch(name)] or fields
        if any(numbers):
            return fields
        return [name for name in fields if not KEY.fullmatch(name)] or fields

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return LeanChangeList

    def get_urls(self) -> list[Any]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_csv"
        return [path("csv/", self.admin_site.admin_view(self.csv_view), name=name), *super().get_urls()]

    @property
    def csv_path(self) -> str:
        return reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_csv")

    def csv_view(self, request: HttpRequest) -> HttpResponseBase:
        """The list as it is narrowed and ordered, all pages of it, as CSV."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        shown = reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist")
        back = HttpResponseRedirect(f"{shown}?{request.GET.urlencode()}")
        try:
            rows = self.get_changelist_instance(request).queryset
        except IncorrectLookupParameters:
            return back  # where the list says what is wrong
        if rows.order_by()[: MOST_ROWS + 1].count() > MOST_ROWS:
            said = f"More than {MOST_ROWS:,} rows: narrow the list, or export the data set."
            self.message_user(request, said, messages.WARNING)
            return back
        columns = [("id", lambda row: row.pk), *self._columns(request)]
        lines = _lines([name for name, _ in columns], [value for _, value in columns], rows)
        file = f"{self.opts.model_name}.csv"
        return StreamingHttpResponse(
            lines,
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{file}"'},
        )

    def _columns(self, request: HttpRequest) -> Iterator[tuple[str, Callable[[Any], Any]]]:
        """The list's columns by name, but those that hold links."""
        for name in self.get_list_display(request):
            if not isinstance(name, str) or name in ("id", "pk", "__str__"):
                continue
            try:
                self.opts.get_field(name)
            except FieldDoesNotExist:
                method = getattr(self, name, None)
                if method is None:
                    yield name, attrgetter(name)
                elif method.__annotations__.get("return") not in (SafeString, "SafeString"):
                    yield name, method
            else:
                yield name, attrgetter(name)


class _Echo:
    """A file that gives back what is written to it."""

    def write(self, line: str) -> str:
        return line


def _lines(head: Sequence[str], columns: Sequence[Callable[[Any], Any]], rows: QuerySet[Any]) -> Iterator[str]:
    written = csv.writer(_Echo())
    yield written.writerow(head)  # type: ignore[misc]
    for row in rows.iterator(chunk_size=CHUNK):
        yield written.writerow([cell(value(row)) for value in columns])  # type: ignore[misc]


class ReadOnlyTable(ReadOnly, admin.TabularInline):
    extra = 0
    can_delete = False
    show_change_link = True


class ReadOnlyStack(ReadOnly, admin.StackedInline):
    extra = 0
    can_delete = False
    show_change_link = True
