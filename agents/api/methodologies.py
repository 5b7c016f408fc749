"""REST view of methodology versions, with the conditions of their forecasts as they are asked now."""

from functools import cached_property
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.services.conditions import configured_sources
from agents.services.run_settings import paused_conditions
from cohorts import api
from cohorts.models import Methodology


class ConditionSerializer(serializers.Serializer):
    """A condition: one way to put the questions to a model."""

    name = serializers.CharField(help_text="Its name, the `arm` of forecasts.")
    blocks = serializers.ListField(child=serializers.CharField(), help_text="What prompts show of a question.")
    tools = serializers.DictField(
        allow_null=True, help_text="Null without a tool, else its engine, max_uses, max_results and excluded_domains."
    )
    samples = serializers.IntegerField(help_text="Calls for each batch of questions.")
    temperature = serializers.FloatField(allow_null=True, help_text="Null: the methodology's.")
    on = serializers.BooleanField(help_text="Asked now: on, or its sources are configured, and not paused.")


class MethodologySerializer(api.MethodologyRulesSerializer):
    conditions = serializers.SerializerMethodField(help_text="Of the forecasts; empty without a forecast protocol.")
    board_condition = serializers.SerializerMethodField(
        help_text="The condition whose row stands for a model on the boards; null without a forecast protocol."
    )

    class Meta(api.MethodologyRulesSerializer.Meta):
        fields = (*api.MethodologyRulesSerializer.Meta.fields, "conditions", "board_condition")

    @cached_property
    def paused(self) -> set[str]:
        """The paused conditions, read once for all rows."""
        return paused_conditions()

    @extend_schema_field(ConditionSerializer(many=True))
    def get_conditions(self, methodology: Methodology) -> list[dict[str, Any]]:
        rules, paused = methodology.forecast_rules, self.paused
        conditions = []
        for condition in rules.conditions if rules else ():
            is_on = condition.is_on(configured_sources()) and condition.name not in paused
            conditions.append(condition.model_dump(mode="json") | {"on": is_on})
        return conditions

    def get_board_condition(self, methodology: Methodology) -> str | None:
        rules = methodology.forecast_rules
        return rules.board if rules else None


class MethodologyViewSet(api.MethodologyRulesViewSet):
    """Methodology versions: everything that a result depends on, and which conditions are asked now."""

    serializer_class = MethodologySerializer
