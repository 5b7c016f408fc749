"""Comparisons of two families, and of the conditions of one."""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from agents.models import Family
from foundation.rest.filters import check_parameters
from foundation.rest.serializers import MoneyStringField
from foundation.rest.viewsets import extend_schema, query_parameter
from scoring.api.base import ComputedListViewSet, ComputedView, NumberField, ReportSerializer, selected_name
from scoring.api.forecasts import ForecastLeaderboardEntrySerializer
from scoring.api.leaderboards import LeaderboardEntrySerializer
from scoring.reports.forecasts import CONDITION_COLUMNS
from scoring.selectors.comparison import comparison
from scoring.selectors.competition import competition_index, last_competition_index
from scoring.selectors.condition_differences import ConditionDifference, condition_figures


class PairedTestSerializer(serializers.Serializer):
    se = NumberField()
    freedom = NumberField(help_text="Degrees of freedom: the effective number of events or weeks.")
    p = NumberField(help_text="Two-sided.")
    p_holm = NumberField(help_text="Corrected for all pairs of families.")
    margin = NumberField(
        help_text="Half the 95 % interval of the difference, corrected as p_holm is: 0 is outside where p_holm < 0.05."
        " Null of too little data for a claim: fewer than 10 events or 6 cohorts, or 3 degrees of freedom."
    )
    pairs = serializers.IntegerField(help_text="Pairs that p is corrected for.")


class ReturnTestSerializer(PairedTestSerializer):
    """The paired test of the two returns over the cohorts that both played, with calendar weeks as clusters (CR3)."""

    cohorts = serializers.IntegerField()
    weeks = serializers.IntegerField(help_text="Calendar weeks of these cohorts.")
    difference = serializers.FloatField(help_text="The first's mean return less the second's, in percentage points.")
    cohorts_more = NumberField(help_text="Cohorts still needed to find a true difference of 5 points.")


class SharedCohortSerializer(serializers.Serializer):
    """The two returns in a cohort that both played."""

    cohort = serializers.IntegerField(source="cohort.number")
    first_return = serializers.FloatField(help_text="In percent.")
    second_return = serializers.FloatField()


class TradingComparisonSerializer(serializers.Serializer):
    """The two families in the trading protocol."""

    first = LeaderboardEntrySerializer(allow_null=True)
    second = LeaderboardEntrySerializer(allow_null=True)
    first_ahead = serializers.IntegerField(help_text="Cohorts in which the first had the higher return.")
    second_ahead = serializers.IntegerField()
    test = ReturnTestSerializer(allow_null=True, help_text="Null where they have no common cohort.")
    cohorts = SharedCohortSerializer(many=True)


class BrierTestSerializer(PairedTestSerializer):
    """The paired test of the two Brier scores on common forecasts, clustered by event."""

    n = serializers.IntegerField(help_text="Questions that both forecast on the same day.")
    events = serializers.IntegerField()
    difference = NumberField(help_text="The first's Brier score less the second's.")
    questions_more = NumberField(
        help_text="Questions still needed to find a true difference of 0.01, at the level corrected as p_holm is."
    )


class ForecastComparisonSerializer(serializers.Serializer):
    """The two families in one arm of the forecast protocol."""

    arm = serializers.CharField()
    first = ForecastLeaderboardEntrySerializer(allow_null=True)
    second = ForecastLeaderboardEntrySerializer(allow_null=True)
    test = BrierTestSerializer(allow_null=True, help_text="Null where the two have no common forecasts.")


class PositionDisagreementSerializer(serializers.Serializer):
    market = serializers.IntegerField(source="market.pk")
    first_side = serializers.CharField(help_text="The side with the larger stake of the first family.")
    first_amount = MoneyStringField()
    second_side = serializers.CharField()
    second_amount = MoneyStringField()
    winner = serializers.CharField(allow_null=True)


class PositionDisagreementsSerializer(serializers.Serializer):
    """Markets on which the larger stakes of the two families are on different sides."""

    markets = serializers.IntegerField(help_text="Number of such markets.")
    largest = PositionDisagreementSerializer(many=True, help_text="The markets with the largest stakes.")


class DisagreementSerializer(serializers.Serializer):
    question = serializers.IntegerField(source="question.pk")
    day = serializers.DateTimeField()
    option = serializers.CharField()
    first = serializers.FloatField()
    second = serializers.FloatField()
    price = NumberField(help_text="The market's price when both were asked.")
    happened = serializers.BooleanField(allow_null=True)
    cancelled = serializers.BooleanField(help_text="True if the question, or the option's own market, was cancelled.")


class ComparisonSerializer(serializers.Serializer):
    first = serializers.CharField(source="first.slug")
    second = serializers.CharField(source="second.slug")
    trades = TradingComparisonSerializer()
    forecasts = ForecastComparisonSerializer(many=True, help_text="By arm; an arm without a leaderboard is left out.")
    position_disagreements = PositionDisagreementsSerializer()
    disagreements = DisagreementSerializer(
        many=True,
        help_text="The widest differences of forecasts in the arm of the boards and the newest question sets.",
    )


class ComparisonView(ComputedView):
    """Two families: their leaderboard entries, paired tests, and their largest disagreements.

    A difference is the first family's figure less the second's.
    """

    detail = True
    queryset = Family.objects.all()
    serializer_class = ComparisonSerializer

    @extend_schema(
        parameters=[
            OpenApiParameter(name, OpenApiTypes.STR, OpenApiParameter.PATH, description="A family's slug.")
            for name in ("first", "second")
        ]
    )
    def get(self, request: Request, first: str, second: str) -> Response:
        check_parameters(request, ())
        if first == second:
            raise NotFound("a family can not be compared with itself")
        index = competition_index()
        families = index.by_slug
        for slug in (first, second):
            if slug not in families:
                raise NotFound(f"there is no family {slug}")
        return Response(self.get_serializer(comparison(families[first], families[second], index)).data)


class ConditionDifferenceSerializer(ReportSerializer):
    """The Brier scores of a model under two conditions, on the questions that it answered under both."""

    columns = CONDITION_COLUMNS
    sentence = serializers.SerializerMethodField(help_text="The difference in words.")

    def get_sentence(self, row: ConditionDifference) -> str:
        competition = last_competition_index()
        return row.sentence(competition.by_slug[row.family].display_name, competition.conditions)


class ConditionDifferenceViewSet(ComputedListViewSet):
    """The differences of each model and pair of conditions."""

    serializer_class = ConditionDifferenceSerializer

    @extend_schema(parameters=[query_parameter("family", "A family's slug. Default: all.")], filters=False)
    def list(self, request: Request) -> Response:
        self.check_parameters("family")
        slugs = competition_index().by_slug if "family" in request.query_params else ()
        family = selected_name(request, "family", ["", *slugs], "")
        differences = condition_figures().differences
        return self.page([row for row in differences if family in ("", row.family)])
