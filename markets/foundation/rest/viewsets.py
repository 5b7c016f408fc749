"""View sets of read-only models, and their description in the OpenAPI schema."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.viewsets import ReadOnlyModelViewSet

from markets.foundation.rest.filters import StrictFilterBackend, StrictFilterSet, StrictOrderingBackend
from markets.foundation.rest.pagination import StrictPagination, TupleRows
from markets.foundation.rest.serializers import FIELDS_PARAMETER, field_names, requested_fields, select_fields


class JsonOnlyNegotiation(BaseContentNegotiation):
    """Always answers in JSON, the only format offered."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        renderer: BaseRenderer = renderers[0]
        return renderer, renderer.media_type


PROBLEM_SCHEMA = {
    "type": "object",
    "additionalProperties": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    "description": "`detail` with a sentence, or each wrong parameter with its sentences.",
}


class ReadOnlySchema(AutoSchema):
    """The schema of a read-only endpoint: the parameter `fields` and every response status."""

    def get_override_parameters(self) -> list[OpenApiParameter]:
        if self.method != "GET" or not getattr(self.view, "takes_fields", False):
            return super().get_override_parameters()
        names = field_names(self.view.get_serializer_class())
        parameter = OpenApiParameter(
            FIELDS_PARAMETER, str, many=True, explode=False, style="form", enum=names,
            description="The fields to return, separated by commas (default: all). Others are not read.",
        )  # fmt: skip
        return [*super().get_override_parameters(), parameter]

    def get_response_serializers(self) -> Any:
        responses = {
            200: super().get_response_serializers(),
            304: OpenApiResponse(description="Not modified since the given ETag or time."),
            400: OpenApiResponse(PROBLEM_SCHEMA, "A wrong parameter, named."),
            429: OpenApiResponse(
                PROBLEM_SCHEMA, "Too many requests of this client; `Retry-After` gives the seconds to wait."
            ),
            500: OpenApiResponse(PROBLEM_SCHEMA, "Server error."),
        }
        if self.view.detail:
            responses[404] = OpenApiResponse(PROBLEM_SCHEMA, "No such row.")
        return responses


class ReadOnlyViewSet(ReadOnlyModelViewSet):
    """A list and detail view. Subclasses set the queryset, serializers, filters, and the names in `orderings`."""

    takes_fields = True
    filterset_class: Any = None
    filterset_fields: Sequence[str] = ()
    """Fields to filter by, for a view that has no `filterset_class`; see `StrictFilterSet`."""
    filterset_base: type[StrictFilterSet] = StrictFilterSet
    """The filters that a view has besides."""
    orderings: Sequence[str] = ()
    ordering_paths: Mapping[str, str] = {}
    """ORM paths of the names in `orderings` that are not fields of the model."""
    ordering: Sequence[str] = ("pk",)
    detail_serializer_class: type[serializers.BaseSerializer] | None = None
    pagination_class: Any = StrictPagination
    filter_backends = (StrictFilterBackend, StrictOrderingBackend)
    content_negotiation_class = JsonOnlyNegotiation
    lookup_value_regex = "[0-9]{1,18}"
    reads_tuples = False
    """Reads rows as tuples of columns, much faster than instances; possible where every field is a column."""
    schema = ReadOnlySchema()

    def get_serializer_class(self) -> Any:
        return (self.detail and self.detail_serializer_class) or self.serializer_class

    def get_serializer(self, *arguments: Any, **options: Any) -> Any:
        return select_fields(super().get_serializer(*arguments, **options), self.requested)

    @property
    def requested(self) -> frozenset[str]:
        return requested_fields(self.request, self.get_serializer_class())

    def is_requested(self, *names: str) -> bool:
        """True if the request selects any of these fields; joins that only they need are skipped otherwise."""
        return not self.requested.isdisjoint(names)

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        rows = super().filter_queryset(queryset)
        return rows.values_list(*self.columns) if self.reads_tuples and self.detail else rows

    def paginate_queryset(self, queryset: QuerySet[Any]) -> Sequence[Any] | None:  # type: ignore[override]
        return super().paginate_queryset(TupleRows(queryset, self.columns) if self.reads_tuples else queryset)  # type: ignore

    @property
    def columns(self) -> list[str]:
        paths: list[str] = self.get_serializer_class().columns(self.requested)
        return paths


def query_parameter(
    name: str, description: str, enum: Sequence[str] | None = None, kind: Any = str
) -> OpenApiParameter:
    """An optional query parameter, for the schema of a view that is no list of rows."""
    return OpenApiParameter(name, kind, description=description, enum=enum)
