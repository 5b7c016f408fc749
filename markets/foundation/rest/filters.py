"""Filters and orderings that answer 400, naming the parameter, if it is unknown, empty or given twice."""

import re
from argparse import ArgumentTypeError
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from django import forms
from django.core.exceptions import ValidationError as InvalidValue
from django.db import models
from django.db.models import F, QuerySet
from django.utils import timezone
from django_filters import rest_framework as filters
from django_filters.filterset import FilterSetMetaclass
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework.exceptions import ValidationError
from rest_framework.filters import BaseFilterBackend
from rest_framework.request import Request

from markets.foundation.commands import parse_instant
from markets.foundation.rest.serializers import FIELDS_PARAMETER


class InstantField(forms.CharField):
    """An ISO-8601 time with its zone, as in the commands' `--at`, or a date, which is its 00:00 UTC."""

    DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
    # An unescaped plus in an address arrives as a space.
    LOST_PLUS = re.compile(r"(?<=[\d.]) (?=\d{2}:?\d{2}$)", re.ASCII)

    def to_python(self, value: Any) -> datetime | None:  # type: ignore[override]
        if value in self.empty_values:
            return None
        text = str(value).strip()
        text = f"{text}T00:00:00Z" if self.DAY.fullmatch(text) else text
        try:
            return parse_instant(self.LOST_PLUS.sub("+", text) if ":" in text.partition(" ")[0] else text)
        except (ArgumentTypeError, OverflowError) as error:
            # As a parameter, because Django would read a percent sign in the message as a placeholder.
            raise InvalidValue("%(why)s", params={"why": str(error)}) from error


INSTANT_SCHEMA = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "string", "format": "date"}]}


@extend_schema_field({**INSTANT_SCHEMA, "description": "ISO-8601 with its zone; a bare date is its 00:00 UTC."})
class InstantFilter(filters.IsoDateTimeFilter):
    """A bound of a half-open window: `__gte` includes it, `__lt` excludes it."""

    field_class = InstantField


@extend_schema_field(OpenApiTypes.INT)
class StrictIntegerFilter(filters.NumberFilter):
    field_class = forms.IntegerField


_BOOLEANS = {"true": True, "false": False, "True": True, "False": False, "1": True, "0": False}


@extend_schema_field(OpenApiTypes.BOOL)
class StrictBooleanFilter(filters.TypedChoiceFilter):
    """`true` or `false`; django-filter's own filter ignores any other value."""

    def __init__(self, **options: Any) -> None:
        options |= {
            "choices": [(text, text) for text in _BOOLEANS],
            "coerce": _BOOLEANS.__getitem__,
            "error_messages": {"invalid_choice": "%(value)s is neither true nor false"},
        }
        super().__init__(**options)


class KnownChoiceFilter(filters.ChoiceFilter):
    """One of the choices; the error lists them."""

    def __init__(self, choices: Iterable[tuple[str, Any]], **options: Any) -> None:
        allowed = ", ".join(value for value, _ in choices)
        options["error_messages"] = {"invalid_choice": f"%(value)s is unknown; known are {allowed}"}
        super().__init__(choices=choices, empty_label=None, **options)


class ReferenceFilter(filters.ModelChoiceFilter):
    """A filter by a related row, given by its key; an unknown key is an error."""

    def __init__(self, model: type[models.Model], field_name: str | None = None, by: str = "pk", **options: Any):
        noun, key = model._meta.verbose_name, {"pk": "id"}.get(by, by)
        super().__init__(
            queryset=model._default_manager.all(),
            field_name=field_name,
            to_field_name=None if by == "pk" else by,
            error_messages={"invalid_choice": f"no {noun} has the {key} %(value)s"},
            **options,
        )
        # Explicit, because drf-spectacular derives it from the column type, which differs between databases.
        text = isinstance(model._meta.pk if by == "pk" else model._meta.get_field(by), models.CharField)
        kind = "string" if text else "integer"
        extend_schema_field({"type": kind, "description": f"The {noun}'s {key}."})(self)


class ExistingValueFilter(filters.CharFilter):
    """A filter by a text column; a text that no row has is an error."""

    def filter(self, qs: QuerySet, value: str) -> QuerySet:
        lookup = {str(self.field_name): value}
        if value and not qs.model._default_manager.filter(**lookup).exists():
            raise ValidationError({str(self.field_name): [f"{value} occurs nowhere"]})
        return super().filter(qs, value)


