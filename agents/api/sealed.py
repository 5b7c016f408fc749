"""Rows of lists that may be sealed: they are listed with their end of secrecy, and without their content."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from agents.models.sealed_rows import seals_in_force, with_sealed_until, without_sealed
from foundation.rest.serializers import ReadSerializer
from foundation.rest.viewsets import ReadOnlyViewSet

SEALED_UNTIL = "sealed_until"
PAGING = {"page", "page_size", "cursor", "format", "fields", "updated_since"}
"""Parameters that select nothing by what a row holds."""


class SealedUntilField(serializers.DateTimeField):
    """The end of a row's seal; null of a row that may be read, as all rows within others are."""

    def __init__(self, **options: Any) -> None:
        help_text = "Until then its content is null, since an external agent may still answer the same; else null."
        super().__init__(**{"read_only": True, "allow_null": True, "help_text": help_text, **options})

    def get_attribute(self, instance: Any) -> Any:
        return getattr(instance, SEALED_UNTIL, None)


class SealableSerializer(ReadSerializer):
    """A row of which only `open_fields` are shown while it is sealed. Its `Meta.fields` end with `sealed_until`."""

    open_fields: frozenset[str] = frozenset()
    sealed_until = SealedUntilField()

    def get_fields(self) -> Any:
        fields = super().get_fields()
        for name, field in fields.items():
            if name not in self.open_fields and not isinstance(field, serializers.ListSerializer):
                field.allow_null = True
        return fields

    def to_representation(self, instance: Any) -> dict[str, Any]:
        row = super().to_representation(instance)
        if row.get(SEALED_UNTIL) is None:
            return row
        open_names = {*self.open_fields, SEALED_UNTIL}
        for name, value in row.items():
            if name not in open_names:
                row[name] = [] if isinstance(value, list) else None
        return row


class UnsealedViewSet(ReadOnlyViewSet):
    """A list of rows that follow from answers, without those of sealed ones."""

    def get_queryset(self) -> Any:
        return without_sealed(super().get_queryset())


class SealableViewSet(ReadOnlyViewSet):
    """A list with sealed rows in it. One that is filtered or ordered by content leaves them out."""

    def get_queryset(self) -> Any:
        return with_sealed_until(super().get_queryset())

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        rows = super().filter_queryset(queryset)
        return rows.filter(sealed_until=None) if seals_in_force() and self._depends_on_content() else rows

    @property
    def requested(self) -> frozenset[str]:
        requested = super().requested
        return requested | {SEALED_UNTIL} if seals_in_force() else requested

    def _depends_on_content(self) -> bool:
        parameters = self.request.query_params
        names = {name.partition("__")[0] for name in parameters if name != "ordering"}
        names |= {name.strip().lstrip("-") for name in parameters.get("ordering", "").split(",") if name.strip()}
        serializer: Any = self.serializer_class
        return not names <= {*PAGING, *serializer.open_fields}
