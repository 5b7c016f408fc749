"""Rows of lists that may be sealed: they are listed with the end of their seal, and without their content."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from agents.letters import with_sealed_until
from foundation.rest.serializers import ReadSerializer
from foundation.rest.viewsets import ReadOnlyViewSet

PAGING = {"page", "page_size", "cursor", "format", "fields", "updated_since"}
"""Parameters that select nothing by what a row holds."""


class SealableSerializer(ReadSerializer):
    """A row of which only `open_fields` are shown while `is_sealed`."""

    open_fields: frozenset[str] = frozenset()

    def get_fields(self) -> Any:
        fields = super().get_fields()
        for name, field in fields.items():
            if name not in self.open_fields and not isinstance(field, serializers.ListSerializer):
                field.allow_null = True
        return fields

    def to_representation(self, instance: Any) -> dict[str, Any]:
        row = super().to_representation(instance)
        if instance.is_sealed:
            for name in row.keys() - self.open_fields:
                row[name] = [] if isinstance(row[name], list) else None
            # Beside any choice of fields, since it tells a sealed null from an absent value.
            row["sealed_until"] = serializers.DateTimeField().to_representation(instance.sealed_until)
        return row


class SealedUntilField(serializers.DateTimeField):
    """The end of a row's seal; null of a row that may be read."""

    def __init__(self, **options: Any) -> None:
        help_text = "Until then its content is null, since an external agent may still answer the same; else null."
        super().__init__(**{"read_only": True, "allow_null": True, "help_text": help_text, **options})


class SealableViewSet(ReadOnlyViewSet):
    """A list with sealed rows in it. One that is filtered or ordered by content leaves them out."""

    def get_queryset(self) -> Any:
        return with_sealed_until(super().get_queryset())

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        rows = super().filter_queryset(queryset)
        return rows.filter(is_sealed=False) if self._depends_on_content() else rows

    def _depends_on_content(self) -> bool:
        parameters = self.request.query_params
        names = {name.partition("__")[0] for name in parameters if name != "ordering"}
        names |= {name.strip().lstrip("-") for name in parameters.get("ordering", "").split(",") if name.strip()}
        serializer: Any = self.serializer_class
        return not names <= {*PAGING, *serializer.open_fields}
