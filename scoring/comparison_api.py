"""Two families beside each other, for readers."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from agents.models import Family
from cohorts.forecasting import BLIND, PRICED
from markets.rest import Documented, JsonAlways, Money, check_parameters
from scoring.api import LeaderboardEntry
from scoring.compared import comparison
from scoring.forecast_api import ForecastBoardEntry
from scoring.roster import roster

EXAMPLE = {
    "first": "gpt-5.1",
    "second": "grok-4",
    "bets": {
        "first": None, "second": None, "first_ahead": 2, "second_ahead": 1,
        "test": {
            "cohorts": 3, "difference": 4.1, "se": 2.6, "p": 0.26, "p_holm": 1.0, "cohorts_more": 5.0, "pairs": 21,
        },
        "cohorts": [{"cohort": 3, "first_return": 6.25, "second_return": -1.5}],
    },
    "words": [
        {
            "arm": "priced", "first": None, "second": None,
            "test": {
                "n": 40, "events": 31, "difference": -0.0123, "se": 0.0101, "p": 0.24, "p_holm": 1.0,
                "questions_more": 85.0, "pairs": 21,
            },
        }
    ],
    "opposed": {
        "markets": 1,
        "most": [
            {
                "market": 1204, "first_side": "YES", "first_amount": "437.38", "second_side": "NO",
                "second_amount": "333.33", "winner": "NO",
            }
        ],
    },
    "disagreements": [
        {
            "question": 88, "day": "2026-03-09T00:00:00Z", "option": "Yes", "first": 0.7, "second": 0.4, "price": 0.41,
            "happened": None,
        }
    ],
}  # fmt: skip


def _number(**options: Any) -> serializers.FloatField:
    return serializers.FloatField(allow_null=True, **options)


class ReturnTestRow(serializers.Serializer):
    """The paired comparison of the returns on the cohorts that both played."""

    cohorts = serializers.IntegerField()
    difference = serializers.FloatField(help_text="The first's mean return less the second's, in percentage points.")
    se = _number()
    p = _number(help_text="Two-sided.")
    p_holm = _number(help_text="Corrected for all pairs of families.")
    cohorts_more = _number(help_text="Cohorts still needed to find a true difference of 5 points.")
    pairs = serializers.IntegerField(help_text="Pairs that p is corrected for.")


class MeetingRow(serializers.Serializer):
    cohort = serializers.IntegerField(source="cohort.number")
    first_return = serializers.FloatField(help_text="In percent.")
    second_return = serializers.FloatField()


class BetsRow(serializers.Serializer):
    first = LeaderboardEntry(source="first_bets", allow_null=True)
    second = LeaderboardEntry(source="second_bets", allow_null=True)
    first_ahead = serializers.IntegerField(help_text="Cohorts in which its return was the higher one.")
    second_ahead = serializers.IntegerField()
    test = ReturnTestRow(allow_null=True, help_text="Null where they have played no cohort together.")
    cohorts = MeetingRow(source="meetings", many=True)


class WordsTestRow(serializers.Serializer):
    """The paired comparison of Brier scores on common forecasts, clustered by event."""

    n = serializers.IntegerField(source="pair.n", help_text="Forecasts on the same question on the same day.")
    events = serializers.IntegerField(source="pair.events")
    difference = _number(source="pair.difference", help_text="The first's Brier score less the second's.")
    se = _number(source="pair.se")
    p = _number(source="pair.p")
    p_holm = _number(source="pair.p_holm")
    questions_more = _number(source="pair.questions_more", help_text="Needed to find a true difference of 0.01.")
    pairs = serializers.IntegerField(help_text="Pairs that p is corrected for.")


class WordsRow(serializers.Serializer):
    arm = serializers.ChoiceField(choices=(PRICED, BLIND))
    first = ForecastBoardEntry(allow_null=True)
    second = ForecastBoardEntry(allow_null=True)
    test = serializers.SerializerMethodField(help_text="Null where the board has no such pair.")

    @extend_schema_field(WordsTestRow(allow_null=True))
    def get_test(self, words: Any) -> Any:
        return WordsTestRow(words).data if words.pair else None


class OpposedRow(serializers.Serializer):
    market = serializers.IntegerField(source="market.pk")
    first_side = serializers.CharField(help_text="The side that it put the most on.")
    first_amount = Money()
    second_side = serializers.CharField()
    second_amount = Money()
    winner = serializers.CharField(allow_null=True)


class AgainstRow(serializers.Serializer):
    markets = serializers.IntegerField(source="against", help_text="On which they put the most on different sides.")
    most = OpposedRow(source="opposed", many=True, help_text="Those with the most at stake.")


class DisagreementRow(serializers.Serializer):
    question = serializers.IntegerField(source="question.pk")
    day = serializers.DateTimeField()
    option = serializers.CharField()
    first = serializers.FloatField()
    second = serializers.FloatField()
    price = _number(help_text="The market's, when both were asked.")
    happened = serializers.BooleanField(allow_null=True)


class ComparisonRow(serializers.Serializer):
    first = serializers.CharField(source="first.slug")
    second = serializers.CharField(source="second.slug")
    bets = BetsRow(source="*")
    words = WordsRow(many=True, help_text="By arm; an arm without a board is left out.")
    opposed = AgainstRow(source="*")
    disagreements = DisagreementRow(
        many=True,
        help_text="The widest in words, shown the prices, in the newest sets of questions; each question once.",
    )


class Comparisons(GenericAPIView):
    """Two families beside each other: their entries on the boards, tests of the difference, and where they disagreed.

    A difference is the first less the second.
    """

    detail = True
    queryset = Family.objects.all()
    serializer_class = ComparisonRow
    content_negotiation_class = JsonAlways
    pagination_class = None
    filter_backends = ()
    schema = Documented()

    @extend_schema(
        parameters=[
            OpenApiParameter(name, OpenApiTypes.STR, OpenApiParameter.PATH, description="A family's slug.")
            for name in ("first", "second")
        ],
        examples=[OpenApiExample("Two families", EXAMPLE, response_only=True)],
    )
    def get(self, request: Request, first: str, second: str) -> Response:
        check_parameters(request, set())
        if first == second:
            raise NotFound("a family differs from itself in nothing")
        known = roster()
        families = known.by_slug
        for slug in (first, second):
            if slug not in families:
                raise NotFound(f"there is no family {slug}")
        return Response(self.get_serializer(comparison(families[first], families[second], known)).data)
