"""The REST view of the agent behind a token."""

from typing import cast

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.submissions import TOKEN_PROBLEMS, ExternalAgentView
from agents.models import Decision, Elicitation, Family, Registration
from foundation.rest.filters import check_parameters
from foundation.rest.viewsets import extend_schema


class RegisteredAgentSerializer(serializers.Serializer):
    """An external agent as it is registered."""

    slug = serializers.CharField(help_text="The agent's family, by slug.")
    name = serializers.CharField(help_text="The name on the boards.")
    track = serializers.ChoiceField(Family.Track.choices, help_text="What it may use: closed or open.")
    protocols = serializers.ListField(
        child=serializers.CharField(),
        help_text="`trading`, `forecast` or both.",
    )
    version = serializers.IntegerField(help_text="The newest declared version.")
    version_note = serializers.CharField(help_text="What its maker says about the version.")


class RegisteredAgent(ExternalAgentView):
    """The agent that the token belongs to: its track and version, and the protocols that it plays."""

    serializer_class = RegisteredAgentSerializer

    @extend_schema(responses={200: RegisteredAgentSerializer, **TOKEN_PROBLEMS})
    def get(self, request: Request) -> Response:
        check_parameters(request, set())
        registration = cast(Registration, request.user)
        family = registration.family
        version = family.versions.order_by("-number").first()
        protocols = []
        for protocol in (Decision.PROTOCOL, Elicitation.PROTOCOL):
            if registration.covers(protocol):
                protocols.append(protocol)
        body = {
            "slug": family.slug,
            "name": family.display_name,
            "track": family.track,
            "protocols": protocols,
            "version": version.number if version else 1,
            "version_note": version.note if version else "",
        }
        return Response(RegisteredAgentSerializer(body).data, headers={"Cache-Control": "no-store"})
