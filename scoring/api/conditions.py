"""The paired differences between conditions of one model."""

from collections.abc import Sequence
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from foundation.rest.filters import check_parameters, past_instant
from foundation.rest.negotiation import FORMAT_PARAMETER
from foundation.rest.pagination import StrictPagination
from foundation.rest.serializers import FIELDS_PARAMETER, field_names, requested_fields, select_fields
from foundation.rest.views import ListView
from foundation.rest.viewsets import extend_schema
from scoring.api.base import AS_OF, IntervalField, NumberField
from scoring.competition import last_competition_index
from scoring.condition_differences import ConditionDifference, read_condition_differences
from scoring.models import Leaderboard


class ConditionDifferenceSerializer(serializers.Serializer):
    """The Brier scores of a model under two conditions, on the questions that it answered under both."""

    family = serializers.CharField()
    condition_a = serializers.CharField(help_text="The name of the one condition.")
    condition_b = serializers.CharField(help_text="The name of the other.")
    n = serializers.IntegerField(help_text="Common questions; one asked on several days counts once.")
    forecasts = serializers.IntegerField(help_text="Common forecasts, on the same question on the same day.")
    events = serializers.IntegerField(help_text="Events of these questions.")
    difference = serializers.FloatField(help_text="The Brier score under A less that under B: below 0 A is better.")
    interval = IntervalField(help_text="95 %, corrected as p_adjusted is.")
    p = NumberField(help_text="Two-sided, events as clusters; null of fewer than two events.")
    p_adjusted = NumberField(help_text="Corrected by Holm for all rows.")
    sentence = serializers.SerializerMethodField(help_text="The difference in words.")

    def get_sentence(self, row: ConditionDifference) -> str:
        competition = last_competition_index()
        return row.sentence(competition.by_slug[row.family].display_name, competition.conditions)


class ConditionDifferenceViewSet(ListView, GenericViewSet):
    """The differences of each model and pair of conditions, now or at a past time."""

    takes_fields = True
    queryset = Leaderboard.objects.all()
    serializer_class = ConditionDifferenceSerializer
    pagination_class: Any = StrictPagination
    filter_backends = ()

    def row_names(self) -> Sequence[str]:
        names = self.requested_names()
        return [name for name in field_names(ConditionDifferenceSerializer) if name in names]

    def requested_names(self) -> frozenset[str]:
        return requested_fields(self.request, ConditionDifferenceSerializer)

    @extend_schema(parameters=[AS_OF], filters=False)
    def list(self, request: Request) -> Response:
        check_parameters(request, {"as_of", FIELDS_PARAMETER, FORMAT_PARAMETER} | StrictPagination.parameters)
        differences = read_condition_differences(at=past_instant(request, "as_of")).rows
        serializer = self.get_serializer(self.paginate_queryset(differences), many=True)
        return self.get_paginated_response(select_fields(serializer, self.requested_names()).data)
