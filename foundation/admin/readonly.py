"""Read-only admin classes: lists that count and join little however large their table, with download as CSV."""

import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from operator import attrgetter
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters, InlineModelAdmin
from django.contrib.admin.views.main import SEARCH_VAR, ChangeList
from django.core.exceptions import FieldDoesNotExist, PermissionDenied
from django.core.paginator import Paginator
from django.db.models import F, Model, QuerySet, TextField
from django.db.models.functions import Cast, Substr
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, StreamingHttpResponse
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from foundation.search_words import IGNORED_WORDS, has_ignored_words, search_words

MAX_COUNT = 10_000
"""Rows that a list counts and pages through at most; filters and search reach the others."""
MAX_CSV_ROWS = 100_000
"""Rows in one CSV download at most; whole tables are exported by `export_dataset`."""
CHUNK = 2000
ID_SEARCH_FIELD = re.compile(r"=(.+__)?id")
PERIOD_PREFIX = {"year": 4, "month": 7, "day": 10}
"""Characters of an ISO-8601 time that name its period."""
FIRST_DAY = "0001-01-01"
"""Completes the text of a year or month to a date."""


def verbatim(text: str) -> SafeString:
    """Text from outside in a <pre>, escaped."""
    # The HTML parser drops one line break after <pre>; without this one it would be the text's own.
    return format_html('<pre class="verbatim">\n{}</pre>', text)


def verbatim_column(name: str, description: str) -> Callable[[Any, Any], SafeString]:
    """A method of an admin class that shows a field's text byte for byte."""

    @admin.display(description=description)
    def column(_: Any, row: Any) -> SafeString:
        return verbatim(getattr(row, name))

    return column


def cost_column(name: str, *, description: str = "cost", ordering: str | None = None) -> Callable[[Any, Any], str]:
    """A method of an admin class that shows a cost to the cent of a cent; CSV files have the exact one."""

    @admin.display(description=description, ordering=ordering)
    def column(_: Any, row: Any) -> str:
        return f"${getattr(row, name):,.4f}"

    column.csv_field = name  # type: ignore[attr-defined]
    return column


