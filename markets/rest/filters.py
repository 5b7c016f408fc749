"""Strict filters and orderings: what is unknown, empty or doubled is a 400 that names it."""

import re
from argparse import ArgumentTypeError
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError as InvalidValue
from django.db import models
from django.db.models import F, QuerySet
from django.utils import timezone
from django_filters import rest_framework as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework.exceptions import ValidationError
from rest_framework.filters import BaseFilterBackend
from rest_framework.request import Request

from markets.commands import instant
from markets.rest.rows import FIELDS


class InstantField(forms.CharField):
    """An instant with its zone, as the commands' `--at` takes it; or a day, which begins at 00:00 UTC.

    A plus that nobody escaped reaches us as a space.
    """

    DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
    LOST_PLUS = re.compile(r"(?<=[\d.]) (?=\d{2}:?\d{2}$)", re.ASCII)

    def to_python(self, value: Any) -> datetime | None:  # type: ignore[override]
        if value in self.empty_values:
            return None
        text = str(value).strip()
        text = f"{text}T00:00:00Z" if self.DAY.fullmatch(text) else text
        try:
            return instant(self.LOST_PLUS.sub("+", text) if ":" in text.partition(" ")[0] else text)
        except (ArgumentTypeError, OverflowError) as error:
            # As a parameter: a percent sign in what was sent would be read as a place to fill in.
            raise InvalidValue("%(why)s", params={"why": str(error)}) from error


INSTANT = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "string", "format": "date"}]}


@extend_schema_field({**INSTANT, "description": "ISO-8601 with its zone; a bare date is its 00:00 UTC."})
class InstantFilter(filters.IsoDateTimeFilter):
    """`__gte` takes its bound in and `__lt` leaves it out, so that one window ends where the next begins."""

    field_class = InstantField


@extend_schema_field(OpenApiTypes.INT)
class WholeFilter(filters.NumberFilter):
    field_class = forms.IntegerField


_FLAGS = {"true": True, "false": False, "True": True, "False": False, "1": True, "0": False}


@extend_schema_field(OpenApiTypes.BOOL)
class FlagFilter(filters.TypedChoiceFilter):
    """`true` or `false`, as rows and clients write them; anything else is refused, not ignored."""

    def __init__(self, **options: Any) -> None:
        options |= {
            "choices": [(text, text) for text in _FLAGS],
            "coerce": _FLAGS.__getitem__,
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


def past_instant(request: Request, name: str) -> datetime | None:
    """The instant that a parameter names, None where it is not given; one that is yet to come is refused."""
    try:
        at = InstantField(required=False).clean(request.query_params.get(name, ""))
    except InvalidValue as error:
        raise ValidationError({name: error.messages}) from error
    if at is not None and at > timezone.now():
        raise ValidationError({name: [f"{at:%Y-%m-%dT%H:%M:%SZ} is yet to come"]})
    return at


class StrictFilters(filters.DjangoFilterBackend):
    """The view's filters; a parameter that nothing reads is a 400 that names it."""

    def filter_queryset(self, request: Request, queryset: QuerySet, view: Any) -> QuerySet:
        if view.detail:
            check_parameters(request, {FIELDS})
            return queryset
        filterset = self.get_filterset_class(view, queryset)
        filtering = set(filterset.base_filters if filterset else ())
        known = filtering | view.paginator.parameters | {FIELDS}
        check_parameters(request, known | ({"ordering"} if view.orderings else set()))
        # A form of every filter, made to find that none is asked for, would be a tenth of a page's time.
        asked = not filtering.isdisjoint(request.query_params)
        return super().filter_queryset(request, queryset, view) if asked else queryset


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
