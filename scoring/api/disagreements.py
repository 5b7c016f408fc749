"""Disagreements of the models with the market."""

from dataclasses import replace

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.rest.viewsets import extend_schema, query_parameter
from scoring.api.base import ARM, ComputedListViewSet, selected_arm, selected_name
from scoring.constants import LEAST_COMPARED
from scoring.selectors.competition import competition_index
from scoring.selectors.market_disagreements import closeness, widest_disagreements


class MarketDisagreementSerializer(serializers.Serializer):
    """The option of an open question on which a model and the market's price are furthest apart."""

    question = serializers.IntegerField(help_text="The question's id.")
    family = serializers.CharField(help_text="The model's slug.")
    category = serializers.CharField(help_text="The question's.")
    day = serializers.DateTimeField(help_text="The day on which it was asked.")
    option = serializers.CharField(help_text="The option's name.")
    probability = serializers.FloatField(help_text="The model's.")
    ensemble = serializers.FloatField(help_text="The mean of the models' probabilities.")
    price = serializers.FloatField(help_text="The market's, brought to a sum of 1 where options are exclusive.")
    gap = serializers.FloatField(help_text="The width of the difference.")
    compared = serializers.IntegerField(
        source="closeness.questions",
        default=None,
        allow_null=True,
        help_text=f"Resolved questions of the model with a price; null below {LEAST_COMPARED}.",
    )
    model_closer = serializers.IntegerField(
        source="closeness.model", default=None, allow_null=True, help_text="On how many its mean Brier score was lower."
    )
    market_closer = serializers.IntegerField(
        source="closeness.market", default=None, allow_null=True, help_text="On how many the market's was lower."
    )


class MarketDisagreementViewSet(ComputedListViewSet):
    """Questions without an outcome by their widest disagreement.

    Without `family`, a question has the model that is furthest from the market.
    """

    serializer_class = MarketDisagreementSerializer

    @extend_schema(parameters=[ARM, query_parameter("family", "A family's slug. Default: all.")], filters=False)
    def list(self, request: Request) -> Response:
        self.check_parameters("arm", "family")
        families = [family.slug for family in competition_index().families.values()]
        family = selected_name(request, "family", ["", *families], "")
        arm = selected_arm(request)
        records = closeness(arm)
        rows = [replace(row, closeness=records.get(row.family)) for row in widest_disagreements(arm, family)]
        return self.page(rows)