def verbatim_json(value: Any) -> SafeString:
    return verbatim(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def json_column(name: str, description: str = "") -> Any:
    """A column that shows a JSON field as it is stored."""

    @admin.display(description=description or name)
    def column(row: Any) -> SafeString:
        return verbatim_json(getattr(row, name))

    return column


def changelist_link(model: type[Model], label: str, **lookup: Any) -> SafeString:
    """A link to the admin's list of `model`, filtered by `lookup`."""
    url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist", query=lookup)
    return format_html('<a href="{}">{}</a>', url, label)


def periods(rows: QuerySet[Any], field: str, kind: str) -> list[datetime]:
    """The years, months or days (UTC) in which rows have a time, oldest first, as `QuerySet.datetimes` gives them.

    Grouped by the column's text, because SQLite truncates a time by calling Python for every row.
    """
    prefix = Substr(Cast(field, TextField()), 1, PERIOD_PREFIX[kind])
    texts = rows.exclude(**{field: None}).annotate(period=prefix).order_by().values_list("period", flat=True).distinct()
    return [datetime.fromisoformat(text + FIRST_DAY[len(text) :]).replace(tzinfo=UTC) for text in sorted(texts)]


class BoundedPaginator(Paginator):
    """Pages over the first `MAX_COUNT` rows, so that no table is counted in full."""

    @cached_property
    def count(self) -> int:  # type: ignore[override]
        rows: Any = self.object_list
        # Keys alone: annotated columns of a limited query would be computed before the count.
        return rows.order_by().values("pk")[:MAX_COUNT].count()


class ReadOnlyChangeList(ChangeList):
    """A list that selects a page's keys first and its rows second, without the columns of `list_defer`."""

    model_admin: Any

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet:
        return super().get_queryset(request, exclude_parameters).defer(*self.model_admin.list_defer)

    def get_ordering_field(self, field_name: Any) -> Any:
        """The foreign key's own column where the related model is ordered by its key: no join is needed then."""
        name: Any = super().get_ordering_field(field_name)
        try:
            field: Any = self.lookup_opts.get_field(name)
        except FieldDoesNotExist:
            return name
        order = list(field.related_model._meta.ordering) if field.many_to_one else []
        if order == ["-pk"]:
            return F(field.attname).desc()
        return field.attname if order == ["pk"] else name

    def get_results(self, request: HttpRequest) -> None:
        """Selects the page's keys, then its rows by key: joins and annotations are worked out for these alone."""
        super().get_results(request)
        page: Any = self.result_list
        keys = list(page.values_list("pk", flat=True)) if self.result_count else []
        rows = self.apply_select_related(self.root_queryset.filter(pk__in=keys))
        self.result_list = rows.defer(*self.model_admin.list_defer).order_by(*self.queryset.query.order_by)
        # The template tag of the date hierarchy calls `datetimes`.
        self.queryset.datetimes = partial(periods, self.queryset)  # type: ignore[method-assign]


class ReadOnlyPermissions:
    """Denies adding, changing and deleting to every user."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class BoundedSearchAdmin(admin.ModelAdmin):
    """Base of the admin classes, whose searches look for eight words at most and say so."""

    def lookup_allowed(self, lookup: str, value: str, request: Any = None) -> bool:
        """Refuses conditions on the rows that refer to these: some of those may be secret."""
        relations = set(map(attrgetter("name"), self.opts.related_objects))
        return lookup.partition("__")[0] not in relations and super().lookup_allowed(lookup, value, request)

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        if has_ignored_words(search_term) and search_term == request.GET.get(SEARCH_VAR, "").strip():
            messages.warning(request, IGNORED_WORDS)
        return super().get_search_results(request, queryset, " ".join(search_words(search_term)))


class FixedOnceUsedAdmin(BoundedSearchAdmin):
    """Base of the admin classes of rows that can be changed and deleted until something refers to them."""

    def is_used(self, row: Any) -> bool:
        raise NotImplementedError

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and not (obj and self.is_used(obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and not (obj and self.is_used(obj))


class ReadOnlyAdmin(ReadOnlyPermissions, BoundedSearchAdmin):
    """Base of the admin classes of records: list, detail and CSV download, no form."""

    actions: Any = None
    list_defer: Sequence[str] = ()
    # Django takes about a millisecond to draw each row.
    list_per_page = 50
    list_max_show_all = 100
    paginator = BoundedPaginator
    show_full_result_count = False
    # Facets count the whole table once for each filter.
    show_facets = admin.ShowFacets.NEVER

    class Media:
        css = {"all": ["arena/admin.css"]}

    def get_search_fields(self, request: HttpRequest) -> Any:
        """Ids for a search of numbers, texts for a search of words, both for a mixture.

        Django would look for every word in every field, each with a scan of the table.
        """
        fields = super().get_search_fields(request)
        numbers = [word.isdecimal() for word in request.GET.get(SEARCH_VAR, "").split()]
        if numbers and all(numbers):
            return [name for name in fields if ID_SEARCH_FIELD.fullmatch(name)] or fields
        if any(numbers):
            return fields
        return [name for name in fields if not ID_SEARCH_FIELD.fullmatch(name)] or fields

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return ReadOnlyChangeList

    def get_urls(self) -> list[Any]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_csv"
        return [path("csv/", self.admin_site.admin_view(self.csv_view), name=name), *super().get_urls()]

    @property
    def csv_path(self) -> str:
        return reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_csv")

    def csv_view(self, request: HttpRequest) -> HttpResponseBase:
        """All rows of the list as it is filtered and ordered, as CSV."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        changelist = reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist")
        back = HttpResponseRedirect(f"{changelist}?{request.GET.urlencode()}")
        try:
            rows = self.get_changelist_instance(request).queryset
        except IncorrectLookupParameters:
            return back  # the list shows the error
        if rows.order_by()[: MAX_CSV_ROWS + 1].count() > MAX_CSV_ROWS:
            message = f"More than {MAX_CSV_ROWS:,} rows: narrow the list, or export the data set."
            self.message_user(request, message, messages.WARNING)
            return back
        names, columns = zip(("id", attrgetter("pk")), *self._csv_columns(request), strict=True)
        lines = _csv_lines(names, columns, rows)
        file = f"{self.opts.model_name}.csv"
        return StreamingHttpResponse(
            lines,
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{file}"'},
        )

    def _csv_columns(self, request: HttpRequest) -> Iterator[tuple[str, Callable[[Any], Any]]]:
        """Name and reader of each column of the list, except columns of links."""
        for name in self.get_list_display(request):
            if not isinstance(name, str) or name in ("id", "pk", "__str__"):
                continue
            try:
                self.opts.get_field(name)
            except FieldDoesNotExist:
                method = getattr(self, name, None)
                if exact := getattr(method, "csv_field", None):
                    yield exact, attrgetter(exact)
                elif method is None:
                    yield name, attrgetter(name)
                elif method.__annotations__.get("return") not in (SafeString, "SafeString"):
                    yield name, method
            else:
                yield name, attrgetter(name)


class _Echo:
    """A file whose `write` returns the line, as `csv.writer` then does."""

    def write(self, line: str) -> str:
        return line


def _csv_lines(head: Sequence[str], columns: Sequence[Callable[[Any], Any]], rows: QuerySet[Any]) -> Iterator[str]:
    from forecast_rank.files.csv_cells import csv_cell

    writer = csv.writer(_Echo())
    yield writer.writerow(head)  # type: ignore[misc]
    for row in rows.iterator(chunk_size=CHUNK):
        yield writer.writerow([csv_cell(value(row)) for value in columns])  # type: ignore[misc]


class ReadOnlyInline(ReadOnlyPermissions, InlineModelAdmin):
    extra = 0
    can_delete = False
    show_change_link = True
    list_select_related: Sequence[str] = ()
    list_defer: Sequence[str] = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request).defer(*self.list_defer)
        return rows.select_related(*self.list_select_related) if self.list_select_related else rows


class ReadOnlyTabularInline(ReadOnlyInline, admin.TabularInline):
    """A table of related rows."""


class ReadOnlyStackedInline(ReadOnlyInline, admin.StackedInline):
    """Related rows below each other."""
