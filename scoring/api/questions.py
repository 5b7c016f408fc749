"""REST API of questions with forecasts and difficulties, which `markets` does not know."""

from django.db.models import Prefetch, QuerySet
from rest_framework import serializers

from agents.models import Forecast
from markets import api
from markets.models import Question
from scoring.api.forecasts import ForecastSerializer


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
