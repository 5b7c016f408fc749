"""`POST /api/v1/exports/`: an operator requests an export, which is audited here and built by a worker."""

from http import HTTPStatus
from typing import Any

from django.db import transaction
from django.utils import timezone
from django_q.tasks import async_task
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.authentication import SessionAuthentication
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from arena_site.dashboard.action import row_path
from arena_site.dashboard.actions.runs import BuildExport
from arena_site.dashboard.audit import write_entry
from arena_site.models import AuditEntry, OperatorToken
from arena_site.token_authentication import (
    OPERATOR_RESPONSES,
    HasOperatorScope,
    OperatorTokenAuthentication,
    token_note,
)
from markets.foundation.rest import check_parameters
from scoring.api.exports import ExportRequestSerializer, ExportSerializer, ExportViewSet
from scoring.exports.dictionary import CSV
from scoring.exports.selection import ExportSelection
from scoring.models import Export
from scoring.services.exports import request_export

BUILD_TIMEOUT_S = 2 * 3600


class RequestableExportViewSet(ExportViewSet):
    """Exports of the arena's data. `POST` requests one (operators only); equal requests share one export.

    Anyone may download `file`, the zip file. `verify_export` checks it without the arena.
    """

    scope = OperatorToken.Scope.EXPORTS

    def get_authenticators(self) -> list[Any]:
        is_post = self.request is not None and self.request.method == "POST"
        return [OperatorTokenAuthentication(), SessionAuthentication()] if is_post else []

    def get_permissions(self) -> list[Any]:
        return [HasOperatorScope() if self.action == "create" else AllowAny()]

    @extend_schema(
        request=ExportRequestSerializer,
        responses={
            202: OpenApiResponse(ExportSerializer, "The export: queued, being built, or recently completed."),
            **OPERATOR_RESPONSES,
        },
    )
    def create(self, request: Request) -> Response:
        check_parameters(request, ())
        serializer = ExportRequestSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        selection = ExportSelection(data.get("cohort"), data.get("start"), data.get("end"))
        formats, by = tuple(dict.fromkeys(data.get("formats") or (CSV,))), request.user.get_username()
        with transaction.atomic():
            export, created = request_export(selection=selection, formats=formats, by=by, at=timezone.now())
            if created:
                write_entry(
                    action=BuildExport.name,
                    by=by,
                    result=AuditEntry.Result.DONE,
                    reason=f"requested over the API{token_note(request)}",
                    target=str(export),
                    path=row_path(export),
                    form_data=data,
                )
        if export.status == Export.Status.QUEUED:
            # Enqueued again if it still waits: a lost queue message must not keep it waiting for ever.
            transaction.on_commit(lambda: _enqueue(export.pk))
        return Response(ExportSerializer(export).data, status=HTTPStatus.ACCEPTED)


def _enqueue(export_id: int) -> None:
    async_task("arena_site.jobs.export", export_id, q_options={"timeout": BUILD_TIMEOUT_S, "group": "exports"})
