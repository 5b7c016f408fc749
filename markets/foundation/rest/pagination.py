"""Pagination that refuses wrong values: numbered pages, and cursors for tables too large to count."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError as InvalidValue
from django.core.paginator import EmptyPage
from django.db.models import QuerySet
from rest_framework import pagination
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.views import APIView

from markets.foundation.rest.filters import StrictOrderingBackend

PAGE_SIZE, MAX_PAGE_SIZE = 100, 500


class StrictPageSize:
    """The parameter `page_size`, refused unless it is a whole number up to the maximum."""

    page_size: int | None = PAGE_SIZE
    page_size_query_param: str | None = "page_size"
    max_page_size: int | None = MAX_PAGE_SIZE

    def get_page_size(self, request: Request) -> int:
        text = request.query_params.get("page_size", str(PAGE_SIZE))
        if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MAX_PAGE_SIZE):
            raise ValidationError({"page_size": [f"{text} is no whole number from 1 to {MAX_PAGE_SIZE}"]})
        return int(text[:9])


@dataclass(frozen=True, slots=True)
class TupleRows:
    """A query whose slices are tuples of columns; its count leaves the columns, and so their joins, out."""

    rows: QuerySet[Any]
    columns: Sequence[str]

    @property
    def ordered(self) -> bool:
        return self.rows.ordered

    def count(self) -> int:
        return self.rows.count()

    def __getitem__(self, part: slice) -> QuerySet[Any, tuple[Any, ...]]:
        return self.rows[part].values_list(*self.columns)


class StrictPagination(StrictPageSize, pagination.PageNumberPagination):
    """`count`, `next`, `previous` and `results`; a page that does not exist is a 400."""

    last_page_strings = ()
    parameters = frozenset({"page", "page_size"})

    def paginate_queryset(self, queryset: Any, request: Request, view: APIView | None = None) -> Any:
        text = request.query_params.get("page", "1")
        try:
            if not (text.isascii() and text.isdigit() and len(text) < 10):
                raise EmptyPage
            return super().paginate_queryset(queryset, request, view)
        except (EmptyPage, NotFound):
            raise ValidationError({"page": [f"there is no page {text}"]}) from None


class StrictCursorPagination(StrictPageSize, pagination.CursorPagination):
    """`next`, `previous` and `results`; ordered by a time of the view's rows."""

    # The cursor tells rows of one instant apart by an offset, which must exceed the number of rows of any instant.
    offset_cutoff = 100_000
    parameters = frozenset({"cursor", "page_size"})

    def get_ordering(self, request: Request, queryset: QuerySet, view: Any) -> tuple[str, ...]:
        return tuple(StrictOrderingBackend().get_ordering(request, queryset, view))

    def paginate_queryset(self, queryset: Any, request: Request, view: APIView | None = None) -> Any:
        try:
            return super().paginate_queryset(queryset, request, view)
        except (NotFound, InvalidValue, ValueError, OverflowError):
            raise ValidationError({"cursor": ["was not issued by this list"]}) from None
