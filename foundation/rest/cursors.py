"""Cursor pages: each begins after the row where the last one ended, so that rows written meanwhile move nothing."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError as InvalidValue
from django.db.models import Field, Q, QuerySet
from rest_framework.exceptions import NotFound
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from foundation.rest.filters import StrictOrderingBackend
from foundation.rest.pagination import StrictPageSize, TupleRows, link_header, page_schema

CURSOR_PARAMETER = "cursor"
MAX_CURSOR = 1_000
"""Characters; ours have about a hundred."""


@dataclass(frozen=True, slots=True)
class CompleteOrder:
    """An order of rows by fields without nulls, the last of which tells all rows apart."""

    fields: Sequence[tuple["Field[Any, Any]", bool]]
    """Each with True for descending."""

    @classmethod
    def of(cls, terms: Sequence[str], rows: QuerySet[Any]) -> "CompleteOrder":
        meta = rows.model._meta
        names = [(term.removeprefix("-"), term.startswith("-")) for term in terms]
        return cls([(meta.pk if name == "pk" else meta.get_field(name), down) for name, down in names])  # type: ignore[misc]

    @property
    def names(self) -> list[str]:
        return [field.attname for field, _ in self.fields]

    def terms(self, *, backwards: bool) -> list[str]:
        return [f"{'-' * (down != backwards)}{field.attname}" for field, down in self.fields]

    def beyond(self, values: Sequence[Any], *, backwards: bool) -> Q:
        """A condition for the rows after those with these values, or before them if read backwards."""
        condition = Q(pk__in=[])
        for (field, down), value in reversed(list(zip(self.fields, values, strict=True))):
            lookup = "lt" if down != backwards else "gt"
            condition = Q(**{f"{field.attname}__{lookup}": value}) | (Q(**{field.attname: value}) & condition)
        # Implied by the rest, but a range that an index can be read from.
        first, down = self.fields[0]
        return Q(**{f"{first.attname}__{'lte' if down != backwards else 'gte'}": values[0]}) & condition


@dataclass(frozen=True, slots=True)
class Cursor:
    """A row's values in an order, and the direction to read from there."""

    terms: Sequence[str]
    values: Sequence[Any]
    backwards: bool

    def encode(self) -> str:
        values = []
        for value in self.values:
            values.append(value if isinstance(value, int) else str(value))
        text = json.dumps([list(self.terms), values, self.backwards])
        return urlsafe_b64encode(text.encode()).decode()

    @classmethod
    def decode(cls, text: str, terms: Sequence[str], order: CompleteOrder) -> "Cursor":
        """Raises ValueError or InvalidValue for what `encode` did not write for this order."""
        ordering, values, backwards = json.loads(urlsafe_b64decode(text[:MAX_CURSOR].encode()))
        if ordering != list(terms) or not isinstance(values, list) or not isinstance(backwards, bool):
            raise ValueError("another order's cursor")
        field_values = []
        for (field, _), value in zip(order.fields, values, strict=True):
            field_value = field.to_python(value) if isinstance(value, str | int) else None
            if field_value is None:
                raise ValueError("a value is missing")
            field_values.append(field_value)
        return cls(terms, field_values, backwards)


class StrictCursorPagination(StrictPageSize, BasePagination):
    """`next`, `previous` and `results`, in any of the view's orders, which must be by fields without nulls."""

    parameters = frozenset({CURSOR_PARAMETER, "page_size"})

    def paginate_queryset(self, queryset: Any, request: Request, view: APIView | None = None) -> list[Any]:
        rows, columns = (queryset.rows, queryset.columns) if isinstance(queryset, TupleRows) else (queryset, None)
        size = self.get_page_size(request)
        terms = list(StrictOrderingBackend().get_ordering(request, rows, view))
        order = CompleteOrder.of(terms, rows)
        text = request.query_params.get(CURSOR_PARAMETER)
        try:
            cursor = None if text is None else Cursor.decode(text, terms, order)
            backwards = cursor is not None and cursor.backwards
            if cursor is not None:
                rows = rows.filter(order.beyond(cursor.values, backwards=backwards))
            rows = rows.order_by(*order.terms(backwards=backwards))
            if columns is not None:
                rows = rows.values_list(*columns, *order.names)
            page_rows = list(rows[: size + 1])
        except (InvalidValue, ValueError, TypeError, ArithmeticError):
            raise NotFound("the cursor was not issued by this list in this order") from None
        more, page = len(page_rows) > size, page_rows[:size]
        if backwards:
            page.reverse()

        def address(row: Any, *, backwards: bool) -> str:
            values = row[len(columns) :] if columns is not None else [getattr(row, name) for name in order.names]
            token = Cursor(terms, values, backwards).encode()
            return replace_query_param(request.build_absolute_uri(), CURSOR_PARAMETER, token)

        self.next = address(page[-1], backwards=False) if page and (more or backwards) else None
        self.previous = address(page[0], backwards=True) if page and (more if backwards else cursor) else None
        return page if columns is None else [row[: len(columns)] for row in page]

    def get_paginated_response(self, data: Any) -> Response:
        headers = link_header(next=self.next, prev=self.previous)
        return Response({"next": self.next, "previous": self.previous, "results": data}, headers=headers)

    def get_paginated_response_schema(self, schema: Any) -> dict[str, Any]:
        return page_schema(schema)

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        cursor = {"type": "string", "maxLength": MAX_CURSOR}
        description = "Out of `next` or `previous` of a page in the same order."
        return [
            {"name": CURSOR_PARAMETER, "in": "query", "required": False, "description": description, "schema": cursor},
            self.page_size_schema,
        ]
