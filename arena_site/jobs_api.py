"""The jobs endpoint: the dashboard's job actions, for operators' programs."""

from http import HTTPStatus
from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.generics import GenericAPIView
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response

from arena_site.dashboard.actions import ACTIONS
from arena_site.dashboard.actions.runs import EnqueueJob
from arena_site.dashboard.audit import perform_action
from arena_site.models import OperatorToken
from arena_site.token_authentication import (
    OPERATOR_RESPONSES,
    HasOperatorScope,
    OperatorTokenAuthentication,
    token_note,
)
from markets.foundation import clock
from markets.foundation.rest import JsonOnlyNegotiation, check_parameters
from markets.models import Run

JOB_ACTIONS = {action.kind: action for action in ACTIONS.values() if isinstance(action, EnqueueJob)}
"""The actions that enqueue a command, by command."""


class RequestedJob(serializers.Serializer):
    command = serializers.ChoiceField(sorted(JOB_ACTIONS))
    reason = serializers.CharField(max_length=2000, default="requested over the API", help_text="For the audit log.")

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and (unknown := sorted(set(data) - set(self.fields))):
            raise serializers.ValidationError({name: ["unknown; known are command, reason"] for name in unknown})
        return super().to_internal_value(data)


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
        action, by = JOB_ACTIONS[command], request.user.get_username()
        result = perform_action(action, {}, at=clock.now(), by=by, reason=reason)
        body = {"command": command, "enqueued": result.changed, "detail": result.message}
        return Response(body, status=HTTPStatus.ACCEPTED)
