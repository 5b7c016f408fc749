"""Numbered pages, which refuse wrong values. `cursors` has pages of the tables too large to count."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from rest_framework import pagination
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

PAGE_SIZE, MAX_PAGE_SIZE = 100, 500
MAX_ADDRESS = 10_000
MAX_PAGE = 999_999_999
MAX_COUNT = 2**53 - 1


def link_header(**targets: str | None) -> dict[str, str]:
    """The header `Link` with the addresses by their relation; none without an address."""
    links = ", ".join(f'<{address}>; rel="{relation}"' for relation, address in targets.items() if address)
    return {"Link": links} if links else {}


def page_schema(rows: Any, **extra_properties: Any) -> dict[str, Any]:
    """The schema of a page with these rows and properties."""
    address = {"type": ["string", "null"], "format": "uri", "maxLength": MAX_ADDRESS}
    properties = {
        **extra_properties,
        "next": {**address, "description": "The address of the next page; null on the last."},
        "previous": {**address, "description": "The address of the page before; null on the first."},
        "results": {**rows, "maxItems": MAX_PAGE_SIZE, "description": "The rows of this page."},
    }
    return {"type": "object", "required": list(properties), "properties": properties}


class StrictPageSize:
    """The parameter `page_size`, refused unless it is a whole number up to the maximum."""

    page_size_schema = {
        "name": "page_size",
        "in": "query",
        "required": False,
        "description": f"Rows of a page; {PAGE_SIZE} if absent.",
        "schema": {"type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE},
    }

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
    """`count`, `next`, `previous` and `results`; a page beyond the last is a 404."""

    last_page_strings = ()
    parameters = frozenset({"page", "page_size"})

    def paginate_queryset(self, queryset: Any, request: Request, view: APIView | None = None) -> Any:
        text = request.query_params.get("page", "1")
        if not (text.isascii() and text.isdigit() and 1 <= int(text[: len(str(MAX_PAGE)) + 1]) <= MAX_PAGE):
            raise ValidationError({"page": [f"{text} is no whole number from 1 to {MAX_PAGE}"]})
        try:
            return super().paginate_queryset(queryset, request, view)
        except NotFound:
            raise NotFound(f"there is no page {text}") from None

    def get_paginated_response(self, data: Any) -> Response:
        assert self.page is not None
        assert self.request is not None
        address, pages = self.request.build_absolute_uri(), self.page.paginator.num_pages
        next_page, previous = self.get_next_link(), self.get_previous_link()
        body = {"count": self.page.paginator.count, "next": next_page, "previous": previous, "results": data}
        first, last = (replace_query_param(address, "page", number) for number in (1, pages))
        return Response(body, headers=link_header(next=next_page, prev=previous, first=first, last=last))

    def get_paginated_response_schema(self, schema: Any) -> dict[str, Any]:
        count = {"type": "integer", "minimum": 0, "maximum": MAX_COUNT, "description": "Rows on all pages."}
        return page_schema(schema, count=count)

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        number = {"type": "integer", "minimum": 1, "maximum": MAX_PAGE}
        page = {"name": "page", "in": "query", "required": False, "description": "The page's number, from 1."}
        return [{**page, "schema": number}, self.page_size_schema]
