"""Bases of the endpoints whose answers are computed, and the checks of the leaderboard that a request selects."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, ClassVar

from django.http import HttpResponseRedirect
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from cohorts.models import Methodology
from foundation.rest.filters import check_parameters, past_instant
from foundation.rest.negotiation import FORMAT_PARAMETER
from foundation.rest.pagination import StrictPagination
from foundation.rest.serializers import FIELDS_PARAMETER, field_names, requested_fields, select_fields
from foundation.rest.viewsets import ListView, NegotiatedView, query_parameter
from markets.models import Market
from scoring.constants import ALL_METHODOLOGIES
from scoring.leaderboard_keys import skill_percent
from scoring.models import Leaderboard
from scoring.reports.columns import ReportColumn
from scoring.selectors.competition import competition_index
from scoring.selectors.published_boards import published_boards

ARM = query_parameter(
    "arm", "Prompt condition (arm) of the forecasts, one of a methodology. Default: that of the methodology's boards."
)


class ComputedView(NegotiatedView, GenericAPIView):
    """A read-only endpoint with one answer, which is computed."""

    detail = False
    queryset: Any = Leaderboard.objects.all()  # required by the framework
    pagination_class = None
    filter_backends = ()


class ComputedListViewSet(ListView, GenericViewSet):
    """A read-only list of rows that are computed, or stored together."""

    takes_fields = True
    serializer_class: Any
    other_serializer_classes: Sequence[type[serializers.Serializer]] = ()
    """Serializers of the rows that the list has under other parameters."""
    queryset: Any = Leaderboard.objects.all()  # required by the framework
    pagination_class: Any = StrictPagination
    filter_backends = ()

    def row_class(self) -> Any:
        """The serializer of the rows that are requested."""
        return self.serializer_class

    def row_names(self) -> list[str]:
        names = self.requested_names()
        return [name for name in field_names(self.row_class()) if name in names]

    def requested_names(self) -> frozenset[str]:
        return requested_fields(self.request, self.row_class(), self.serializer_class, *self.other_serializer_classes)

    def check_parameters(self, *names: str) -> None:
        """Raises ValidationError for a parameter that neither has one of these names nor is known to every list."""
        check_parameters(self.request, {*names, FIELDS_PARAMETER, FORMAT_PARAMETER} | StrictPagination.parameters)

    def page(self, rows: Sequence[Any]) -> Response:
        """The requested page of the rows, with their requested fields."""
        serializer = self.row_class()(self.paginate_queryset(rows), many=True)
        return self.get_paginated_response(select_fields(serializer, self.requested_names()).data)


class NumberField(serializers.FloatField):
    """A number, null where there is none."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_null=True, **options)


class SkillField(serializers.FloatField):
    """The skill over equal probabilities on the scale of the boards."""

    def to_representation(self, value: Any) -> Any:
        return skill_percent(value)


class IntervalField(serializers.ListField):
    """The two ends of an interval, null where there is none."""

    def __init__(self, **options: Any) -> None:
        options = {"allow_null": True, **options}
        super().__init__(child=serializers.FloatField(), min_length=2, max_length=2, **options)


def _by_risk_aversion(child: Callable[..., serializers.Field]) -> Callable[..., serializers.DictField]:
    return lambda **options: serializers.DictField(child=child(), **options)


FIELDS: dict[str, Callable[..., serializers.Field]] = {
    "text": serializers.CharField,
    "choice": serializers.ChoiceField,
    "boolean": serializers.BooleanField,
    "integer": serializers.IntegerField,
    "number": serializers.FloatField,
    "skill": SkillField,
    "dollars": serializers.CharField,
    "interval": IntervalField,
    "numbers": _by_risk_aversion(NumberField),
    "integers": _by_risk_aversion(serializers.IntegerField),
    "intervals": _by_risk_aversion(IntervalField),
}
"""The fields of the kinds of columns."""


class ReportSerializer(serializers.Serializer):
    """A row of a report, with a field for each of its `columns`."""

    columns: ClassVar[Sequence[ReportColumn]]

    def __init_subclass__(cls) -> None:
        cls._declared_fields = {column.name: column_field(column) for column in cls.columns} | cls._declared_fields


def column_field(column: ReportColumn) -> serializers.Field:
    """The field that represents a column."""
    options: dict[str, Any] = {"help_text": column.meaning, "allow_null": column.null}
    if column.choices:
        options["choices"] = column.choices
    if column.source:
        options |= {"source": column.source, "read_only": True}
    return FIELDS[column.kind](**options)


@extend_schema_field(OpenApiTypes.OBJECT)
class ObjectField(serializers.JSONField):
    """A JSON object as it is stored."""


def selected_arm(request: Request, methodology: str = ALL_METHODOLOGIES) -> str:
    """The query parameter `arm`, by default that of the methodology's boards. Raises ValidationError for another."""
    conditions = competition_index().conditions
    return selected_name(request, "arm", conditions.names(), conditions.board(methodology))


def selected_name(request: Request, name: str, values: Iterable[str], default: str) -> str:
    """A query parameter that is one of the known names. Raises ValidationError for another."""
    value = request.query_params.get(name, default)
    if value not in values:
        raise ValidationError({name: [f"{value} is unknown; known are {', '.join(filter(None, values))}"]})
    return value


def selected_methodology(request: Request) -> str:
    """The version of the query parameter `methodology`. Raises ValidationError if there is no such version."""
    version = request.query_params.get("methodology", ALL_METHODOLOGIES)
    if version and not Methodology.objects.filter(version=version).exists():
        raise ValidationError({"methodology": [f"no methodology has the version {version}"]})
    return version


def selected_category(request: Request) -> str:
    """The query parameter `category`. Raises ValidationError if no market has it."""
    category = request.query_params.get("category", "")
    if category and not Market.objects.filter(category=category).exists():
        raise ValidationError({"category": [f"no market has the category {category}"]})
    return category


def published_instant(
    request: Request, protocol: str, **selection: str
) -> tuple[datetime | None, HttpResponseRedirect | None]:
    """The instant in `as_of`, and a redirect where the last board was published at another one before it.

    Raises NotFound for an instant before the first publication.
    """
    at = past_instant(request, "as_of")
    if at is None:
        return None, None
    instant = published_boards(protocol, **selection).filter(at__lte=at).values_list("at", flat=True).first()
    if instant is None:
        raise NotFound("as_of: no board had been published by then")
    if instant == at:
        return at, None
    query = request.query_params.copy()
    query["as_of"] = instant.isoformat().replace("+00:00", "Z")
    return None, HttpResponseRedirect(f"{request.path}?{query.urlencode()}")
