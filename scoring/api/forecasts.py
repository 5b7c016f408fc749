"""Forecasts, questions with their forecasts, and the leaderboards of the forecast protocol."""

from datetime import datetime

from django.db.models import Prefetch, Q, QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.api.tasks import ModelCallSerializer, SearchResultSerializer
from agents.models import Elicitation, Family, Forecast, ModelCall
from foundation.rest.cursors import StrictCursorPagination
from foundation.rest.filters import ChangedSinceFilter, KnownChoiceFilter, ReferenceFilter, SearchFilter
from foundation.rest.serializers import NullableCharField, ReadSerializer
from foundation.rest.viewsets import ReadOnlyViewSet
from markets import api
from markets.models import Question
from markets.selectors.list_filters import with_words
from scoring.api.base import NumberField, ObjectField, ReportSerializer
from scoring.constants import FORECAST
from scoring.models import ForecastScore, Leaderboard
from scoring.reports.forecasts import FORECAST_COLUMNS


def forecast_changed(since: datetime) -> Q:
    """The forecast, written with its elicitation, or its scores.

    Subqueries, because PostgreSQL would join all forecasts with their elicitations and scores to compare the times.
    """
    elicitations = Elicitation.objects.filter(updated_at__gte=since).order_by()
    scores = ForecastScore.objects.filter(updated_at__gte=since).order_by()
    return Q(elicitation__in=elicitations.values("pk")) | Q(pk__in=scores.values("forecast"))


class ForecastLeaderboardEntrySerializer(ReportSerializer):
    """A family or a reference forecaster on a leaderboard of the forecast protocol, as it was last computed."""

    columns = FORECAST_COLUMNS


class ForecastLeaderboardSerializer(ReadSerializer):
    methodology = NullableCharField(help_text="Null: over all.")
    category = NullableCharField(help_text="Null: over all.")

    class Meta:
        model = Leaderboard
        fields: tuple[str, ...] = ("id", "methodology", "arm", "category", "computed_at")


class ForecastLeaderboardDetailSerializer(ForecastLeaderboardSerializer):
    entries = ForecastLeaderboardEntrySerializer(many=True, read_only=True)
    report = ObjectField(
        read_only=True,
        help_text="Results besides the ranking: pairs, tests against the market, return curves, reliability, agreement,"
        " forecasts and trades, leads over the market by four weeks, the record against the market.",
    )

    class Meta(ForecastLeaderboardSerializer.Meta):
        fields = (*ForecastLeaderboardSerializer.Meta.fields, "entries", "report")


class ForecastLeaderboardViewSet(ReadOnlyViewSet):
    """The leaderboards of the forecast protocol; the detail has its entries and its report."""

    queryset = Leaderboard.objects.filter(protocol=FORECAST)
    serializer_class = ForecastLeaderboardSerializer
    detail_serializer_class = ForecastLeaderboardDetailSerializer
    filterset_fields = ("methodology", "arm", "category", "computed_at")
    orderings = ("id", "computed_at")

    def get_queryset(self) -> QuerySet[Leaderboard]:
        leaderboards = super().get_queryset()
        return leaderboards if self.detail else leaderboards.defer("entries", "report")


class ScoreField(NumberField):
    """A figure of a forecast's score; null until its question is resolved."""

    def get_attribute(self, forecast: Forecast) -> float | None:
        score = getattr(forecast, "score", None)
        return score and getattr(score, self.field_name or "")


class ForecastSerializer(ReadSerializer):
    forecaster = serializers.CharField(source="family.slug", read_only=True, help_text="Its name on the leaderboards.")
    family = serializers.CharField(source="family.slug", read_only=True)
    probabilities = serializers.DictField(child=serializers.FloatField(), read_only=True)
    brier = ScoreField(help_text="Mean form; null until the question is resolved.")
    log = ScoreField(help_text="Natural, clipped at 1e-6.")
    spherical = ScoreField()
    accuracy = ScoreField()
    market_brier = ScoreField(help_text="The market's score, at the prices when the question was asked.")

    class Meta:
        model = Forecast
        fields: tuple[str, ...] = (
            "id", "question", "elicitation", "forecaster", "family", "release", "methodology", "arm", "probabilities",
            "normalised", "rationale", "made_at", "samples_asked", "samples_read", "spread", "searches", "excluded",
            "brier", "log", "spherical", "accuracy", "market_brier",
        )  # fmt: skip


