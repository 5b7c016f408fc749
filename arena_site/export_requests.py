"""The request of an export over the API, by an operator who is signed in."""

from http import HTTPStatus
from typing import Any

from django.db import transaction
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse
from rest_framework.authentication import SessionAuthentication
from rest_framework.permissions import AllowAny, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from arena_site import jobs
from arena_site.dashboard.action import row_path
from arena_site.dashboard.audit import write_entry
from arena_site.models import AuditEntry
from foundation.rest.bodies import check_body
from foundation.rest.filters import check_parameters
from foundation.rest.problems import PROBLEM_SCHEMA, Problem
from foundation.rest.viewsets import extend_schema
from scoring.api.exports import ExportRequestSerializer, ExportSerializer, ExportViewSet
from scoring.exports.dictionary import CSV
from scoring.exports.selection import ExportSelection
from scoring.models import Export
from scoring.services.exports import TooManyExports, request_export

MAX_BODY_BYTES = 100_000
RETRY_S = 60


class MayBuildArchives(BasePermission):
    def has_permission(self, request: Request, view: Any) -> bool:
        return request.user is not None and request.user.has_perm("arena_site.run_jobs")


class RequestableExportViewSet(ExportViewSet):
    """Exports of the arena's data. `POST` requests one (operators only); equal requests share one export.

    Anyone may download `file`, the zip file. `verify_export` checks it without the arena.
    """

    def get_authenticators(self) -> list[Any]:
        is_post = self.request is not None and self.request.method == "POST"
        return [SessionAuthentication()] if is_post else []

    def get_permissions(self) -> list[Any]:
        return [MayBuildArchives() if self.action == "create" else AllowAny()]

    @extend_schema(
        request=ExportRequestSerializer,
        responses={
            202: OpenApiResponse(ExportSerializer, "The export: queued, being built, or recently completed."),
            403: OpenApiResponse(PROBLEM_SCHEMA, "Not signed in, without its CSRF token, or not permitted."),
            411: OpenApiResponse(PROBLEM_SCHEMA, "The body's length is not stated."),
            413: OpenApiResponse(PROBLEM_SCHEMA, "The body is too long."),
            415: OpenApiResponse(PROBLEM_SCHEMA, "Not JSON."),
            429: OpenApiResponse(PROBLEM_SCHEMA, "Too many requests of this client, or too many exports wait."),
        },
    )
    def create(self, request: Request) -> Response | Problem:
        check_parameters(request, ())
        check_body(request, MAX_BODY_BYTES)
        serializer = ExportRequestSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        selection = ExportSelection(data.get("cohort"), data.get("start"), data.get("end"))
        formats, by = tuple(dict.fromkeys(data.get("formats") or (CSV,))), request.user.get_username()
        with transaction.atomic():
            try:
                export, created = request_export(selection=selection, formats=formats, by=by, at=timezone.now())
            except TooManyExports as full:
                return Problem(HTTPStatus.TOO_MANY_REQUESTS, str(full), headers={"Retry-After": str(RETRY_S)})
            if created:
                write_entry(
                    action="export",
                    by=by,
                    result=AuditEntry.Result.DONE,
                    reason="requested over the API",
                    target=str(export),
                    path=row_path(export),
                    form_data=data,
                )
        if export.status == Export.Status.QUEUED:
            # Enqueued again if it still waits: a lost queue message must not keep it waiting for ever.
            transaction.on_commit(lambda: jobs.enqueue("export", export.pk))
        return Response(ExportSerializer(export).data, status=HTTPStatus.ACCEPTED)
