"""A list and its rows as one view, and how the schema describes them."""

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

from markets.rest.filters import StrictFilters, StrictOrdering
from markets.rest.pages import Columns, Pages
from markets.rest.rows import FIELDS, asked_fields, field_names, thinned


class JsonAlways(BaseContentNegotiation):
    """JSON, whatever is asked for: there is nothing else to have."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        renderer: BaseRenderer = renderers[0]
        return renderer, renderer.media_type


PROBLEM = {
    "type": "object",
    "additionalProperties": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    "description": "`detail` with a sentence, or each parameter at fault with its sentences.",
}


class Documented(AutoSchema):
    """Schema of a read-only endpoint: its answer, `fields`, and every other answer it may give."""

    def get_override_parameters(self) -> list[OpenApiParameter]:
        if not getattr(self.view, "thins", False):
            return super().get_override_parameters()
        names = field_names(self.view.get_serializer_class())
        only = OpenApiParameter(
            FIELDS, str, many=True, explode=False, style="form", enum=names,
            description="The fields to show, with commas; without it, all. What is left out is not read either.",
        )  # fmt: skip
        return [*super().get_override_parameters(), only]

    def get_response_serializers(self) -> Any:
        responses = {
            200: super().get_response_serializers(),
            304: OpenApiResponse(description="Nothing is new since the version or the time that was named."),
            400: OpenApiResponse(PROBLEM, "A bad parameter, named."),
            429: OpenApiResponse(PROBLEM, "Too many requests of this client; `Retry-After` says when to come back."),
            500: OpenApiResponse(PROBLEM, "The server failed."),
        }
        if self.view.detail:
            responses[404] = OpenApiResponse(PROBLEM, "No such row.")
        return responses


class Rows(ReadOnlyModelViewSet):
    """A list and its rows. Subclasses name the queryset, the serializer, filters and what orders by which path."""

    thins = True
    orderings: Mapping[str, str] = {}
    ordering: Sequence[str] = ("pk",)
    detail_serializer_class: type[serializers.BaseSerializer] | None = None
    pagination_class: Any = Pages
    filter_backends = (StrictFilters, StrictOrdering)
    content_negotiation_class = JsonAlways
    lookup_value_regex = "[0-9]{1,18}"
    flat = False
    """Are rows read as tuples of their columns? Only where all that is shown is columns: instances take far longer."""
    schema = Documented()

    def get_serializer_class(self) -> Any:
        return (self.detail and self.detail_serializer_class) or self.serializer_class

    def get_serializer(self, *arguments: Any, **options: Any) -> Any:
        return thinned(super().get_serializer(*arguments, **options), self.asked)

    @property
    def asked(self) -> frozenset[str]:
        return asked_fields(self.request, self.get_serializer_class())

    def shows(self, *names: str) -> bool:
        """Is any of these fields asked for? What only others need is then not read."""
        return not self.asked.isdisjoint(names)

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        rows = super().filter_queryset(queryset)
        return rows.values_list(*self.columns) if self.flat and self.detail else rows

    def paginate_queryset(self, queryset: QuerySet[Any]) -> Sequence[Any] | None:  # type: ignore[override]
        return super().paginate_queryset(Columns(queryset, self.columns) if self.flat else queryset)  # type: ignore

    @property
    def columns(self) -> list[str]:
        found: list[str] = self.get_serializer_class().columns(self.asked)
        return found


def query_parameter(
    name: str, description: str, enum: Sequence[str] | None = None, kind: Any = str
) -> OpenApiParameter:
    """An optional parameter, text unless told, for the schema of a view that is no list of rows."""
    return OpenApiParameter(name, kind, description=description, enum=enum)