class ForecastDetailSerializer(ForecastSerializer):
    stated = serializers.DictField(child=serializers.CharField(), read_only=True)
    samples = serializers.DictField(
        child=serializers.DictField(child=serializers.FloatField()), read_only=True, allow_null=True
    )
    log_odds_mean = serializers.DictField(child=serializers.FloatField(), read_only=True, allow_null=True)
    results = serializers.SerializerMethodField(
        help_text="What searches showed the model, of all its samples; null where it had no search tool."
    )
    system_prompt = serializers.CharField(source="call.system_prompt", read_only=True)
    user_prompt = serializers.CharField(source="call.user_prompt", read_only=True, help_text="Byte for byte.")
    calls = ModelCallSerializer(
        source="elicitation.calls", many=True, read_only=True, help_text="Calls for its whole batch."
    )

    class Meta(ForecastSerializer.Meta):
        fields = (
            *ForecastSerializer.Meta.fields, "stated", "samples", "log_odds_mean", "results", "system_prompt",
            "user_prompt", "calls",
        )  # fmt: skip

    @extend_schema_field(SearchResultSerializer(many=True, allow_null=True))
    def get_results(self, forecast: Forecast) -> list[dict[str, str]] | None:
        return search_results(forecast)


def search_results(forecast: Forecast) -> list[dict[str, str]] | None:
    """What searches showed the model for a forecast, each result once; None where it had no search tool."""
    if forecast.searches is None:
        return None
    calls = ModelCall.objects.filter(pk=forecast.call_id)
    if forecast.samples is not None:
        task = forecast.elicitation
        calls = ModelCall.objects.filter(elicitation__batch=task.batch_id, elicitation__release=task.release_id)
        calls = calls.filter(late=False, result__in=ModelCall.READ).order_by("elicitation__sample", "sequence")
    results: list[dict[str, str]] = []
    for call_results in calls.values_list("results", flat=True):
        results += [result for result in call_results or () if result not in results]
    return results


SCORES = ("brier", "log", "spherical", "accuracy", "market_brier")


def matching_forecasts(forecasts: QuerySet[Forecast], text: str) -> QuerySet[Forecast]:
    """Forecasts by their question and their rationale."""
    return with_words(forecasts, text, "question__text", "rationale")


class ForecastViewSet(ReadOnlyViewSet):
    """Forecasts with their scores, newest first; the detail has the prompt and every call."""

    queryset = Forecast.objects.select_related("family")
    serializer_class = ForecastSerializer
    detail_serializer_class = ForecastDetailSerializer
    filterset_fields = ("arm", "methodology", "question", "elicitation", "release", "normalised", "made_at")
    filters = {
        "family": ReferenceFilter(Family, by="slug"),
        "status": KnownChoiceFilter(Question.Status.choices, field_name="question__status"),
        "search": SearchFilter(matching_forecasts),
        "updated_since": ChangedSinceFilter(forecast_changed),
    }
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


class DifficultySerializer(serializers.Serializer):
    arm = serializers.CharField()
    difficulty = serializers.FloatField()
    difficulty_se = serializers.FloatField(allow_null=True)
    discrimination = serializers.FloatField(allow_null=True)
    discrimination_se = serializers.FloatField(allow_null=True)


class ForecastQuestionDetailSerializer(api.QuestionDetailSerializer):
    difficulties = DifficultySerializer(many=True, read_only=True, help_text="By item response theory, as last fitted.")
    forecasts = ForecastSerializer(many=True, read_only=True)

    class Meta(api.QuestionDetailSerializer.Meta):
        fields = (*api.QuestionDetailSerializer.Meta.fields, "difficulties", "forecasts")


class ForecastQuestionViewSet(api.QuestionViewSet):
    """Questions, newest first; the detail has each day's prices, all forecasts and the fitted difficulties."""

    detail_serializer_class = ForecastQuestionDetailSerializer

    def get_queryset(self) -> QuerySet[Question]:
        questions = super().get_queryset()
        if self.is_requested("difficulties"):
            questions = questions.prefetch_related("difficulties")
        if self.is_requested("forecasts"):
            forecasts = Forecast.objects.select_related("family", "score").order_by("made_at", "arm", "family", "pk")
            questions = questions.prefetch_related(Prefetch("forecasts", forecasts))
        return questions
