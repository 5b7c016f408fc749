"""Calibration of forecasts and of trades."""

from drf_spectacular.utils import extend_schema_field, inline_serializer
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
    selected_arm,
    selected_category,
    selected_methodology,
)
from scoring.selectors.calibration import calibration

STAKE_SCHEMA = {
    "type": "array",
    "prefixItems": [{"type": "number"}, {"type": "number"}, {"type": ["boolean", "null"]}],
    "minItems": 3,
    "maxItems": 3,
}


@extend_schema_field({"type": "array", "items": STAKE_SCHEMA})
class StakePointsField(serializers.ListField):
    """Points of a chart of stakes."""


class ForecasterCalibrationSerializer(serializers.Serializer):
    """A forecaster's reliability: stated probability and observed frequency in ten bins."""

    forecaster = serializers.CharField(help_text="A family's slug, or the name of a reference.")
    family = serializers.CharField(source="family.slug", default=None, allow_null=True)
    display_name = serializers.CharField()
    pairs = serializers.IntegerField(help_text="Probabilities of options, or bets.")
    ece = NumberField(help_text="Expected calibration error over the bins.")
    ece_noise_floor = NumberField(help_text="ECE that chance alone gives a calibrated forecaster.")
    brier = NumberField(help_text="Reliability - resolution + uncertainty + variance in bins - covariance in bins.")
    reliability = NumberField(source="parts.reliability")
    resolution = NumberField(source="parts.resolution")
    uncertainty = NumberField(source="parts.uncertainty")
    within_bin_variance = NumberField(source="parts.within_bin_variance")
    within_bin_covariance = NumberField(source="parts.within_bin_covariance")
    bins = inline_serializer(
        "ReliabilityBin",
        {
            **{name: serializers.FloatField() for name in ("from", "to", "forecast", "outcome", "low", "high")},
            "weight": serializers.FloatField(help_text="Its share of all pairs, each weighted by its question."),
            "pairs": serializers.IntegerField(),
        },
        many=True,
    )


class ProtocolCalibrationSerializer(serializers.Serializer):
    """The calibration of all forecasters in one protocol."""

    computed_at = serializers.DateTimeField(
        source="leaderboard.computed_at", allow_null=True, help_text="Time of its leaderboard, if there is one."
    )
    forecasters = ForecasterCalibrationSerializer(many=True)


class StakesSerializer(serializers.Serializer):
    """A family's bets beside its forecasts, where the same release made both at the same frozen prices."""

    family = serializers.CharField(source="family.slug")
    bets = serializers.IntegerField(source="figures.bets")
    stated = NumberField(source="figures.stated", help_text="Mean stated probability of the side bought.")
    confidence = NumberField(source="figures.confidence", help_text="Mean implied confidence.")
    over_betting = NumberField(source="figures.over_betting", help_text="`confidence` less `stated`.")
    over_betting_ci = IntervalField(source="figures.over_betting_ci")
    stake = NumberField(
        source="figures.stake", required=False, help_text="Mean stake as a share of the cash before it."
    )
    kelly_stake = NumberField(
        source="figures.kelly_stake",
        required=False,
        help_text="Mean stake of Kelly’s rule at the stated probability and the price paid, as a share of cash:"
        " 0 without an edge, at most the largest legal bet.",
    )
    over_kelly = NumberField(source="figures.over_kelly", required=False, help_text="`stake` less `kelly_stake`.")
    over_kelly_ci = IntervalField(source="figures.over_kelly_ci", required=False)
    spearman = NumberField(source="figures.spearman")
    stated_brier = NumberField(
        source="figures.stated_brier", help_text="Brier score of the stated probabilities, on resolved bets."
    )
    bet_brier = NumberField(
        source="figures.bet_brier", help_text="Brier score of the implied confidence, on resolved bets."
    )
    points = StakePointsField(
        read_only=True, help_text="The newest bets: [stated probability, implied confidence, whether the side won]."
    )


class CalibrationSerializer(serializers.Serializer):
    arm = serializers.CharField()
    methodology = serializers.CharField(allow_null=True, help_text="Null: over all.")
    category = serializers.CharField(allow_null=True, help_text="Category of the forecasts; null: over all.")
    forecasts = ProtocolCalibrationSerializer()
    trades = ProtocolCalibrationSerializer(
        help_text="Calibration of the implied confidence; `market` is that of the prices paid for the same bets."
    )
    stakes = StakesSerializer(many=True)


class CalibrationView(ComputedView):
    """Calibration of the forecasts of one arm, and of trades.

    For each forecaster: bins with Wilson intervals, the calibration error, the components of its Brier score, and its
    bets beside its forecasts.
    """

    serializer_class = CalibrationSerializer

    @extend_schema(
        parameters=[
            ARM,
            query_parameter("methodology", "A version. Default: over all versions."),
            query_parameter("category", "Forecasts on questions of this category only; trades stay over all."),
        ]
    )
    def get(self, request: Request) -> Response:
        check_parameters(request, {"arm", "methodology", "category"})
        methodology, category = selected_methodology(request), selected_category(request)
        arm = selected_arm(request, methodology)
        result = calibration(arm, methodology, category)
        selection = {"arm": arm, "methodology": methodology or None, "category": category or None}
        body = selection | {name: getattr(result, name) for name in ("forecasts", "trades", "stakes")}
        return Response(self.get_serializer(body).data)
