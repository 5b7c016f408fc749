"""View sets of read-only models, and what views tell the schema generator."""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from django.db.models import QuerySet
from django_filters import Filter
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView
from rest_framework.viewsets import ReadOnlyModelViewSet

from foundation.rest.filters import StrictFilterBackend, StrictOrderingBackend
from foundation.rest.negotiation import CsvRenderer, LateNegotiation
from foundation.rest.pagination import StrictPagination, TupleRows
from foundation.rest.problems import Problem
from foundation.rest.serializers import field_names, requested_fields, select_fields


class NegotiatedView(APIView):
    """A view whose 406 comes after all other errors of a read."""

    content_negotiation_class = LateNegotiation

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        error = getattr(request, "not_acceptable", None)
        if error is not None and response.status_code < HTTPStatus.BAD_REQUEST:
            response = Problem(HTTPStatus.NOT_ACCEPTABLE, str(error.detail))
        return super().finalize_response(request, response, *args, **kwargs)


class ListView(NegotiatedView):
    """A view set whose lists come in JSON and CSV, and all else in JSON."""

    renderer_classes = (JSONRenderer, CsvRenderer)

    def get_renderers(self) -> list[BaseRenderer]:
        formats = self.renderer_classes if getattr(self, "action", None) == "list" else self.renderer_classes[:1]
        return [renderer() for renderer in formats]

    def row_names(self) -> Sequence[str]:
        """The keys of a row, in their order."""
        raise NotImplementedError


class ReadOnlyViewSet(ListView, ReadOnlyModelViewSet):
    """A list and detail view. Subclasses set the queryset, serializers, filters, and the names in `orderings`."""

    takes_fields = True
    filterset_fields: Sequence[str] = ()
    """Fields of the model to filter by; see `StrictFilterSet`."""
    filters: Mapping[str, Filter] = {}
    """The filters that a view has besides."""
    orderings: Sequence[str] = ()
    ordering_paths: Mapping[str, str] = {}
    """ORM paths of the names in `orderings` that are not fields of the model."""
    ordering: Sequence[str] = ("pk",)
    detail_serializer_class: type[serializers.BaseSerializer] | None = None
    pagination_class: Any = StrictPagination
    filter_backends = (StrictFilterBackend, StrictOrderingBackend)
    lookup_value_regex = "[0-9]{1,18}"
    reads_tuples = False
    """Reads rows as tuples of columns, much faster than instances; possible where every field is a column."""

    def get_serializer_class(self) -> Any:
        return (self.detail and self.detail_serializer_class) or self.serializer_class

    def get_serializer(self, *arguments: Any, **options: Any) -> Any:
        return select_fields(super().get_serializer(*arguments, **options), self.requested)

    def row_names(self) -> list[str]:
        return [name for name in field_names(self.get_serializer_class()) if name in self.requested]

    @property
    def requested(self) -> frozenset[str]:
        return requested_fields(self.request, self.get_serializer_class())

    def is_requested(self, *names: str) -> bool:
        """True if the request selects any of these fields; joins that only they need are skipped otherwise."""
        return not self.requested.isdisjoint(names)

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        rows = super().filter_queryset(queryset)
        return rows.values_list(*self.columns) if self.reads_tuples and self.detail else rows

    def paginate_queryset(self, queryset: QuerySet[Any]) -> Sequence[Any]:  # type: ignore[override]
        rows: Any = TupleRows(queryset, self.columns) if self.reads_tuples else queryset
        return self.complete_rows(super().paginate_queryset(rows) or [])

    def get_object(self) -> Any:
        return self.complete_rows([super().get_object()])[0]

    def complete_rows(self, rows: Sequence[Any]) -> Sequence[Any]:
        """The rows of a page, or the one of a detail, with what is read for all of them at once."""
        return rows

    @property
    def columns(self) -> list[str]:
        paths: list[str] = self.get_serializer_class().columns(self.requested)
        return paths


def extend_schema(**options: Any) -> Callable[[Any], Any]:
    """Stores what drf-spectacular's `extend_schema` adds to a method's schema.

    `arena_site.api_schema.views` applies it when the schema is generated: here, it would load the generator at startup.
    """

    def store(method: Any) -> Any:
        method.schema_options = options
        return method

    return store


def query_parameter(
    name: str, description: str, enum: Sequence[str] | None = None, kind: Any = str
) -> OpenApiParameter:
    """An optional query parameter, for the schema of a view that is no list of rows."""
    return OpenApiParameter(name, kind, description=description, enum=enum)
