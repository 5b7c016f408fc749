"""Forecasts and the boards of the forecast protocol, for readers."""

from typing import Any

from django.db.models import Prefetch, QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, PolymorphicProxySerializer, extend_schema_field
from rest_framework import serializers

from agents.api.tasks import ModelCallSerializer
from agents.models import Family, Forecast, ModelCall
from markets.foundation.rest import (
    KnownChoiceFilter,
    NullableCharField,
    ReadOnlySchema,
    ReadOnlyViewSet,
    ReadSerializer,
    ReferenceFilter,
    StrictCursorPagination,
    StrictFilterSet,
    field_names,
)
from markets.models import Question
from scoring.constants import FORECAST
from scoring.models import ForecastScore, Leaderboard

# --- boards ----------------------------------------------------------------------------------------------


def _number(**options: Any) -> serializers.FloatField:
    return serializers.FloatField(allow_null=True, **options)


def _interval() -> serializers.ListField:
    return serializers.ListField(child=serializers.FloatField(), min_length=2, max_length=2, allow_null=True)


def _by_gamma(help_text: str) -> serializers.DictField:
    return serializers.DictField(
        child=serializers.FloatField(allow_null=True), allow_null=True, help_text=f"{help_text} By risk aversion."
    )


class ForecastBoardEntry(serializers.Serializer):
    """A family or a reference forecaster on a board of the forecast protocol, as it was last computed."""

    forecaster = serializers.CharField(help_text="A family's slug, or the name of a reference.")
    family = serializers.CharField(allow_null=True, help_text="Null for a reference.")
    display_name = serializers.CharField()
    reference = serializers.BooleanField(help_text="market, uniform, ensemble, and two more ways to combine families.")
    external = serializers.BooleanField(help_text="Somebody else's agent, which submits by itself: ranked apart.")
    rank = serializers.IntegerField(
        allow_null=True,
        help_text="By Brier score among the families; a reference's is the place it would take, an external has none.",
    )
    rank_low = serializers.IntegerField(allow_null=True)
    rank_high = serializers.IntegerField(allow_null=True)
    n = serializers.IntegerField(help_text="Resolved questions answered; one asked on several days counts once.")
    forecasts = serializers.IntegerField(help_text="Forecasts on them.")
    coverage = _number(help_text="The share of what was asked and resolved that was answered.")
    brier = _number(help_text="Mean form, (1/n) times the sum over options: long questions score lower.")
    brier_se = _number()
    brier_ci = _interval()
    log = _number(help_text="Mean natural logarithm of the probability of what happened, clipped at 1e-6.")
    spherical = _number()
    accuracy = _number()
    average_return = _by_gamma("Gross, per dollar staked at the asks.")
    average_return_ci = serializers.DictField(child=_interval(), allow_null=True)
    log_wealth = _by_gamma("Of stakes that may keep cash; null where one was ruined.")
    ruins = serializers.DictField(child=serializers.IntegerField(), allow_null=True)
    alpha = _number(help_text="The market's Brier score less the forecaster's, on the same questions.")
    alpha_se = _number()
    alpha_ci = _interval()
    bss_uniform = _number()
    bss_market = _number()
    ece = _number(help_text="Expected calibration error over ten bins.")
    ece_noise_floor = _number()
    weighted_brier = _number(help_text="Weighted by the questions' discrimination.")
    adjusted_brier = _number(help_text="As if everybody had answered every question.")
    adjusted_brier_se = _number()
    irt_ability = _number()
    irt_se = _number()
    bt_ability = _number()
    bt_se = _number()
    pool_weight = _number(help_text="In the linear pool of the families that fits best.")
    cost_usd = serializers.CharField(allow_null=True, help_text="Of all that was asked; null by category.")
    asked = serializers.IntegerField(allow_null=True, help_text="Batches of questions put to it.")
    declined = serializers.IntegerField(allow_null=True, help_text="Batches to which it gave no readable answer.")
    refused = serializers.IntegerField(allow_null=True, help_text="Forecasts stated that broke the rules.")


class OfProtocols(ReadOnlySchema):
    """Schema of an endpoint whose rows are those of the protocol that is asked for, each with its own fields."""

    def rows(self) -> tuple[Any, ...]:
        return (self.view.serializer_class, *self.view.other_serializer_classes)

    def get_override_parameters(self) -> list[OpenApiParameter]:
        *others, only = super().get_override_parameters()
        only.enum = list(dict.fromkeys(name for row in self.rows() for name in field_names(row)))
        return [*others, only]

    def get_response_serializers(self) -> Any:
        rows = PolymorphicProxySerializer("BoardEntry", self.rows(), resource_type_field_name=None)
        return super().get_response_serializers() | {200: rows}


class ForecastBoardRow(ReadSerializer):
    methodology = NullableCharField(help_text="Null: over all.")
    category = NullableCharField(help_text="Null: over all.")

    class Meta:
        model = Leaderboard
        fields: tuple[str, ...] = ("id", "methodology", "arm", "category", "computed_at")


