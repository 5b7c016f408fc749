"""Calibration of forecasts and of trades."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from cohorts.models import Methodology
from markets.foundation.rest import JsonOnlyNegotiation, ReadOnlySchema, check_parameters, query_parameter
from markets.models import Market
from markets.prompt_conditions import BLIND, PRICED
from scoring.calibration import calibration
from scoring.constants import ALL_METHODOLOGIES
from scoring.models import Leaderboard

ARMS = (PRICED, BLIND)
EXAMPLE_BIN = {
    "from": 0.6, "to": 0.7, "forecast": 0.64, "outcome": 0.5, "low": 0.27, "high": 0.73, "weight": 0.4, "pairs": 12
}  # fmt: skip
EXAMPLE_FORECASTER = {
    "forecaster": "gpt-5.1", "family": "gpt-5.1", "display_name": "GPT-5.2", "pairs": 30, "ece": 0.081,
    "ece_noise_floor": 0.112, "brier": 0.2031, "reliability": 0.0214, "resolution": 0.0672, "uncertainty": 0.2496,
    "within_bin_variance": 0.0011, "within_bin_covariance": 0.0018, "bins": [EXAMPLE_BIN],
}  # fmt: skip
EXAMPLE = {
    "arm": "priced",
    "methodology": None,
    "category": None,
    "forecasts": {"computed_at": "2026-04-05T04:00:00Z", "forecasters": [EXAMPLE_FORECASTER]},
    "trades": {"computed_at": "2026-04-05T04:00:00Z", "forecasters": []},
    "stakes": [
        {
            "family": "gpt-5.1", "bets": 2, "stated": 0.62, "confidence": 0.41, "over_betting": -0.21,
            "over_betting_ci": None, "spearman": 1.0, "stated_brier": 0.1444, "bet_brier": 0.3481,
            "points": [[0.62, 0.41, True], [0.62, 0.41, None]],
        }
    ],
}  # fmt: skip
POINT = {
    "type": "array",
    "prefixItems": [{"type": "number"}, {"type": "number"}, {"type": ["boolean", "null"]}],
    "minItems": 3,
    "maxItems": 3,
}


def _number(**options: Any) -> serializers.FloatField:
    return serializers.FloatField(allow_null=True, **options)


def _bin() -> Any:
    share = {name: serializers.FloatField() for name in ("from", "to", "forecast", "outcome", "low", "high")}
    return inline_serializer(
        "ReliabilityBin",
        {
            **share,
            "weight": serializers.FloatField(help_text="Its share of all pairs, each weighted by its question."),
            "pairs": serializers.IntegerField(),
        },
        many=True,
    )


class ForecasterCalibrationSerializer(serializers.Serializer):
    """A forecaster's reliability: stated probability and observed frequency in ten bins."""

    forecaster = serializers.CharField(help_text="A family's slug, or the name of a reference.")
    family = serializers.CharField(source="family.slug", default=None, allow_null=True)
    display_name = serializers.CharField()
    pairs = serializers.IntegerField(help_text="Probabilities of options, or bets.")
    ece = _number(help_text="Expected calibration error over the bins.")
    ece_noise_floor = _number(help_text="ECE that chance alone gives a calibrated forecaster.")
    brier = _number(help_text="Reliability - resolution + uncertainty + variance in bins - covariance in bins.")
    reliability = _number(source="parts.reliability")
    resolution = _number(source="parts.resolution")
    uncertainty = _number(source="parts.uncertainty")
    within_bin_variance = _number(source="parts.within_bin_variance")
    within_bin_covariance = _number(source="parts.within_bin_covariance")
    bins = _bin()


class ProtocolCalibrationSerializer(serializers.Serializer):
    """The calibration of all forecasters in one protocol."""

    computed_at = serializers.DateTimeField(allow_null=True, help_text="Time of its leaderboard, if there is one.")
    forecasters = ForecasterCalibrationSerializer(many=True)


class StakesSerializer(serializers.Serializer):
    """A family's bets beside its forecasts, where the same release made both at the same frozen prices."""

    family = serializers.CharField(source="family.slug")
    bets = serializers.IntegerField(source="figures.bets")
    stated = _number(source="figures.stated", help_text="Mean stated probability of the side bought.")
    confidence = _number(source="figures.confidence", help_text="Mean implied confidence.")
    over_betting = _number(source="figures.over_betting", help_text="`confidence` less `stated`.")
    over_betting_ci = serializers.ListField(
        source="figures.over_betting_ci", child=serializers.FloatField(), min_length=2, max_length=2, allow_null=True
    )
    spearman = _number(source="figures.spearman")
    stated_brier = _number(source="figures.stated_brier", help_text="Of the stated probabilities, on resolved bets.")
    bet_brier = _number(source="figures.bet_brier", help_text="Of the implied confidence, on resolved bets.")
    points = serializers.SerializerMethodField(
        help_text="The newest bets: [stated probability, implied confidence, whether the side won]."
    )

    @extend_schema_field({"type": "array", "items": POINT})
    def get_points(self, stakes: Any) -> Any:
        return stakes.points


class CalibrationSerializer(serializers.Serializer):
    arm = serializers.ChoiceField(choices=ARMS)
    methodology = serializers.CharField(allow_null=True, help_text="Null: over all.")
    category = serializers.CharField(allow_null=True, help_text="Category of the forecasts; null: over all.")
    forecasts = ProtocolCalibrationSerializer()
    trades = ProtocolCalibrationSerializer(
        help_text="Calibration of the implied confidence; `market` is that of the prices paid for the same bets."
    )
    stakes = StakesSerializer(many=True)


class CalibrationView(GenericAPIView):
    """Calibration of the forecasts of one arm, and of trades.

    For each forecaster: bins with Wilson intervals, the calibration error, the components of its Brier score, and its
    bets beside its forecasts.
    """

    detail = False
    queryset = Leaderboard.objects.all()
    serializer_class = CalibrationSerializer
    content_negotiation_class = JsonOnlyNegotiation
    pagination_class = None
    filter_backends = ()
    schema = ReadOnlySchema()

    @extend_schema(
        parameters=[
            query_parameter("arm", f"Arm of the forecasts. Default: {PRICED}.", enum=ARMS),
            query_parameter("methodology", "A version. Default: over all versions."),
            query_parameter("category", "Forecasts on questions of this category only; trades stay over all."),
        ],
        examples=[OpenApiExample("One forecaster", EXAMPLE, response_only=True)],
    )
    def get(self, request: Request) -> Response:
        check_parameters(request, {"arm", "methodology", "category"})
        arm = request.query_params.get("arm", PRICED)
        methodology = request.query_params.get("methodology", ALL_METHODOLOGIES)
        category = request.query_params.get("category", "")
        if arm not in ARMS:
            raise ValidationError({"arm": [f"{arm} is unknown; known are {', '.join(ARMS)}"]})
        if methodology and not Methodology.objects.filter(version=methodology).exists():
            raise ValidationError({"methodology": [f"no methodology has the version {methodology}"]})
        if category and not Market.objects.filter(category=category).exists():
            raise ValidationError({"category": [f"no market has the category {category}"]})
        result = calibration(arm, methodology, category)
        selection = {"arm": arm, "methodology": methodology or None, "category": category or None}
        body = selection | {name: getattr(result, name) for name in ("forecasts", "trades", "stakes")}
        return Response(self.get_serializer(body).data)
