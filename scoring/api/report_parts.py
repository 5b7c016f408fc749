"""Scores by the days to the close, and by cost."""

from typing import ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.rest.filters import check_parameters
from foundation.rest.viewsets import extend_schema, query_parameter
from scoring.api.base import (
    ARM,
    ComputedView,
    IntervalField,
    NumberField,
    ReportSerializer,
    selected_arm,
    selected_methodology,
)
from scoring.reports.columns import named
from scoring.reports.forecasts import FORECAST_COLUMNS
from scoring.selectors.forecast_boards import report_part

FORECASTER_NAMES = "forecaster display_name ranked_by n forecasts coverage brier"
TIMED_NAMES = (
    f"{FORECASTER_NAMES} family reference rank rank_low rank_high brier_ci alpha alpha_ci adjusted_brier "
    "adjusted_brier_ci"
)


class ForecasterScoreSerializer(ReportSerializer):
    columns = named(FORECAST_COLUMNS, FORECASTER_NAMES)

    ranked_by = serializers.CharField(help_text="adjusted_brier where the models answered different questions.")


class TimedScoreSerializer(ForecasterScoreSerializer):
    """A forecaster's scores on the forecasts so far ahead; intervals over events, none below four."""

    columns = named(FORECAST_COLUMNS, TIMED_NAMES)


class TimedScoresSerializer(serializers.Serializer):
    """The scores of the forecasts that were asked so far ahead of the market's close."""

    questions = serializers.IntegerField(help_text="Resolved questions.")
    events = serializers.IntegerField(help_text="Their events.")
    entries = TimedScoreSerializer(many=True, help_text="The forecasters by rank.")


class DaysAheadSerializer(TimedScoresSerializer):
    """The scores of the forecasts in a bin of days to the close."""

    days_from = serializers.IntegerField(help_text="Days from the forecast to the market's close.")
    days_to = serializers.IntegerField(allow_null=True, help_text="Below so many days; null without an end.")


class CostRowSerializer(ForecasterScoreSerializer):
    """A model's score, and what the answers behind it took, by question."""

    without_cost = serializers.IntegerField(help_text="Forecasts left out, whose cost the gateway did not state.")
    score = NumberField(help_text="The score that `ranked_by` names.")
    score_ci = IntervalField(help_text="95 %, events resampled; null below four events.")
    cost_usd = serializers.FloatField(help_text="US dollars for an answered question, searches included.")
    search_cost_usd = serializers.FloatField(help_text="The part of it that is of searches.")
    seconds = serializers.FloatField(help_text="Seconds of its calls for an answered question.")
    tokens_input = serializers.FloatField(help_text="Prompt tokens for an answered question.")
    tokens_output = serializers.FloatField(help_text="Answer tokens for an answered question.")
    efficient = serializers.BooleanField(help_text="Does no other model beat it on both score and cost?")


class CostStepSerializer(serializers.Serializer):
    """The way from one model of the frontier to the next better one."""

    cheaper = serializers.CharField(help_text="The cheaper model's family.")
    better = serializers.CharField(help_text="The family of the dearer and better one.")
    extra_usd = serializers.FloatField(help_text="US dollars more for a question.")
    gain = serializers.FloatField(help_text="By how much the score is lower.")
    usd_per_point = serializers.FloatField(help_text="0.01 × `extra_usd` / `gain`.")
    p_holm = NumberField(help_text="Of the paired test of the Brier scores, corrected for all pairs.")
    is_significant = serializers.BooleanField(help_text="Is `p_holm` below 0.05?")


class ReportPartSerializer(serializers.Serializer):
    """A part of the report of a forecast leaderboard."""

    arm = serializers.CharField()
    methodology = serializers.CharField(allow_null=True, help_text="Null: over all.")
    computed_at = serializers.DateTimeField(allow_null=True, help_text="Time of the leaderboard; null without one.")


class TimeReportSerializer(ReportPartSerializer):
    bins = DaysAheadSerializer(many=True, help_text="By days from the forecast to the market's close.")


class CostReportSerializer(ReportPartSerializer):
    events = serializers.IntegerField(help_text="Their events.")
    market = NumberField(help_text="The market's Brier score.")
    rows = CostRowSerializer(many=True, help_text="By model.")
    steps = CostStepSerializer(many=True, help_text="Along the frontier, from the cheapest model on.")


class ReportPartView(ComputedView):
    """A part of the report of a forecast leaderboard over all categories."""

    part: ClassVar[str]

    @extend_schema(parameters=[ARM, query_parameter("methodology", "A version. Default: over all versions.")])
    def get(self, request: Request) -> Response:
        check_parameters(request, {"arm", "methodology"})
        methodology = selected_methodology(request)
        arm = selected_arm(request, methodology)
        figures, computed_at = report_part(self.part, arm=arm, methodology=methodology)
        body = {"arm": arm, "methodology": methodology or None, "computed_at": computed_at, **figures}
        return Response(self.get_serializer(body).data)


class TimeView(ReportPartView):
    """Scores by the days from a forecast to its market's close."""

    part, serializer_class = "time", TimeReportSerializer


class CostsView(ReportPartView):
    """Scores against the gateway's own cost of exactly the calls behind them."""

    part, serializer_class = "costs", CostReportSerializer
