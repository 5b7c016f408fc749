"""Lists that readers search, filter, sort and page: all of it stands in the page's address."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from django.core.paginator import Page, Paginator
from django.db.models import F, QuerySet
from django.http import Http404, HttpRequest

from arena_site.pages.selection import PageSelection

PER_PAGE = 50
SEARCH_LENGTH = 200


class ListColumn(NamedTuple):
    """A column of a list; `field` is what sorts it, and None where it does not sort."""

    label: str
    name: str = ""
    """Its name in the page's address, with a minus for descending."""
    field: str | None = None
    descending: bool = False
    """True if its first click sorts the largest or newest first."""
    number: bool = False


class Heading(NamedTuple):
    """The heading of a column: the address that sorts by it, and how the list is sorted by it now."""

    column: ListColumn
    query: str | None
    direction: str | None


class Filter(NamedTuple):
    """A filter by one of several values, with the label of each."""

    name: str
    label: str
    values: Mapping[str, str]
    default_label: str = "all"
    """The label of no choice."""


class Dates(NamedTuple):
    """A filter by the days of a time, `first` and `last` included."""

    label: str
    field: str
    first: str
    last: str


@dataclass(frozen=True)
class ListPage:
    """A list as a request asks for it. Raises Http404 for a value that no filter knows."""

    request: HttpRequest
    columns: Sequence[ListColumn]
    default_sort: str
    filters: Sequence[Filter] = ()
    dates: Sequence[Dates] = ()
    per_page: int = PER_PAGE

    @cached_property
    def selection(self) -> PageSelection:
        sorts = [sign + column.name for column in self.columns if column.field for sign in ("", "-")]
        choices = {filter_.name: ["", *filter_.values] for filter_ in self.filters}
        choices["sort"] = sorted(sorts, key=self.default_sort.__ne__)
        selection = PageSelection.from_request(self.request, choices)
        for dates in self.dates:
            for name in (dates.first, dates.last):
                day = requested_day(self.request, name)
                selection = selection.with_text(name, day.isoformat() if day else "")
        return selection.with_text("q", search_text(self.request)).with_text("page", "")

    def narrowed(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """The rows in the days that the request names, in the order that it asks for."""
        for dates in self.dates:
            for name, lookup, days in ((dates.first, "gte", 0), (dates.last, "lt", 1)):
                if day := requested_day(self.request, name):
                    start = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=days)
                    rows = rows.filter(**{f"{dates.field}__{lookup}": start})
        return rows.order_by(*self._order(rows))

    def page(self, rows: QuerySet[Any]) -> Page[Any]:
        """The requested page: its keys first, which an index may hold in order, then the rows, which may be wide."""
        keys = self.narrowed(rows).prefetch_related(None).values_list("pk", flat=True)
        page = Paginator(keys, self.per_page).get_page(self.request.GET.get("page"))
        page.object_list = rows.filter(pk__in=list(page.object_list)).order_by(*self._order(rows))
        return page

    @property
    def headings(self) -> list[Heading]:
        return [self._heading(column) for column in self.columns]

    @property
    def hidden_fields(self) -> list[tuple[str, str]]:
        """The choices that the form of the filters hands on."""
        return [("sort", self.selection["sort"])] if "sort" in self.selection.chosen else []

    def _heading(self, column: ListColumn) -> Heading:
        if column.field is None:
            return Heading(column, None, None)
        directions = {column.name: "ascending", f"-{column.name}": "descending"}
        first, second = sorted(directions, key=lambda sort: (directions[sort] == "descending") != column.descending)
        current = self.selection["sort"]
        return Heading(
            column, self.selection.query(sort=second if current == first else first), directions.get(current)
        )

    def _order(self, rows: QuerySet[Any]) -> list[Any]:
        """The terms of the order: rows without a value last, ties by primary key."""
        sort = self.selection["sort"]
        descending = sort.startswith("-")
        field = next(column.field for column in self.columns if column.name == sort.removeprefix("-"))
        assert field is not None
        key = "-pk" if descending else "pk"
        if "__" not in field and not rows.model._meta.get_field(field).null:
            return ["-" * descending + field, key]  # by its index, if there is one
        return [F(field).desc(nulls_last=True) if descending else F(field).asc(nulls_last=True), key]


def search_text(request: HttpRequest) -> str:
    """The words that a reader searches for, in single spaces."""
    return " ".join(request.GET.get("q", "").replace("\0", "").split())[:SEARCH_LENGTH]


def requested_day(request: HttpRequest, name: str) -> date | None:
    """The day in a parameter. Raises Http404 for an unreadable one."""
    text = request.GET.get(name, "").strip()
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise Http404(f"{name}={text} is not a date: write it as 2026-03-08") from error


def labels(values: Iterable[str]) -> dict[str, str]:
    """Values that are their own labels."""
    return {value: value for value in values}


def stored_categories(rows: QuerySet[Any]) -> list[str]:
    """The categories of markets or questions, by name."""
    return list(rows.exclude(category="").order_by("category").values_list("category", flat=True).distinct())
