"""Writes of the API by operators, with a session or a token: an export is requested, a job is enqueued."""

from http import HTTPStatus
from typing import Any

from django.db import transaction
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.generics import GenericAPIView
from rest_framework.parsers import JSONParser
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from arena_site import jobs
from arena_site.authentication import HasOperatorScope, OperatorTokenAuthentication, token_note
from arena_site.dashboard.action import Action, row_path
from arena_site.dashboard.audit import perform_action, write_entry
from arena_site.models import AuditEntry, OperatorToken
from markets.foundation import clock
from markets.foundation.rest import (
    PROBLEM_SCHEMA,
    JsonOnlyNegotiation,
    StrictSerializer,
    check_parameters,
    extend_schema,
)
from markets.models import Run
from scoring.api.exports import ExportRequestSerializer, ExportSerializer, ExportViewSet
from scoring.exports.dictionary import CSV
from scoring.exports.selection import ExportSelection
from scoring.models import Export
from scoring.services.exports import request_export

OPERATOR_RESPONSES = {
    400: OpenApiResponse(PROBLEM_SCHEMA, "An invalid field, named."),
    401: OpenApiResponse(PROBLEM_SCHEMA, "Neither a session nor an active token."),
    403: OpenApiResponse(PROBLEM_SCHEMA, "Not permitted, or not the token's scope."),
    415: OpenApiResponse(PROBLEM_SCHEMA, "Not JSON."),
    429: OpenApiResponse(PROBLEM_SCHEMA, "Too many requests; `Retry-After` gives the seconds to wait."),
    500: OpenApiResponse(PROBLEM_SCHEMA, "The server failed."),
}
"""Failures of the endpoints for operators, in the OpenAPI schema."""


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
                    action="export",
                    by=by,
                    result=AuditEntry.Result.DONE,
                    reason=f"requested over the API{token_note(request)}",
                    target=str(export),
                    path=row_path(export),
                    form_data=data,
                )
        if export.status == Export.Status.QUEUED:
            # Enqueued again if it still waits: a lost queue message must not keep it waiting for ever.
            transaction.on_commit(lambda: jobs.enqueue("export", export.pk))
        return Response(ExportSerializer(export).data, status=HTTPStatus.ACCEPTED)


def job_actions() -> dict[str, Action]:
    """The actions that enqueue a command, by command."""
    from arena_site.dashboard.actions.runs import ENQUEUE_ACTIONS  # loads the gateway

    return {action.kind: action for action in ENQUEUE_ACTIONS}


class RequestedJob(StrictSerializer):
    """The command to run, and the reason for it."""

    command = serializers.ChoiceField([])
    reason = serializers.CharField(max_length=2000, default="requested over the API", help_text="For the audit log.")

    def get_fields(self) -> Any:
        fields = super().get_fields()
        fields["command"] = serializers.ChoiceField(sorted(job_actions()))
        return fields


class EnqueuedJob(serializers.Serializer):
    command = serializers.CharField()
    enqueued = serializers.BooleanField(help_text="False where the same is queued already or a run is under way.")
    detail = serializers.CharField()


class Jobs(GenericAPIView):
    """Enqueues a command (operators only), as the dashboard does. Its run appears among the `runs`."""

    authentication_classes = (OperatorTokenAuthentication, SessionAuthentication)
    permission_classes = (HasOperatorScope,)
    content_negotiation_class = JsonOnlyNegotiation
    parser_classes = (JSONParser,)
    serializer_class = EnqueuedJob
    pagination_class = None
    filter_backends = ()
    queryset = Run.objects.none()
    scope = OperatorToken.Scope.JOBS

    @extend_schema(
        request=RequestedJob,
        responses={
            202: OpenApiResponse(EnqueuedJob, "A worker runs it as soon as one is free, or runs it already."),
            **OPERATOR_RESPONSES,
        },
    )
    def post(self, request: Request) -> Response:
        check_parameters(request, ())
        requested = RequestedJob(data=request.data)
        requested.is_valid(raise_exception=True)
        command, reason = requested.validated_data["command"], requested.validated_data["reason"] + token_note(request)
        action, by = job_actions()[command], request.user.get_username()
        result = perform_action(action, {}, at=clock.now(), by=by, reason=reason)
        body = {"command": command, "enqueued": result.changed, "detail": result.message}
        return Response(body, status=HTTPStatus.ACCEPTED)
