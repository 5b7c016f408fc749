"""Consistency of forecasts: the profit of risk-free portfolios against each model's stated probabilities."""

from rest_framework import serializers

from scoring.api.base import IntervalField, NumberField
from scoring.api.report_parts import ReportPartSerializer, ReportPartView


class CheckSerializer(serializers.Serializer):
    """The relations of one kind between a model's stated probabilities."""

    checks = serializers.IntegerField(help_text="Relations of this kind that could be checked.")
    violations = serializers.IntegerField(help_text="Those that leave a profit.")
    profit = NumberField(help_text="Mean profit of a check, in dollars; null without one.")


class ChecksSerializer(serializers.Serializer):
    """The relations by kind."""

    sums = CheckSerializer(help_text="Exclusive and complete options: |sum − 1|.")
    exclusions = CheckSerializer(help_text="Markets of which at most one happens: max(0, sum − 1).")
    repeats = CheckSerializer(help_text="One market in two questions of a day, or one question at two venues: |p − q|.")
    thresholds = CheckSerializer(help_text="Neighbouring thresholds: max(0, narrower − wider).")


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
    interval = IntervalField(help_text="95 %, events resampled; null below four events with a profit.")
    models = serializers.IntegerField(help_text="Models with forecasts and scores.")
    events = serializers.IntegerField(help_text="Events of resolved questions.")


class ConsistencySerializer(ReportPartSerializer):
    rows = ModelConsistencySerializer(many=True, help_text="By model, the most consistent first.")
    spearman = SpearmanSerializer(allow_null=True, help_text="Null before the first board.")


class ConsistencyView(ReportPartView):
    """The consistency of each model's forecasts in one condition, before their questions resolve."""

    part, serializer_class = "consistency", ConsistencySerializer
