"""Values over time, for readers."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from agents.models import Agent
from markets.rest import INSTANT, Documented, JsonAlways, check_parameters, past_instant, query_parameter
from scoring.performance import RANGES, Performance, performance
from scoring.roster import roster

WHOLE = "ALL"
POINT = {
    "type": "array",
    "prefixItems": [{"type": "string", "format": "date-time"}, {"type": "string", "format": "decimal"}],
    "minItems": 2,
    "maxItems": 2,
}


@extend_schema_field({"type": "array", "items": POINT})
class Points(serializers.ListField):
    """Pairs of an instant and the family's mean total value then."""


class SeriesRow(serializers.Serializer):
    family = serializers.CharField()
    points = Points(help_text="[time, mean total value over cohorts in dollars], oldest first.")


class ReleaseChangeRow(serializers.Serializer):
    family = serializers.CharField()
    cohort = serializers.IntegerField(help_text="The first that the new model plays in.")
    at = serializers.DateTimeField()
    before = serializers.CharField(help_text="The model behind the family in its cohort before.")
    after = serializers.CharField()


class PerformanceRow(serializers.Serializer):
    range = serializers.ChoiceField(choices=list(RANGES))
    as_of = serializers.DateTimeField(allow_null=True, help_text="The newest snapshot, where the last bucket ends.")
    bucket_seconds = serializers.IntegerField()
    series = SeriesRow(many=True)
    release_changes = ReleaseChangeRow(many=True)


class Performances(GenericAPIView):
    """What families were worth over time: the mean over their cohorts, at the end of each bucket.

    An agent joins its family's mean with its first snapshot, a gap holds the last value, and a completed cohort keeps
    its closing value for ever: no curve is of the survivors alone.
    """

    detail = False
    # Nothing is filtered by the framework: a curve is no list of these.
    queryset = Agent.objects.all()
    serializer_class = PerformanceRow
    content_negotiation_class = JsonAlways
    pagination_class = None
    filter_backends = ()
    schema = Documented()

    @extend_schema(
        parameters=[
            query_parameter("range", f"How far back; default {WHOLE}.", enum=list(RANGES)),
            query_parameter("cohort", "The agents of one cohort, by its number.", kind=int),
            query_parameter("family", "One family, by its slug."),
            query_parameter("methodology", "The agents of one version's cohorts, by the version."),
            query_parameter("as_of", "The curves as they stood then; the range ends there.", kind=INSTANT),
        ]
    )
    def get(self, request: Request) -> Response:
        check_parameters(request, {"range", "cohort", "family", "methodology", "as_of"})
        name = request.query_params.get("range", WHOLE)
        if name not in RANGES:
            raise ValidationError({"range": [f"{name} is unknown; known are {', '.join(RANGES)}"]})
        known = roster()
        agents = known.players
        if (number := request.query_params.get("cohort")) is not None:
            digits = number.isascii() and number.isdigit() and len(number) < 10
            if not digits or known.cohort(int(number)) is None:
                raise ValidationError({"cohort": [f"no cohort has the number {number}"]})
            agents = [agent for agent in agents if agent.cohort.number == int(number)]
        if (slug := request.query_params.get("family")) is not None:
            if slug not in known.by_slug:
                raise ValidationError({"family": [f"no family has the slug {slug}"]})
            agents = [agent for agent in agents if agent.family.slug == slug]
        if (version := request.query_params.get("methodology")) is not None:
            if version not in {methodology.version for methodology in known.methodologies.values()}:
                raise ValidationError({"methodology": [f"no methodology has the version {version}"]})
            agents = [agent for agent in agents if agent.cohort.methodology.version == version]
        at = past_instant(request, "as_of") or timezone.now()
        curves = performance(agents, span=RANGES[name], at=at)
        return Response({"range": name, **_body(curves)})


def _body(curves: Performance) -> dict[str, Any]:
    times = [at.isoformat().replace("+00:00", "Z") for at in curves.instants]  # once, not for each family
    return {
        "as_of": curves.as_of,
        "bucket_seconds": int(curves.bucket.total_seconds()),
        "series": [
            {
                "family": slug,
                "points": [[at, str(value)] for at, value in zip(times, values, strict=True) if value is not None],
            }
            for slug, values in curves.families.items()
        ],
        "release_changes": [
            {"family": c.family, "cohort": c.cohort, "at": c.at, "before": c.before, "after": c.after}
            for c in curves.release_changes
        ],
    }
