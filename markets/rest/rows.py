"""Rows as readers get them: exact decimals as text, empty text as null, others by id, and only what is asked for."""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from operator import attrgetter
from typing import Any

from django.db import models
from django.db.models import QuerySet
from django.utils.functional import cached_property
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from markets.blocks import decimal_text
from markets.fields import ExactDecimalField

PLACES = 6
"""Decimals that a price or a cost shows at least; money has its two."""
FIELDS = "fields"
"""The parameter that thins rows."""


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


def field_names(serializer: type[serializers.BaseSerializer]) -> tuple[str, ...]:
    """The names of a row's fields, in their order."""
    meta = getattr(serializer, "Meta", None)
    names: Any = getattr(meta, "fields", None) or getattr(serializer, "_declared_fields", ())
    return tuple(names)


def asked_fields(request: Request, serializer: type[serializers.BaseSerializer]) -> frozenset[str]:
    """The fields that `fields` names, all where it is not given; an unknown name is refused."""
    known = field_names(serializer)
    asked = [name.strip() for name in request.query_params.get(FIELDS, "").split(",") if name.strip()]
    if unknown := [name for name in asked if name not in known]:
        raise ValidationError({FIELDS: [f"unknown field {', '.join(unknown)}; known are {', '.join(known)}"]})
    return frozenset(asked or known)


def thinned(serializer: Any, names: frozenset[str]) -> Any:
    """The serializer, of one row or of many, with the fields of these names alone."""
    row = getattr(serializer, "child", serializer)
    if isinstance(row, Row):
        row.names = names
    else:
        for name in [name for name in row.fields if name not in names]:
            del row.fields[name]
    return serializer


def lean(rows: QuerySet[Any], *related: str) -> Any:
    """The rows with all columns of their own, and of what they are joined with these alone.

    A list names two words of an agent; to make whole agents, cohorts and families of a page would be most of its time.
    """
    return rows.only(*(field.attname for field in rows.model._meta.concrete_fields), *related)


def _text_of_instant(value: datetime) -> str:
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _same(value: Any) -> Any:
    return value


SHORT_WAYS: dict[Any, Callable[[Any], Any]] = {
    serializers.CharField.to_representation: str,
    serializers.ChoiceField.to_representation: _same,
    serializers.IntegerField.to_representation: int,
    serializers.FloatField.to_representation: float,
    serializers.BooleanField.to_representation: bool,
    serializers.JSONField.to_representation: _same,
    serializers.DateTimeField.to_representation: _text_of_instant,
}
"""What kinds of fields make of a value of their column, without the questions they ask of values from elsewhere."""


class Row(serializers.ModelSerializer):
    """A row as readers get it: exact decimals as text, empty text as null, others by id."""

    names: frozenset[str] | None = None
    """The fields to show; None is all."""

    @classmethod
    def columns(cls, names: frozenset[str] | None = None) -> list[str]:
        """What its fields of these names show, by its path; of rows within the row, the key by which to find them."""
        return [_column(field) for field in _readable(cls) if names is None or field.field_name in names]

    def get_fields(self) -> Any:
        fields = super().get_fields()
        return {name: field for name, field in fields.items() if self.names is None or name in self.names}

    @cached_property
    def _shown(self) -> list[Any]:
        return [field for field in _readable(type(self)) if self.names is None or field.field_name in self.names]

    @cached_property
    def _readers(self) -> list[tuple[str, Callable[[Any], Any]]]:
        """How each field is read off an instance: found once, since a page asks for it a thousand times."""
        return [(field.field_name, self._reader(field)) for field in self._shown]

    def _reader(self, field: Any) -> Callable[[Any], Any]:
        kind = type(field)
        if kind is serializers.SerializerMethodField:
            made: Callable[[Any], Any] = getattr(self, field.method_name)
            return made
        show = _way(field)
        if kind is serializers.PrimaryKeyRelatedField and len(field.source_attrs) == 1:
            get = attrgetter(f"{field.source}_id")
        elif kind.get_attribute is serializers.Field.get_attribute:
            get = attrgetter(field.source)
        else:
            get = field.get_attribute

        def read(instance: Any) -> Any:
            value = get(instance)
            return None if value is None else show(value)

        return read

    @cached_property
    def _ways(self) -> tuple[list[str], list[tuple[str, Callable[[Any], Any]]]]:
        """The names of the columns of a tuple, and what is made of those that are not shown as they are."""
        ways = [(field.field_name, _way(field)) for field in self._shown]
        return [name for name, _ in ways], [(name, show) for name, show in ways if show is not _same]

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """What is shown of an instance, or of a tuple of the values of its `columns`."""
        if not isinstance(instance, tuple):
            return {name: read(instance) for name, read in self._readers}
        names, ways = self._ways
        row = dict(zip(names, instance, strict=True))
        for name, show in ways:
            if (value := row[name]) is not None:
                row[name] = show(value)
        return row

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
        if isinstance(model_field, models.JSONField):
            # Null is JSON too: described apart, it would be allowed twice, which is to say not at all.
            options.pop("allow_null", None)
        return field_class, options


@cache
def _readable(row: type[Row]) -> tuple[Any, ...]:
    """The fields of a kind of row: made once, since to make them takes longer than to read the rows of a page.

    All rows of the kind share them, so none of them may ask for the row that it is of.
    """
    return tuple(row()._readable_fields)


def _column(field: Any) -> str:
    if isinstance(field, serializers.ListSerializer):
        return "pk"
    path = "__".join(field.source_attrs)
    return f"{path}_id" if isinstance(field, serializers.PrimaryKeyRelatedField) else path


def _way(field: Any) -> Callable[[Any], Any]:
    """What a field makes of a value that is not null."""
    if isinstance(field, serializers.PrimaryKeyRelatedField) and len(field.source_attrs) == 1:
        return _same
    show: Callable[[Any], Any] = field.to_representation
    return SHORT_WAYS.get(type(field).to_representation, show)
