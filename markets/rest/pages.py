"""Lists in parts: pages with a count, and cursors for tables too big to count."""

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

from markets.rest.filters import StrictOrdering

PAGE_SIZE, LARGEST_PAGE = 100, 500


def _page_size(request: Request) -> int:
    text = request.query_params.get("page_size", str(PAGE_SIZE))
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= LARGEST_PAGE):
        raise ValidationError({"page_size": [f"{text} is no whole number from 1 to {LARGEST_PAGE}"]})
    return int(text[:9])


@dataclass(frozen=True, slots=True)
class Columns:
    """Rows of which a part is had as tuples. Counted without their columns, for which tables would be joined."""

    rows: QuerySet[Any]
    columns: Sequence[str]

    @property
    def ordered(self) -> bool:
        return self.rows.ordered

    def count(self) -> int:
        return self.rows.count()

    def __getitem__(self, part: slice) -> QuerySet[Any, tuple[Any, ...]]:
        return self.rows[part].values_list(*self.columns)


class Pages(pagination.PageNumberPagination):
    """`count`, `next`, `previous` and `results`; a page that is not there is a 400."""

    page_size = PAGE_SIZE
    page_size_query_param = "page_size"
    max_page_size = LARGEST_PAGE
    last_page_strings = ()
    parameters = frozenset({"page", "page_size"})

    def get_page_size(self, request: Request) -> int:
        return _page_size(request)

    def paginate_queryset(self, queryset: Any, request: Request, view: APIView | None = None) -> Any:
        text = request.query_params.get("page", "1")
        try:
            if not (text.isascii() and text.isdigit() and len(text) < 10):
                raise EmptyPage
            return super().paginate_queryset(queryset, request, view)
        except (EmptyPage, NotFound):
            raise ValidationError({"page": [f"there is no page {text}"]}) from None


class Cursor(pagination.CursorPagination):
    """`next`, `previous` and `results`, for tables too big to count; ordered by the view's one time."""

    page_size = PAGE_SIZE
    page_size_query_param = "page_size"
    max_page_size = LARGEST_PAGE
    # Rows of one instant are told apart by an offset, which must reach past the most that one instant can hold.
    offset_cutoff = 100_000
    parameters = frozenset({"cursor", "page_size"})

    def get_page_size(self, request: Request) -> int:
        return _page_size(request)

    def get_ordering(self, request: Request, queryset: QuerySet, view: Any) -> tuple[str, ...]:
        return tuple(StrictOrdering().get_ordering(request, queryset, view))

    def paginate_queryset(self, queryset: Any, request: Request, view: APIView | None = None) -> Any:
        try:
            return super().paginate_queryset(queryset, request, view)
        except (NotFound, InvalidValue, ValueError, OverflowError):
            raise ValidationError({"cursor": ["is none that this list gave"]}) from None