class ForecastBoardDetail(ForecastBoardRow):
    entries = ForecastBoardEntry(many=True, read_only=True)
    report = serializers.SerializerMethodField(
        help_text="What stands beside the ranking: pairs, return curves, reliability, agreement, words against bets."
    )

    class Meta(ForecastBoardRow.Meta):
        fields = (*ForecastBoardRow.Meta.fields, "entries", "report")

    @extend_schema_field(OpenApiTypes.OBJECT)
    def get_report(self, board: Leaderboard) -> Any:
        return board.report


class ForecastBoards(ReadOnlyViewSet):
    """The boards of the forecast protocol; one of them with its entries and all that stands beside them."""

    queryset = Leaderboard.objects.filter(protocol=FORECAST)
    serializer_class = ForecastBoardRow
    detail_serializer_class = ForecastBoardDetail
    filterset_fields = ("methodology", "arm", "category", "computed_at")
    orderings = ("id", "computed_at")

    def get_queryset(self) -> QuerySet[Leaderboard]:
        boards = super().get_queryset()
        return boards if self.detail else boards.defer("entries", "report")


# --- forecasts -------------------------------------------------------------------------------------------


class ForecastRow(ReadSerializer):
    forecaster = serializers.CharField(source="family.slug", read_only=True, help_text="Its name on the boards.")
    family = serializers.CharField(source="family.slug", read_only=True)
    probabilities = serializers.DictField(child=serializers.FloatField(), read_only=True)
    brier = serializers.SerializerMethodField(help_text="Mean form; null until the question is resolved.")
    log = serializers.SerializerMethodField(help_text="Natural, clipped at 1e-6.")
    spherical = serializers.SerializerMethodField()
    accuracy = serializers.SerializerMethodField()
    market_brier = serializers.SerializerMethodField(help_text="The market's on the same, at the prices then.")

    class Meta:
        model = Forecast
        fields: tuple[str, ...] = (
            "id", "question", "elicitation", "forecaster", "family", "release", "methodology", "arm", "probabilities",
            "normalised", "rationale", "made_at", "brier", "log", "spherical", "accuracy", "market_brier",
        )  # fmt: skip

    def _scored(self, forecast: Forecast, name: str) -> float | None:
        score: ForecastScore | None = getattr(forecast, "score", None)
        return getattr(score, name) if score else None

    def get_brier(self, forecast: Forecast) -> float | None:
        return self._scored(forecast, "brier")

    def get_log(self, forecast: Forecast) -> float | None:
        return self._scored(forecast, "log")

    def get_spherical(self, forecast: Forecast) -> float | None:
        return self._scored(forecast, "spherical")

    def get_accuracy(self, forecast: Forecast) -> float | None:
        return self._scored(forecast, "accuracy")

    def get_market_brier(self, forecast: Forecast) -> float | None:
        return self._scored(forecast, "market_brier")


class ForecastDetail(ForecastRow):
    stated = serializers.DictField(child=serializers.CharField(), read_only=True, help_text="As it was written.")
    system_prompt = serializers.CharField(source="call.system_prompt", read_only=True)
    user_prompt = serializers.CharField(source="call.user_prompt", read_only=True, help_text="Byte for byte.")
    calls = ModelCallSerializer(source="elicitation.calls", many=True, read_only=True, help_text="Of its whole batch.")

    class Meta(ForecastRow.Meta):
        fields = (*ForecastRow.Meta.fields, "stated", "system_prompt", "user_prompt", "calls")


class ForecastFilters(StrictFilterSet):
    family = ReferenceFilter(Family, by="slug")
    status = KnownChoiceFilter(Question.Status.choices, field_name="question__status")

    class Meta:
        model = Forecast
        fields = ("arm", "methodology", "question", "elicitation", "release", "normalised", "made_at")


SCORES = ("brier", "log", "spherical", "accuracy", "market_brier")


class Forecasts(ReadOnlyViewSet):
    """What was stated, newest first, with what it came to; one of them with its prompt and every call."""

    queryset = Forecast.objects.select_related("family")
    serializer_class = ForecastRow
    detail_serializer_class = ForecastDetail
    filterset_class = ForecastFilters
    orderings = ("made_at",)
    ordering = ("-made_at",)
    pagination_class = StrictCursorPagination

    def get_queryset(self) -> QuerySet[Forecast]:
        forecasts = super().get_queryset()
        if self.is_requested(*SCORES):
            forecasts = forecasts.select_related("score")
        if self.detail:
            forecasts = forecasts.select_related(
                "elicitation__methodology", "elicitation__batch__question_set", "call__elicitation__methodology",
                "call__elicitation__batch__question_set",
            ).prefetch_related(Prefetch("elicitation__calls", ModelCall.objects.order_by("sequence")))  # fmt: skip
        return forecasts if self.is_requested("rationale") else forecasts.defer("rationale")
