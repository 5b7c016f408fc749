"""Filters and orderings that answer 400, naming the parameter, if it is unknown, empty or given twice."""

import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from django import forms
from django.core.exceptions import ValidationError as InvalidValue
from django.db import models
from django.db.models import F, Q, QuerySet
from django.utils import timezone
from django_filters import rest_framework as filters
from django_filters.filterset import FilterSetMetaclass
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.filters import BaseFilterBackend
from rest_framework.request import Request

from foundation.commands import parse_instant
from foundation.rest.negotiation import FORMAT_PARAMETER
from foundation.rest.serializers import FIELDS_PARAMETER


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


MAX_TEXT = 200
MAX_VALUES = 500
"""Values of a parameter that takes several, separated by commas."""
MAX_ID = 10**18 - 1
MAX_WHOLE = 2**31 - 1
TEXT_SCHEMA = {"type": "string", "maxLength": MAX_TEXT}
ID_SCHEMA = {"type": "integer", "minimum": 1, "maximum": MAX_ID}
INSTANT_SCHEMA = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "string", "format": "date"}]}


@extend_schema_field({**INSTANT_SCHEMA, "description": "ISO-8601 with its zone; a bare date is its 00:00 UTC."})
class InstantFilter(filters.IsoDateTimeFilter):
    """A bound of a half-open window: `__gte` includes it, `__lt` excludes it."""

    field_class = InstantField


@extend_schema_field({"type": "integer", "minimum": 0, "maximum": MAX_WHOLE})
class StrictIntegerFilter(filters.NumberFilter):
    field_class = forms.IntegerField

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"min_value": 0, "max_value": MAX_WHOLE, **options})


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


class ChangedSinceFilter(InstantFilter):
    """`updated_since`: rows of which any value may have changed since an instant of the real clock."""

    def __init__(self, changed: Callable[[datetime], Q]) -> None:
        super().__init__()
        self.changed = changed
        description = "Rows of which a value changed since then (real time, when the change was written)."
        extend_schema_field({**INSTANT_SCHEMA, "description": description})(self)

    def filter(self, qs: QuerySet, value: datetime | None) -> QuerySet:
        return qs if value is None else qs.filter(self.changed(value))


class CommaSeparatedInput(forms.TextInput):
    """The parts of a parameter between its commas."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        return [part.strip() for part in data[name].split(",")] if name in data else []


class SingleValueFilter(filters.Filter):
    """Base of filters by one value, beside which stands one by any of several, `AnyOfFilter`."""

    def any_of(self) -> forms.Field:
        """The form field of several values."""
        raise NotImplementedError

    def filter_any(self, qs: QuerySet, values: Sequence[Any]) -> QuerySet:
        rows = qs.filter(**{f"{self.field_name}__in": values})
        return rows.distinct() if self.distinct else rows


class KnownChoiceFilter(SingleValueFilter, filters.ChoiceFilter):
    """One of the choices; the error lists them."""

    def __init__(self, choices: Iterable[tuple[str, Any]], **options: Any) -> None:
        names = ", ".join(dict(choices))
        options["error_messages"] = {"invalid_choice": f"%(value)s is unknown; known are {names}"}
        super().__init__(choices=choices, empty_label=None, **options)

    def any_of(self) -> forms.Field:
        return forms.MultipleChoiceField(
            choices=self.extra["choices"],
            required=False,
            widget=CommaSeparatedInput,
            error_messages=self.extra["error_messages"],
        )


class KnownRowsField(forms.ModelMultipleChoiceField):
    """Rows by their keys; a key beyond the column's range is as unknown as any other."""

    widget = CommaSeparatedInput

    def clean(self, value: Any) -> Any:
        rows: Any = self.queryset
        meta = rows.model._meta
        key = meta.get_field(self.to_field_name) if self.to_field_name else meta.pk
        for text in value:
            try:
                key.clean(text, None)
            except InvalidValue:
                raise InvalidValue(self.error_messages["invalid_choice"], params={"value": text}) from None
        return super().clean(value)


class ReferenceFilter(SingleValueFilter, filters.ModelChoiceFilter):
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
        schema = TEXT_SCHEMA if text else ID_SCHEMA
        extend_schema_field({**schema, "description": f"The {noun}'s {key}."})(self)

    def any_of(self) -> forms.Field:
        names = ("queryset", "to_field_name", "error_messages")
        return KnownRowsField(required=False, **{name: self.extra[name] for name in names})


class ExistingValueFilter(SingleValueFilter, filters.CharFilter):
    """A filter by a text column; a text that no row has is an error."""

    def filter(self, qs: QuerySet, value: str) -> QuerySet:
        lookup = {str(self.field_name): value}
        if value and not qs.model._default_manager.filter(**lookup).exists():
            raise ValidationError({str(self.field_name): [f"{value} occurs nowhere"]})
        return super().filter(qs, value)

    def any_of(self) -> forms.Field:
        return forms.Field(required=False, widget=CommaSeparatedInput)

    def filter_any(self, qs: QuerySet, values: Sequence[Any]) -> QuerySet:
        name = str(self.field_name)
        existing = qs.model._default_manager.filter(**{f"{name}__in": values}).order_by()
        if missing := sorted(set(values) - set(existing.values_list(name, flat=True).distinct())):
            raise ValidationError({f"{name}__in": [f"{', '.join(missing)} occurs nowhere"]})
        return super().filter_any(qs, values)


