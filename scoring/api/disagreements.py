"""Disagreements of the models with the market."""

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.rest.filters import past_instant
from foundation.rest.viewsets import extend_schema, query_parameter
from scoring.api.base import ARM, AS_OF, ComputedListViewSet, NumberField, selected_arm, selected_name
from scoring.selectors.competition import competition_index
from scoring.selectors.market_disagreements import MarketRecord


class MarketDisagreementSerializer(serializers.Serializer):
    """The option of a question, and the day, on which a model and the market's price are furthest apart."""

    question = serializers.IntegerField(help_text="The question's id.")
    family = serializers.CharField(help_text="The model's slug.")
    category = serializers.CharField(help_text="The question's.")
    day = serializers.DateTimeField(help_text="The day on which it was asked.")
    option = serializers.CharField(help_text="The option's name.")
    probability = serializers.FloatField(help_text="The model's.")
    ensemble = NumberField(help_text="The mean of the models' probabilities; null for a resolved question.")
    price = serializers.FloatField(help_text="The market's, brought to a sum of 1 where options are exclusive.")
    gap = serializers.FloatField(help_text="The width of the difference.")
    kind_questions = serializers.IntegerField(
        source="kind.questions",
        default=None,
        allow_null=True,
        help_text="Resolved questions of the category on which the model differed as much; null where there is none.",
    )
    kind_model = serializers.IntegerField(
        source="kind.model", default=None, allow_null=True, help_text="On how many the model's Brier score was lower."
    )
    kind_market = serializers.IntegerField(
        source="kind.market", default=None, allow_null=True, help_text="On how many the market's was lower."
    )
    happened = serializers.BooleanField(allow_null=True, help_text="Whether the option happened; null without outcome.")
    forecasts = serializers.IntegerField(allow_null=True, help_text="Days behind the scores.")
    brier = NumberField(help_text="The model's mean Brier score on the question.")
    market_brier = NumberField(help_text="The market's on the same days.")
    lead = NumberField(help_text="The market's less the model's.")


class MarketDisagreementViewSet(ComputedListViewSet):
    """Questions without an outcome by their widest disagreement; of resolved ones the largest wins and losses.

    Without `family`, a question has the model that is furthest from the market, or of the largest win or loss.
    Resolved ones are sorted by the lead.
    """

    serializer_class = MarketDisagreementSerializer

    @extend_schema(
        parameters=[
            ARM,
            AS_OF,
            query_parameter("family", "A family's slug. Default: all."),
            query_parameter(
                "resolved", "true for the largest wins and losses. Default: false.", enum=("false", "true")
            ),
        ],
        filters=False,
    )
    def list(self, request: Request) -> Response:
        self.check_parameters("arm", "as_of", "family", "resolved")
        families = [family.slug for family in competition_index().families.values()]
        family = selected_name(request, "family", ["", *families], "")
        record = MarketRecord(selected_arm(request), family, past_instant(request, "as_of"))
        is_resolved = selected_name(request, "resolved", ("false", "true"), "false") == "true"
        return self.page([*record.wins, *reversed(record.losses)] if is_resolved else record.unresolved)
