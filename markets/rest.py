"""What every endpoint shares: exact decimals as text, strict filters and orderings, pages and cursors.

Kept apart from `arena_site.api`, which knows all endpoints and so can not be imported by them.
"""

from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError as InvalidValue
from django.core.paginator import EmptyPage
from django.db import models
from django.db.models import F, QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema_field
from rest_framework import pagination, serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.filters import BaseFilterBackend
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView
from rest_framework.viewsets import ReadOnlyModelViewSet

from markets.blocks import decimal_text
from markets.commands import instant
from markets.fields import ExactDecimalField

PAGE_SIZE, LARGEST_PAGE = 100, 500
PLACES = 6
"""Decimals that a price or a cost shows at least; money has its two."""


# --- rows ------------------------------------------------------------------------------------------------


@extend_schema_field({"type": "string", "format": "decimal"})
class DecimalText(serializers.Field):
    """A number of the ledger as text, never rounded on its way out."""

    def __init__(self, places: int = PLACES, **options: Any) -> None:
        self.places = places
        super().__init__(**{"read_only": True, **options})

    def to_representation(self, value: Decimal) -> str:
        return decimal_text(value, self.places)


class Money(DecimalText):
    """Dollars, to the cent."""

    def __init__(self, **options: Any) -> None:
        super().__init__(places=2, **options)


class OptionalText(serializers.CharField):
    """Text, or null where there is none."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"read_only": True, "allow_null": True, **options})

    def to_representation(self, value: str) -> str | None:  # type: ignore[override]
        return value or None


class Row(serializers.ModelSerializer):
    """A row as readers get it: exact decimals as text, empty text as null, others by id."""

    def get_extra_kwargs(self) -> dict[str, Any]:
        return {name: {"read_only": True} for name in self.Meta.fields}

    def build_standard_field(self, field_name: str, model_field: Any) -> Any:
        field_class, options = super().build_standard_field(field_name, model_field)
        described = {"help_text": model_field.help_text} if model_field.help_text else {}
        if isinstance(model_field, models.DecimalField):
            exact = isinstance(model_field, ExactDecimalField)
            places = min(model_field.decimal_places, PLACES) if exact else model_field.decimal_places
            return DecimalText, {"places": places, "allow_null": model_field.null, **described}
        if isinstance(model_field, models.CharField | models.TextField) and model_field.blank and not model_field.null:
            return OptionalText, described
        return field_class, options


# --- filters ---------------------------------------------------------------------------------------------


class InstantField(forms.CharField):
    """An instant with its zone, as the commands' `--at` takes it."""

    def to_python(self, value: Any) -> datetime | None:  # type: ignore[override]
        if value in self.empty_values:
            return None
        try:
            return instant(str(value))
        except (ArgumentTypeError, OverflowError) as error:
            raise InvalidValue(str(error)) from error


class InstantFilter(filters.IsoDateTimeFilter):
    field_class = InstantField


@extend_schema_field(OpenApiTypes.INT)
class WholeFilter(filters.NumberFilter):
    field_class = forms.IntegerField


@extend_schema_field(OpenApiTypes.BOOL)
class FlagFilter(filters.TypedChoiceFilter):
    """Exactly `true` or `false`; anything else is refused, not ignored."""

    def __init__(self, **options: Any) -> None:
        options |= {
            "choices": [("true", "true"), ("false", "false")],
            "coerce": lambda text: text == "true",
            "error_messages": {"invalid_choice": "%(value)s is neither true nor false"},
        }
        super().__init__(**options)


class OneOfFilter(filters.ChoiceFilter):
    def __init__(self, choices: Iterable[tuple[str, Any]], **options: Any) -> None:
        known = ", ".join(value for value, _ in choices)
        options["error_messages"] = {"invalid_choice": f"%(value)s is unknown; known are {known}"}
        super().__init__(choices=choices, empty_label=None, **options)


class ReferenceFilter(filters.ModelChoiceFilter):
    """Rows that refer to one thing, named by its key; a key that names nothing is refused."""

    def __init__(self, model: type[models.Model], field_name: str | None = None, by: str = "pk", **options: Any):
        noun, key = model._meta.verbose_name, {"pk": "id"}.get(by, by)
        super().__init__(
            queryset=model._default_manager.all(),
            field_name=field_name,
            to_field_name=None if by == "pk" else by,
            error_messages={"invalid_choice": f"no {noun} has the {key} %(value)s"},
            **options,
        )
        # Said here, since what is read off the column would differ from database to database.
        text = isinstance(model._meta.pk if by == "pk" else model._meta.get_field(by), models.CharField)
        kind = "string" if text else "integer"
        extend_schema_field({"type": kind, "description": f"The {noun}'s {key}."})(self)


class PresentFilter(filters.CharFilter):
    """Rows with this text in a column; a text that no row has is refused."""

    def filter(self, qs: QuerySet, value: str) -> QuerySet:
        wanted = {str(self.field_name): value}
        if value and not qs.model._default_manager.filter(**wanted).exists():
            raise ValidationError({str(self.field_name): [f"{value} occurs nowhere"]})
        return super().filter(qs, value)