class KnownNamesFilter(ExistingValueFilter):
    """A filter by a text column of which a function gives the valid values for each request; the error lists them."""

    def __init__(self, parameter: str, names: Callable[[], Sequence[str]], **options: Any) -> None:
        super().__init__(**options)
        self.parameter, self.names = parameter, names

    def filter(self, qs: QuerySet, value: str) -> QuerySet:
        return self._of_known(qs, self.parameter, [value]) if value else qs

    def filter_any(self, qs: QuerySet, values: Sequence[Any]) -> QuerySet:
        return self._of_known(qs, f"{self.parameter}__in", values)

    def _of_known(self, qs: QuerySet, parameter: str, values: Sequence[Any]) -> QuerySet:
        names = self.names()
        if unknown := sorted(set(values) - set(names)):
            raise ValidationError({parameter: [f"{', '.join(unknown)} is unknown; known are {', '.join(names)}"]})
        return qs.filter(**{f"{self.field_name}__in": values})


class AnyOfFilter(filters.BaseCSVFilter):
    """`X__in`: any of several values of the filter `X`, separated by commas. An unknown one is an error, as there."""

    def __init__(self, single: SingleValueFilter) -> None:
        super().__init__(field_name=single.field_name, distinct=single.distinct, help_text="")
        self.single = single
        item = getattr(single, "_spectacular_annotation", {}).get("field", TEXT_SCHEMA)
        if choices := single.extra.get("choices"):
            item = {"type": "string", "enum": list(dict(choices() if callable(choices) else choices))}
        extend_schema_field({**item, "description": "Any of several, separated by commas."})(self)

    @property
    def field(self) -> forms.Field:
        return self.single.any_of()

    def filter(self, qs: QuerySet, value: Any) -> QuerySet:
        return self.single.filter_any(qs, list(value)) if value else qs


class SearchFilter(filters.CharFilter):
    """Rows that hold each word of a text, by the search of the site's own pages."""

    def __init__(self, search: Callable[[Any, str], QuerySet]) -> None:
        self.search = search
        super().__init__(max_length=MAX_TEXT)
        description = "Words that must all occur, whatever their case. The first eight count; later ones are ignored."
        extend_schema_field({**TEXT_SCHEMA, "description": description})(self)

    def filter(self, qs: QuerySet, value: str) -> QuerySet:
        return self.search(qs, value)


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

    base_filters: dict[str, filters.Filter]

    def __init__(self, data: Any = None, **options: Any) -> None:
        # The others would be copied for nothing, which takes most of a filtered page's time.
        self.base_filters = {
            name: field_filter for name, field_filter in self.base_filters.items() if name in (data or ())
        }
        super().__init__(data, **options)

    @classmethod
    def get_filters(cls) -> dict[str, filters.Filter]:
        """The filters, and for each by reference, choice or existing text one by any of several values."""
        single = super().get_filters()
        several: dict[str, filters.Filter] = {}
        for name, single_filter in single.items():
            if isinstance(single_filter, SingleValueFilter):
                several[f"{name}__in"] = AnyOfFilter(single_filter)
        return single | several

    @classmethod
    def get_fields(cls) -> dict[str, list[str]]:
        column = cls._meta.model._meta.get_field
        lookups = {}
        for name in cls._meta.fields:
            lookups[name] = ["gte", "lt"] if isinstance(column(name), models.DateTimeField) else ["exact"]
        return lookups

    @classmethod
    def filter_for_lookup(cls, field: Any, lookup_type: str) -> Any:
        if getattr(field, "choices", None):
            return KnownChoiceFilter, {"choices": field.choices}
        return super().filter_for_lookup(field, lookup_type)


def check_parameters(request: Request, names: Iterable[str]) -> None:
    """Raises ValidationError naming each parameter that is unknown, empty, repeated, too long a list or has a NUL."""
    names = sorted(names)
    errors: dict[str, list[str]] = {}
    for name, values in request.query_params.lists():
        takes_several = name.endswith("__in") or name in (FIELDS_PARAMETER, "ordering")
        if name not in names:
            errors[name] = [f"unknown parameter; known are {', '.join(names)}" if names else "takes no parameters"]
        elif len(values) > 1:
            errors[name] = ["given more than once"]
        elif not values[0].strip():
            errors[name] = ["is empty"]
        elif takes_several and not all(map(str.strip, values[0].split(","))):
            errors[name] = ["has an empty value"]
        elif "\0" in values[0]:
            errors[name] = ["contains a NUL character"]
        elif (parts := values[0].count(",") + 1) > MAX_VALUES:
            errors[name] = [f"{parts} values; at most {MAX_VALUES} can be given"]
    if errors:
        raise ValidationError(errors)


def past_instant(request: Request, name: str) -> datetime | None:
    """The instant in a parameter, None if it is absent. Raises NotFound for one in the future."""
    try:
        at = InstantField(required=False).clean(request.query_params.get(name, ""))
    except InvalidValue as error:
        raise ValidationError({name: error.messages}) from error
    if at is not None and at > timezone.now():
        raise NotFound(f"{name}: {at:%Y-%m-%dT%H:%M:%SZ} is in the future")
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
        names = filter_names | view.paginator.parameters | {FIELDS_PARAMETER, FORMAT_PARAMETER}
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
        terms = request.query_params.get("ordering", "").split(",")
        names = [name.strip() for name in terms if name.strip()]
        unknown = [name for name in names if name.removeprefix("-") not in view.orderings]
        if unknown:
            known_names = ", ".join(view.orderings)
            raise ValidationError({"ordering": [f"unknown field {', '.join(unknown)}; known are {known_names}"]})
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
        terms: list[str] = []
        for name in view.orderings:
            terms += [name, f"-{name}"]
        return [
            {
                "name": "ordering",
                "required": False,
                "in": "query",
                "description": "Fields to order by, separated by commas; with a minus for descending.",
                "style": "form",
                "explode": False,
                "schema": {"type": "array", "items": {"type": "string", "enum": terms}, "maxItems": MAX_VALUES},
            }
        ]
