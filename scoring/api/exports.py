"""Exports: their list, and the download of a zip file. `arena_site.export_requests` adds the request of a new one."""

from typing import Any

from django.core.exceptions import ValidationError as InvalidValue
from django.http import FileResponse, Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from cohorts.models import Cohort
from foundation.rest.filters import INSTANT_SCHEMA, InstantField, ReferenceFilter
from foundation.rest.serializers import ReadSerializer, StrictSerializer
from foundation.rest.viewsets import ReadOnlyViewSet
from scoring.exports.dictionary import FORMATS
from scoring.models import Export
from scoring.services.exports import export_file


class ExportSerializer(ReadSerializer):
    formats = serializers.SerializerMethodField()
    file = serializers.SerializerMethodField(help_text="Path of the zip file; null while there is none.")

    class Meta:
        model = Export
        fields = (
            "id", "selection", "cohort", "start", "end", "formats", "status", "requested_at", "started_at",
            "finished_at", "rows", "bytes", "sha256", "file", "error",
        )  # fmt: skip

    @extend_schema_field({"type": "array", "items": {"type": "string", "enum": list(FORMATS)}})
    def get_formats(self, export: Export) -> list[str]:
        return export.formats.split(",")

    @extend_schema_field({"type": ["string", "null"]})
    def get_file(self, export: Export) -> str | None:
        return f"/api/v1/exports/{export.pk}/file/" if export_file(export) else None


@extend_schema_field({**INSTANT_SCHEMA, "description": "ISO-8601 with a time zone; a date is its 00:00 UTC."})
class WindowBoundField(serializers.CharField):
    def to_internal_value(self, data: Any) -> Any:
        try:
            return InstantField(required=False).clean(super().to_internal_value(data))
        except InvalidValue as error:
            raise serializers.ValidationError(error.messages) from error


class ExportRequestSerializer(StrictSerializer):
    """The selection of a new export: everything, or narrowed to a cohort, a half-open window, or both."""

    cohort = serializers.IntegerField(required=False, min_value=1, max_value=2**31 - 1)
    start = WindowBoundField(required=False)
    end = WindowBoundField(required=False)
    formats = serializers.ListField(child=serializers.ChoiceField(FORMATS), required=False, min_length=1)

    def validate_cohort(self, number: int) -> int:
        if not Cohort.objects.filter(number=number).exists():
            raise serializers.ValidationError(f"there is no cohort {number}")
        return number

    def validate(self, data: dict[str, Any]) -> dict[str, Any]:
        if data.get("start") and data.get("end") and data["start"] >= data["end"]:
            raise serializers.ValidationError({"end": ["is not after start"]})
        return data


class CohortNumberFilter(ReferenceFilter):
    """Filters by cohort where the model holds the cohort's number instead of a foreign key."""

    def filter(self, qs: Any, value: Cohort | None) -> Any:
        return qs.filter(cohort=value.number) if value else qs

    def filter_any(self, qs: Any, values: Any) -> Any:
        return qs.filter(cohort__in=[cohort.number for cohort in values])


class ExportViewSet(ReadOnlyViewSet):
    queryset = Export.objects.all()
    serializer_class = ExportSerializer
    filterset_fields = ("status", "start", "end", "requested_at", "started_at", "finished_at")
    filters = {"cohort": CohortNumberFilter(Cohort, by="number")}
    orderings = ("id", "requested_at")
    ordering = ("-pk",)


@require_safe
def export_download(request: HttpRequest, pk: int) -> FileResponse:
    """The zip file of an export."""
    export = get_object_or_404(Export, pk=pk)
    file = export_file(export)
    if file is None:
        raise Http404
    return FileResponse(file.open("rb"), as_attachment=True, filename=export.file_name, content_type="application/zip")
