"""Consistency of forecasts: the profit of risk-free portfolios against each model's stated probabilities."""

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.rest.filters import check_parameters, past_instant
from foundation.rest.viewsets import extend_schema
from scoring.api.base import ARM, AS_OF, ComputedView, IntervalField, NumberField, selected_arm
from scoring.consistency import consistency


class CheckSerializer(serializers.Serializer):
    """The relations of one kind between a model's stated probabilities."""

    checks = serializers.IntegerField(help_text="Relations of this kind that could be checked.")
    violations = serializers.IntegerField(help_text="Those that leave a profit.")
    profit = NumberField(help_text="Mean profit of a check, in dollars; null without one.")


class ChecksSerializer(serializers.Serializer):
    """The relations by kind."""

    sum = CheckSerializer(help_text="Exclusive and complete options: |sum − 1|.")
    most = CheckSerializer(help_text="Markets of which at most one happens: max(0, sum − 1).")
    same = CheckSerializer(help_text="One market in two questions of a day: |p − q|.")
    nested = CheckSerializer(help_text="Neighbouring thresholds: max(0, narrower − wider).")
    venues = CheckSerializer(help_text="One question at two venues.")


class ModelConsistencySerializer(serializers.Serializer):
    """A model's forecasts in one condition, resolved or not."""

    family = serializers.CharField()
    forecasts = serializers.IntegerField(help_text="Forecasts that count, resolved or not.")
    days = serializers.IntegerField(help_text="Days on which it forecast.")
    events = serializers.IntegerField(help_text="Events of these questions.")
    profit = serializers.FloatField(
        help_text="Mean profit per question of the best risk-free portfolio with at most one contract of each option, "
        "in dollars, at most 1."
    )
    profit_ci = IntervalField(help_text="95 % interval over events; null below four.")
    checks = ChecksSerializer(help_text="The relations between stated probabilities, by kind.")


class SpearmanSerializer(serializers.Serializer):
    """The rank correlation of profit and Brier score over the models: above 0 consistent models forecast better."""

    value = NumberField(help_text="From -1 to 1; null for fewer than four models.")
    interval = IntervalField(help_text="95 %, events resampled; null below four events.")
    models = serializers.IntegerField(help_text="Models with forecasts and scores.")
    events = serializers.IntegerField(help_text="Events of resolved questions.")


class ConsistencySerializer(serializers.Serializer):
    """The consistency of all models in one prompt condition."""

    arm = serializers.CharField(help_text="The prompt condition.")
    computed_at = serializers.DateTimeField(allow_null=True, help_text="Time of its leaderboard, if there is one.")
    forecasters = ModelConsistencySerializer(many=True, help_text="The most consistent first.")
    spearman = SpearmanSerializer(allow_null=True, help_text="Null before the first board.")


class ConsistencyView(ComputedView):
    """The consistency of each model's forecasts in one condition, before their questions resolve."""

    serializer_class = ConsistencySerializer

    @extend_schema(parameters=[ARM, AS_OF])
    def get(self, request: Request) -> Response:
        check_parameters(request, {"arm", "as_of"})
        figures = consistency(arm=selected_arm(request), at=past_instant(request, "as_of"))
        body = {
            "arm": figures.arm,
            "computed_at": figures.at,
            "forecasters": figures.forecasters,
            "spearman": figures.spearman or None,
        }
        return Response(self.get_serializer(body).data)
