"""The performance endpoint: portfolio values over time."""

from dataclasses import asdict

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.clock import present
from foundation.rest.filters import ID_SCHEMA, check_parameters
from foundation.rest.viewsets import extend_schema, query_parameter
from scoring.api.base import ComputedView, selected_methodology, selected_name
from scoring.selectors.competition import competition_index
from scoring.selectors.performance import RANGES, performance

DEFAULT_RANGE = "ALL"
POINT_SCHEMA = {
    "type": "array",
    "prefixItems": [{"type": "string", "format": "date-time"}, {"type": "string", "format": "decimal"}],
    "minItems": 2,
    "maxItems": 2,
}


@extend_schema_field({"type": "array", "items": POINT_SCHEMA})
class PointsField(serializers.ListField):
    """Pairs of an instant and the family's mean total value then."""


class SeriesSerializer(serializers.Serializer):
    family = serializers.CharField()
    points = PointsField(help_text="[time, mean total value over cohorts in dollars], oldest first.")


class ReleaseChangeSerializer(serializers.Serializer):
    family = serializers.CharField()
    cohort = serializers.IntegerField(help_text="The first cohort of the new model.")
    at = serializers.DateTimeField()
    before = serializers.CharField(help_text="The family's model in its previous cohort.")
    after = serializers.CharField()


class PerformanceSerializer(serializers.Serializer):
    range = serializers.ChoiceField(choices=list(RANGES))
    as_of = serializers.DateTimeField(allow_null=True, help_text="The newest snapshot, where the last bucket ends.")
    bucket_seconds = serializers.IntegerField()
    series = SeriesSerializer(many=True)
    release_changes = ReleaseChangeSerializer(many=True)


class PerformanceView(ComputedView):
    """Mean total value of each family over its cohorts, at the end of each bucket.

    An agent joins its family's mean with its first snapshot, gaps are filled with the last value, and a completed
    cohort keeps its closing value: there is no survivorship bias. A voided cohort counts only where it is named.
    """

    serializer_class = PerformanceSerializer

    @extend_schema(
        parameters=[
            query_parameter("range", f"How far back; default {DEFAULT_RANGE}.", enum=list(RANGES)),
            query_parameter("cohort", "The agents of one cohort, by its number.", kind=ID_SCHEMA),
            query_parameter("family", "One family, by its slug."),
            query_parameter("methodology", "The agents of one version's cohorts, by the version."),
        ]
    )
    def get(self, request: Request) -> Response:
        check_parameters(request, {"range", "cohort", "family", "methodology"})
        name = selected_name(request, "range", RANGES, DEFAULT_RANGE)
        index = competition_index()
        agents = index.counted
        if (number := request.query_params.get("cohort")) is not None:
            digits = number.isascii() and number.isdigit() and len(number) < 10
            if not digits or index.cohort(int(number)) is None:
                raise ValidationError({"cohort": [f"no cohort has the number {number}"]})
            agents = [agent for agent in index.agents if agent.cohort.number == int(number)]
        if (slug := request.query_params.get("family")) is not None:
            if slug not in index.by_slug:
                raise ValidationError({"family": [f"no family has the slug {slug}"]})
            agents = [agent for agent in agents if agent.family.slug == slug]
        if version := selected_methodology(request):
            agents = [agent for agent in agents if agent.cohort.methodology.version == version]
        curves = performance(agents, span=RANGES[name], at=present())
        times = [at.isoformat().replace("+00:00", "Z") for at in curves.instants]  # once, not for each family
        series = []
        for slug, values in curves.families.items():
            points = [[at, str(value)] for at, value in zip(times, values, strict=True) if value is not None]
            series.append({"family": slug, "points": points})
        return Response(
            {
                "range": name,
                "as_of": curves.as_of,
                "bucket_seconds": int(curves.bucket.total_seconds()),
                "series": series,
                "release_changes": list(map(asdict, curves.release_changes)),
            }
        )