class Filters(filters.FilterSet):
    """Filters by `Meta.fields`: references by id, choices, flags, times as `__gte` and `__lt`."""

    FILTER_DEFAULTS = {
        models.DateTimeField: {"filter_class": InstantFilter},
        models.BooleanField: {"filter_class": FlagFilter},
        models.IntegerField: {"filter_class": WholeFilter},
        models.CharField: {"filter_class": PresentFilter},
        models.ForeignKey: {
            "filter_class": ReferenceFilter,
            "extra": lambda field: {"model": field.remote_field.model},
        },
    }

    @classmethod
    def filter_for_lookup(cls, field: Any, lookup_type: str) -> Any:
        if getattr(field, "choices", None):
            return OneOfFilter, {"choices": field.choices}
        return super().filter_for_lookup(field, lookup_type)


def check_parameters(request: Request, known: Iterable[str]) -> None:
    """Refuses parameters that are unknown, empty, doubled or hold a NUL, naming each."""
    names = sorted(known)
    faults: dict[str, list[str]] = {}
    for name, values in request.query_params.lists():
        if name not in names:
            faults[name] = [f"unknown parameter; known are {', '.join(names)}" if names else "takes no parameters"]
        elif len(values) > 1:
            faults[name] = ["given more than once"]
        elif not values[0].strip() or "\0" in values[0]:
            faults[name] = ["is empty" if not values[0].strip() else "holds a NUL character"]
    if faults:
        raise ValidationError(faults)


class StrictFilters(filters.DjangoFilterBackend):
    """The view's filters; a parameter that nothing reads is a 400 that names it."""

    def filter_queryset(self, request: Request, queryset: QuerySet, view: Any) -> QuerySet:
        if view.detail:
            check_parameters(request, ())
            return queryset
        filterset = self.get_filterset_class(view, queryset)
        known = set(filterset.base_filters if filterset else ()) | view.paginator.parameters
        check_parameters(request, known | ({"ordering"} if view.orderings else set()))
        return super().filter_queryset(request, queryset, view)


class StrictOrdering(BaseFilterBackend):
    """`ordering=name` or `-name`, several with commas; the rest of the order is the primary key's."""

    def filter_queryset(self, request: Request, queryset: QuerySet, view: Any) -> QuerySet:
        order = [] if view.detail else self.get_ordering(request, queryset, view)
        return queryset.order_by(*(self._term(queryset, name) for name in order)) if order else queryset

    def get_ordering(self, request: Request, queryset: QuerySet, view: Any) -> Sequence[str]:
        """Paths to order by, each with its sign; what was asked for, else the view's own."""
        asked = [name.strip() for name in request.query_params.get("ordering", "").split(",") if name.strip()]
        unknown = [name for name in asked if name.removeprefix("-") not in view.orderings]
        if unknown:
            known = ", ".join(view.orderings)
            raise ValidationError({"ordering": [f"unknown field {', '.join(unknown)}; known are {known}"]})
        terms = [("-" if name[0] == "-" else "") + view.orderings[name.removeprefix("-")] for name in asked]
        terms = terms or list(view.ordering)
        return terms if terms[-1].removeprefix("-") == "pk" else [*terms, "-pk" if terms[-1][0] == "-" else "pk"]

    @staticmethod
    def _term(queryset: QuerySet, term: str) -> Any:
        """Nulls come last either way, on every database; columns without nulls keep the use of their index."""
        name = term.removeprefix("-")
        if name == "pk" or "__" in name or not queryset.model._meta.get_field(name).null:
            return term
        return F(name).desc(nulls_last=True) if term[0] == "-" else F(name).asc(nulls_last=True)

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        if not view.orderings:
            return []
        known = ", ".join(view.orderings)
        return [
            {
                "name": "ordering",
                "required": False,
                "in": "query",
                "description": f"{known}; with a minus for descending, several with commas.",
                "schema": {"type": "string"},
            }
        ]


# --- pages -----------------------------------------------------------------------------------------------


def _page_size(request: Request) -> int:
    text = request.query_params.get("page_size", str(PAGE_SIZE))
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= LARGEST_PAGE):
        raise ValidationError({"page_size": [f"{text} is no whole number from 1 to {LARGEST_PAGE}"]})
    return int(text[:9])


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


# --- views -----------------------------------------------------------------------------------------------


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
    """Schema of a read-only endpoint, with the errors it may give."""

    def get_response_serializers(self) -> Any:
        responses = {200: super().get_response_serializers(), 400: OpenApiResponse(PROBLEM, "A bad parameter")}
        if self.view.detail:
            responses[404] = OpenApiResponse(PROBLEM, "No such row")
        return responses


class Rows(ReadOnlyModelViewSet):
    """A list and its rows. Subclasses name the queryset, the serializer, filters and what orders by which path."""

    orderings: Mapping[str, str] = {}
    ordering: Sequence[str] = ("pk",)
    detail_serializer_class: type[serializers.BaseSerializer] | None = None
    pagination_class: Any = Pages
    filter_backends = (StrictFilters, StrictOrdering)
    content_negotiation_class = JsonAlways
    lookup_value_regex = "[0-9]{1,18}"
    schema = Documented()

    def get_serializer_class(self) -> Any:
        return (self.detail and self.detail_serializer_class) or self.serializer_class


def query_parameter(name: str, description: str, enum: Sequence[str] | None = None) -> OpenApiParameter:
    """An optional text parameter, for the schema of a view that is no list of rows."""
    return OpenApiParameter(name, str, description=description, enum=enum)