class StrictFilterSet(filters.FilterSet):
    """Strict filters by the model fields in `Meta.fields`: bounds (`__gte`, `__lt`) of a time, equality for others."""

    FILTER_DEFAULTS = {
        models.DateTimeField: {"filter_class": InstantFilter},
        models.BooleanField: {"filter_class": StrictBooleanFilter},
        models.IntegerField: {"filter_class": StrictIntegerFilter},
        models.CharField: {"filter_class": ExistingValueFilter},
        models.ForeignKey: {
            "filter_class": ReferenceFilter,
            "extra": lambda field: {"model": field.remote_field.model},
        },
    }

    @classmethod
    def get_fields(cls) -> dict[str, list[str]]:
        column = cls._meta.model._meta.get_field
        times = {name for name in cls._meta.fields if isinstance(column(name), models.DateTimeField)}
        return {name: ["gte", "lt"] if name in times else ["exact"] for name in cls._meta.fields}

    @classmethod
    def filter_for_lookup(cls, field: Any, lookup_type: str) -> Any:
        if getattr(field, "choices", None):
            return KnownChoiceFilter, {"choices": field.choices}
        return super().filter_for_lookup(field, lookup_type)


def check_parameters(request: Request, allowed: Iterable[str]) -> None:
    """Raises ValidationError naming each parameter that is unknown, empty, given twice or contains a NUL."""
    names = sorted(allowed)
    errors: dict[str, list[str]] = {}
    for name, values in request.query_params.lists():
        if name not in names:
            errors[name] = [f"unknown parameter; known are {', '.join(names)}" if names else "takes no parameters"]
        elif len(values) > 1:
            errors[name] = ["given more than once"]
        elif not values[0].strip() or "\0" in values[0]:
            errors[name] = ["is empty" if not values[0].strip() else "contains a NUL character"]
    if errors:
        raise ValidationError(errors)


def past_instant(request: Request, name: str) -> datetime | None:
    """The instant in a parameter, None if it is absent. Raises ValidationError for one in the future."""
    try:
        at = InstantField(required=False).clean(request.query_params.get(name, ""))
    except InvalidValue as error:
        raise ValidationError({name: error.messages}) from error
    if at is not None and at > timezone.now():
        raise ValidationError({name: [f"{at:%Y-%m-%dT%H:%M:%SZ} is in the future"]})
    return at


@cache
def _filterset_class(view: Any) -> Any:
    """The filters of a view, made once instead of for each request."""
    meta = type("Meta", (), {"model": view.queryset.model, "fields": view.filterset_fields})
    return FilterSetMetaclass("ViewFilterSet", (StrictFilterSet,), {**view.filters, "Meta": meta})


class StrictFilterBackend(filters.DjangoFilterBackend):
    """The view's filters; a parameter that the view does not read is a 400 that names it."""

    def get_filterset_class(self, view: Any, queryset: Any = None) -> Any:
        view_class: Any = type(view)
        return _filterset_class(view_class)

    def filter_queryset(self, request: Request, queryset: QuerySet, view: Any) -> QuerySet:
        if view.detail:
            check_parameters(request, {FIELDS_PARAMETER})
            return queryset
        filter_names = set(self.get_filterset_class(view).base_filters)
        names = filter_names | view.paginator.parameters | {FIELDS_PARAMETER}
        check_parameters(request, names | ({"ordering"} if view.orderings else set()))
        # Making the form of all filters is a tenth of a page's time, and most requests use none.
        filtered = not filter_names.isdisjoint(request.query_params)
        return super().filter_queryset(request, queryset, view) if filtered else queryset


class StrictOrderingBackend(BaseFilterBackend):
    """The parameter `ordering`: names separated by commas, with a minus for descending. Ties by primary key."""

    def filter_queryset(self, request: Request, queryset: QuerySet, view: Any) -> QuerySet:
        order = [] if view.detail else self.get_ordering(request, queryset, view)
        return queryset.order_by(*(self._term(queryset, name) for name in order)) if order else queryset

    def get_ordering(self, request: Request, queryset: QuerySet, view: Any) -> Sequence[str]:
        """ORM paths to order by, each with its sign: those of the request, else the view's `ordering`."""
        names = [name.strip() for name in request.query_params.get("ordering", "").split(",") if name.strip()]
        unknown = [name for name in names if name.removeprefix("-") not in view.orderings]
        if unknown:
            allowed = ", ".join(view.orderings)
            raise ValidationError({"ordering": [f"unknown field {', '.join(unknown)}; known are {allowed}"]})
        signed = [("-" * name.startswith("-"), name.removeprefix("-")) for name in names]
        terms = [sign + view.ordering_paths.get(name, name) for sign, name in signed] or list(view.ordering)
        last = terms[-1].removeprefix("-")
        return terms if last in ("id", "pk") else [*terms, "-pk" if terms[-1][0] == "-" else "pk"]

    @staticmethod
    def _term(queryset: QuerySet, term: str) -> Any:
        """The term with nulls last, on both databases; as it is for a column without nulls, to use its index."""
        name = term.removeprefix("-")
        if name == "pk" or "__" in name or not queryset.model._meta.get_field(name).null:
            return term
        return F(name).desc(nulls_last=True) if term[0] == "-" else F(name).asc(nulls_last=True)

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        if not view.orderings:
            return []
        allowed = ", ".join(view.orderings)
        return [
            {
                "name": "ordering",
                "required": False,
                "in": "query",
                "description": f"{allowed}; with a minus for descending, several separated by commas.",
                "schema": {"type": "string"},
            }
        ]
