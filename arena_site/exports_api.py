"""Archives over the API: which there are, the way to each, and how an operator has one built."""

from http import HTTPStatus
from typing import Any

from django.core.exceptions import ValidationError as InvalidValue
from django.db import transaction
from django.http import FileResponse, Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.views.decorators.http import require_safe
from django_q.tasks import async_task
from drf_spectacular.utils import OpenApiResponse, extend_schema_field
from rest_framework import serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from arena_site.desk.act import row_path
from arena_site.desk.acts.runs import BuildExport
from arena_site.desk.audit import written
from arena_site.models import AuditEntry, OperatorToken
from arena_site.tokens import ByOperatorToken, Operates, by_which
from cohorts.models import Cohort
from markets.rest import (
    INSTANT,
    PROBLEM,
    Documented,
    Filters,
    InstantField,
    ReferenceFilter,
    Row,
    Rows,
    check_parameters,
)
from scoring.exports.files import CSV, FORMATS
from scoring.exports.selection import Selection
from scoring.models import Export
from scoring.services.exports import export_file, export_request

BUILT_WITHIN_S = 2 * 3600


class ExportRow(Row):
    formats = serializers.SerializerMethodField()
    file = serializers.SerializerMethodField(help_text="Where the zip file is fetched; null while there is none.")

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


@extend_schema_field({**INSTANT, "description": "ISO-8601 with its zone; a bare date is its 00:00 UTC."})
class Bound(serializers.CharField):
    def to_internal_value(self, data: Any) -> Any:
        try:
            return InstantField(required=False).clean(super().to_internal_value(data))
        except InvalidValue as error:
            raise serializers.ValidationError(error.messages) from error


class Asked(serializers.Serializer):
    """What an archive is to hold: everything, one cohort, or what happened from one instant up to another."""

    cohort = serializers.IntegerField(required=False, min_value=1, max_value=2**31 - 1)
    start = Bound(required=False)
    end = Bound(required=False)
    formats = serializers.ListField(child=serializers.ChoiceField(FORMATS), required=False, min_length=1)

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and (unknown := sorted(set(data) - set(self.fields))):
            raise serializers.ValidationError(
                {name: ["unknown; known are cohort, start, end, formats"] for name in unknown}
            )
        return super().to_internal_value(data)

    def validate_cohort(self, number: int) -> int:
        if not Cohort.objects.filter(number=number).exists():
            raise serializers.ValidationError(f"there is no cohort {number}")
        return number

    def validate(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked.get("start") and asked.get("end") and asked["start"] >= asked["end"]:
            raise serializers.ValidationError({"end": ["is not after start"]})
        return asked


class ExportsSchema(Documented):
    """Adds what `POST` may answer."""

    def get_request_serializer(self) -> Any:
        return Asked if self.method == "POST" else super().get_request_serializer()

    def get_override_parameters(self) -> Any:
        return [] if self.method == "POST" else super().get_override_parameters()

    def get_response_serializers(self) -> Any:
        if self.method != "POST":
            return super().get_response_serializers()
        return {
            202: OpenApiResponse(ExportRow, "The archive: queued, under way, or there already."),
            400: OpenApiResponse(PROBLEM, "A field at fault, named."),
            401: OpenApiResponse(PROBLEM, "Neither a session nor a token that is known and in force."),
            403: OpenApiResponse(PROBLEM, "Not permitted, or not the token's scope."),
            415: OpenApiResponse(PROBLEM, "Not JSON."),
            429: OpenApiResponse(PROBLEM, "Too many requests of this client; `Retry-After` says when to come back."),
            500: OpenApiResponse(PROBLEM, "The server failed."),
        }


class CohortFilter(ReferenceFilter):
    """An export names its cohort by number alone."""

    def filter(self, qs: Any, value: Cohort | None) -> Any:
        return qs.filter(cohort=value.number) if value else qs


class ExportFilters(Filters):
    cohort = CohortFilter(Cohort, by="number")

    class Meta:
        model = Export
        times = ("start", "end", "requested_at", "started_at", "finished_at")
        fields = {"status": ["exact"], **{time: ["gte", "lt"] for time in times}}


class Exports(Rows):
    """Archives of the arena. `POST` has one built (operators alone); asked for twice, it is built once.

    `file` is where the zip file is fetched, by anyone. `verify_export` proves it without the arena.
    """

    queryset = Export.objects.all()
    serializer_class = ExportRow
    filterset_class = ExportFilters
    orderings = {"id": "pk", "requested_at": "requested_at"}
    ordering = ("-pk",)
    schema = ExportsSchema()
    scope = OperatorToken.Scope.EXPORTS

    def get_authenticators(self) -> list[Any]:
        posts = self.request is not None and self.request.method == "POST"
        return [ByOperatorToken(), SessionAuthentication()] if posts else []

    def get_permissions(self) -> list[Any]:
        return [Operates() if self.action == "create" else AllowAny()]

    def create(self, request: Request) -> Response:
        check_parameters(request, ())
        asked = Asked(data=request.data)
        asked.is_valid(raise_exception=True)
        said = asked.validated_data
        selection = Selection(said.get("cohort"), said.get("start"), said.get("end"))
        formats, by = tuple(dict.fromkeys(said.get("formats") or (CSV,))), request.user.get_username()
        with transaction.atomic():
            export, created = export_request(selection=selection, formats=formats, by=by, at=timezone.now())
            if created:
                written(
                    act=BuildExport.name,
                    by=by,
                    result=AuditEntry.Result.DONE,
                    reason=f"asked for over the API{by_which(request)}",
                    target=str(export),
                    path=row_path(export),
                    asked=said,
                )
        if export.status == Export.Status.QUEUED:
            # Rung again for one that is still waiting: a doorbell that was lost must not keep it waiting for ever.
            transaction.on_commit(lambda: _ring(export.pk))
        return Response(ExportRow(export).data, status=HTTPStatus.ACCEPTED)


def _ring(export_id: int) -> None:
    async_task("arena_site.jobs.export", export_id, q_options={"timeout": BUILT_WITHIN_S, "group": "exports"})


@require_safe
def export_download(request: HttpRequest, pk: int) -> FileResponse:
    """The zip file of an export."""
    export = get_object_or_404(Export, pk=pk)
    file = export_file(export)
    if file is None:
        raise Http404
    return FileResponse(file.open("rb"), as_attachment=True, filename=export.file_name, content_type="application/zip")
