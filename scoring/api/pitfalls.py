"""Pitfalls of evaluating forecasters, with what the arena does and a figure of its data."""

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.rest.filters import check_parameters
from scoring.api.base import ComputedView
from scoring.selectors.pitfalls import GUARDED, PARTLY, UNGUARDED, pitfalls


class PitfallSerializer(serializers.Serializer):
    """A pitfall with what the arena does about it, and a figure of its own data."""

    name = serializers.CharField(help_text="The pitfall.")
    guard = serializers.ChoiceField((GUARDED, PARTLY, UNGUARDED), help_text="Does the arena guard against it?")
    problem = serializers.CharField(help_text="What it does to an evaluation.")
    answer = serializers.CharField(help_text="What the arena does, and what it does not.")
    figure = serializers.CharField(help_text="A figure of the arena's own data, now.")
    code = serializers.CharField(help_text="The file of the code that does it.")
    table = serializers.CharField(help_text="The tables of archives from which the figure follows.")


class PitfallsSerializer(serializers.Serializer):
    """All pitfalls."""

    pitfalls = PitfallSerializer(many=True, help_text="In the order of the paper.")


class PitfallsView(ComputedView):
    """The pitfalls of such evaluations one by one."""

    serializer_class = PitfallsSerializer

    def get(self, request: Request) -> Response:
        check_parameters(request, ())
        return Response(self.get_serializer({"pitfalls": pitfalls()}).data)
