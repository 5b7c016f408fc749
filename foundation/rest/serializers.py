"""Serializers of read-only rows: exact decimals as strings, empty text as null, and the parameter `fields`."""

from collections.abc import Callable
from decimal import Decimal
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any

from django.db import models
from django.db.models import QuerySet
from django.utils.functional import cached_property
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from foundation.fields import ExactDecimalField
from foundation.json_lines import decimal_text

MIN_PLACES = 6
"""Decimal places that a price or a cost has at least; money has two."""
FIELDS_PARAMETER = "fields"
"""The query parameter that selects fields."""


@extend_schema_field({"type": "string", "format": "decimal"})
class DecimalStringField(serializers.Field):
    """A decimal as a string, unrounded."""

    def __init__(self, places: int = MIN_PLACES, **options: Any) -> None:
        self.places = places
        super().__init__(**{"read_only": True, **options})

    def to_representation(self, value: Decimal) -> str:
        return decimal_text(value, self.places)


class MoneyStringField(DecimalStringField):
    """Dollars, to the cent."""

    def __init__(self, **options: Any) -> None:
        super().__init__(places=2, **options)


class NullableCharField(serializers.CharField):
    """Text; the empty text is null."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"read_only": True, "allow_null": True, **options})

    def to_representation(self, value: str) -> str | None:  # type: ignore[override]
        return value or None


def field_names(serializer: type[serializers.BaseSerializer]) -> tuple[str, ...]:
    """The names of a serializer's fields, in their order, without making the fields."""
    meta = getattr(serializer, "Meta", None)
    names: Any = getattr(meta, "fields", None) or getattr(serializer, "_declared_fields", ())
    return tuple(names)


def requested_fields(
    request: Request,
    serializer: type[serializers.BaseSerializer],
    *alternatives: type[serializers.BaseSerializer],
) -> frozenset[str]:
    """The field names in the parameter `fields`, all of the serializer if it is absent.

    Fields of the `alternatives` are known too, though the rows have none. Raises ValidationError for unknown names.
    """
    valid = list(dict.fromkeys(chain.from_iterable(map(field_names, (serializer, *alternatives)))))
    terms = request.query_params.get(FIELDS_PARAMETER, "").split(",")
    names = [name.strip() for name in terms if name.strip()]
    if unknown := [name for name in names if name not in valid]:
        raise ValidationError({FIELDS_PARAMETER: [f"unknown field {', '.join(unknown)}; known are {', '.join(valid)}"]})
    return frozenset(names or field_names(serializer))


def select_fields(serializer: Any, names: frozenset[str]) -> Any:
    """The serializer, of one row or of many, restricted to these fields."""
    row = getattr(serializer, "child", serializer)
    if isinstance(row, ReadSerializer):
        row.names = names
    else:
        for name in [name for name in row.fields if name not in names]:
            del row.fields[name]
    return serializer


def limit_related_fields(rows: QuerySet[Any], *related: str) -> Any:
    """The query with all fields of its own model and, of the models that it joins, only `related`.

    Building whole agents, cohorts and families for two names of each would be most of a page's time.
    """
    joined = rows.select_related(*(name.rpartition("__")[0] for name in related))
    return joined.only(*map(attrgetter("attname"), rows.model._meta.concrete_fields), *related)


class StrictSerializer(serializers.Serializer):
    """A request's body, refused where it holds a field that is not known."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and (unknown := sorted(set(data) - set(self.fields))):
            names = ", ".join(self.fields)
            raise serializers.ValidationError({name: [f"unknown; known are {names}"] for name in unknown})
        return super().to_internal_value(data)


class ReadSerializer(serializers.ModelSerializer):
    """A read-only ModelSerializer: decimals as strings, empty text as null, foreign keys as ids.

    It represents model instances, or tuples of the values of its `columns`, which are much faster to read.
    """

    names: frozenset[str] | None = None
    """Fields to represent; None is all."""

    @classmethod
    def columns(cls, names: frozenset[str] | None = None) -> list[str]:
        """The ORM paths of its fields, in order; "pk" in place of nested rows, which are looked up by it."""
        return list(map(_column, _named_fields(cls, names)))

    def get_fields(self) -> Any:
        fields = super().get_fields()
        return {name: field for name, field in fields.items() if self.names is None or name in self.names}

    @cached_property
    def _conversions(self) -> list[tuple[str, Callable[[Any], Any] | None]]:
        """The name of each column of a tuple and the function for a value that is not null; None for an id."""
        conversions = []
        for field in _named_fields(type(self), self.names):
            is_id = isinstance(field, serializers.PrimaryKeyRelatedField) and len(field.source_attrs) == 1
            conversions.append((field.field_name, None if is_id else field.to_representation))
        return conversions

    def to_representation(self, instance: Any) -> dict[str, Any]:
        if not isinstance(instance, tuple):
            represented: dict[str, Any] = super().to_representation(instance)
            return represented
        row = {}
        for (name, convert), value in zip(self._conversions, instance, strict=True):
            row[name] = value if value is None or convert is None else convert(value)
        return row

    def get_extra_kwargs(self) -> dict[str, Any]:
        return {name: {"read_only": True} for name in self.Meta.fields}

    def build_standard_field(self, field_name: str, model_field: Any) -> Any:
        field_class, options = super().build_standard_field(field_name, model_field)
        help_text = {"help_text": model_field.help_text} if model_field.help_text else {}
        if isinstance(model_field, models.DecimalField):
            exact = isinstance(model_field, ExactDecimalField)
            places = min(model_field.decimal_places, MIN_PLACES) if exact else model_field.decimal_places
            return DecimalStringField, {"places": places, "allow_null": model_field.null, **help_text}
        if isinstance(model_field, models.CharField | models.TextField) and model_field.blank and not model_field.null:
            return NullableCharField, help_text
        if isinstance(model_field, models.JSONField):
            # A JSON schema allows null already; allowed twice by `oneOf`, it would be invalid.
            options.pop("allow_null", None)
        return field_class, options


@cache
def _readable_fields(row: type[ReadSerializer]) -> tuple[Any, ...]:
    """The fields of a serializer class, made once: making them takes longer than reading the rows of a page.

    All instances share them, so no field may depend on its serializer's instance.
    """
    return tuple(row()._readable_fields)


def _named_fields(row: type[ReadSerializer], names: frozenset[str] | None) -> list[Any]:
    """The readable fields of these names, or all."""
    return [field for field in _readable_fields(row) if names is None or field.field_name in names]


def _column(field: Any) -> str:
    if isinstance(field, serializers.ListSerializer):
        return "pk"
    path = "__".join(field.source_attrs)
    return f"{path}_id" if isinstance(field, serializers.PrimaryKeyRelatedField) else path
