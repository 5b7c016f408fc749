"""Having a job done now, over the API: the desk's own acts, for an operator's programs."""

from http import HTTPStatus
from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.generics import GenericAPIView
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response

from arena_site.desk.acts import ACTS
from arena_site.desk.acts.runs import Ring
from arena_site.desk.audit import performed
from arena_site.models import OperatorToken
from arena_site.tokens import ByOperatorToken, Operates, by_which
from markets import clock
from markets.models import Run
from markets.rest import PROBLEM, JsonAlways, check_parameters

RUNG = {act.kind: act for act in ACTS.values() if isinstance(act, Ring)}
"""By command, the acts that have a worker run it."""


class AskedJob(serializers.Serializer):
    command = serializers.ChoiceField(sorted(RUNG))
    reason = serializers.CharField(max_length=2000, default="asked for over the API", help_text="For the audit log.")

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and (unknown := sorted(set(data) - set(self.fields))):
            raise serializers.ValidationError({name: ["unknown; known are command, reason"] for name in unknown})
        return super().to_internal_value(data)


class RungJob(serializers.Serializer):
    command = serializers.CharField()
    rung = serializers.BooleanField(help_text="False where the same waits already, or a run of it is under way.")
    detail = serializers.CharField()


class Jobs(GenericAPIView):
    """Has a worker run a command now (operators alone), as the desk does. Its run appears among the `runs`."""

    authentication_classes = (ByOperatorToken, SessionAuthentication)
    permission_classes = (Operates,)
    content_negotiation_class = JsonAlways
    parser_classes = (JSONParser,)
    serializer_class = RungJob
    pagination_class = None
    filter_backends = ()
    queryset = Run.objects.none()
    scope = OperatorToken.Scope.JOBS

    @extend_schema(
        request=AskedJob,
        responses={
            202: OpenApiResponse(RungJob, "A worker runs it as soon as one is free, or is about it already."),
            400: OpenApiResponse(PROBLEM, "A field at fault, named."),
            401: OpenApiResponse(PROBLEM, "Neither a session nor a token that is known and in force."),
            403: OpenApiResponse(PROBLEM, "Not permitted, or not the token's scope."),
            429: OpenApiResponse(PROBLEM, "Too many requests, or too many wrong tokens of this client."),
            500: OpenApiResponse(PROBLEM, "The server failed."),
        },
    )
    def post(self, request: Request) -> Response:
        check_parameters(request, ())
        asked = AskedJob(data=request.data)
        asked.is_valid(raise_exception=True)
        command, reason = asked.validated_data["command"], asked.validated_data["reason"]
        reason += by_which(request)
        done = performed(RUNG[command], {}, at=clock.now(), by=request.user.get_username(), reason=reason)
        return Response({"command": command, "rung": done.changed, "detail": done.says}, status=HTTPStatus.ACCEPTED)
