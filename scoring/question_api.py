"""Questions that forecasters were asked, for readers."""

from typing import Any

from django.db.models import Prefetch, QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.models import Forecast
from markets.blocks import decimal_text
from markets.models import Market, Question, QuestionEntry
from markets.rest import DecimalText, Filters, OptionalText, PresentFilter, ReferenceFilter, Row, Rows
from scoring.forecast_api import ForecastRow
from scoring.questions import option_prices, outcome_of, priced_options


class QuestionOptionRow(serializers.Serializer):
    name = serializers.CharField()
    market = serializers.IntegerField(allow_null=True, help_text="Null where no market stands for it.")
    price = DecimalText(allow_null=True, help_text="The last accepted price; what the others leave, without a market.")
    no_price = DecimalText(allow_null=True, help_text="That of the market's other side, else 1 less the price.")
    happened = serializers.BooleanField(allow_null=True)


class QuestionRow(Row):
    event = serializers.CharField(source="event_key", read_only=True, help_text="What questions of one event share.")
    question = serializers.CharField(source="text", read_only=True)
    options = serializers.SerializerMethodField()
    outcome = serializers.SerializerMethodField(
        help_text="The option that happened; where options are not exclusive, all that did; null until resolved."
    )

    class Meta:
        model = Question
        fields: tuple[str, ...] = (
            "id", "source", "event", "market", "question", "category", "options", "exclusive", "status", "closes_at",
            "first_asked_at", "closed_at", "resolved_at", "outcome",
        )  # fmt: skip

    @extend_schema_field(QuestionOptionRow(many=True))
    def get_options(self, question: Question) -> Any:
        # By hand: a serializer made for each row of a page would be most of the page's time.
        return [
            {
                "name": priced.option.name,
                "market": priced.option.outcome.market_id if priced.option.outcome else None,
                "price": None if priced.price is None else decimal_text(priced.price),
                "no_price": None if priced.no_price is None else decimal_text(priced.no_price),
                "happened": priced.option.happened,
            }
            for priced in option_prices(question)
        ]

    @extend_schema_field(
        {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]}
    )
    def get_outcome(self, question: Question) -> str | list[str] | None:
        return outcome_of(question)


class AskedPrice(serializers.Serializer):
    price = serializers.CharField(allow_null=True, help_text="Mid.")
    ask = serializers.CharField(allow_null=True)
    no_ask = serializers.CharField(allow_null=True)
    stale = serializers.BooleanField()


class Difficulty(serializers.Serializer):
    arm = serializers.CharField()
    difficulty = serializers.FloatField()
    difficulty_se = serializers.FloatField(allow_null=True)
    discrimination = serializers.FloatField(allow_null=True)
    discrimination_se = serializers.FloatField(allow_null=True)


class AskedDay(serializers.Serializer):
    """A question on a day it was asked."""

    day = serializers.DateTimeField(source="question_set.day")
    methodology = serializers.CharField(source="question_set.methodology")
    frozen_at = serializers.DateTimeField(source="question_set.frozen_at")
    reason = serializers.ChoiceField(choices=QuestionEntry.Reason.choices)
    prices = serializers.DictField(child=AskedPrice())
    twin = serializers.IntegerField(
        source="twin_id", allow_null=True, help_text="The same question at the other venue, which is not asked besides."
    )


class QuestionDetail(QuestionRow):
    rules = OptionalText()
    asked = AskedDay(source="entries", many=True, read_only=True)
    difficulties = Difficulty(many=True, read_only=True, help_text="By item response theory, as last fitted.")
    forecasts = ForecastRow(many=True, read_only=True)

    class Meta(QuestionRow.Meta):
        fields = (*QuestionRow.Meta.fields, "rules", "difficulties", "asked", "forecasts")


class QuestionFilters(Filters):
    category = PresentFilter()
    market = ReferenceFilter(Market, "options__outcome__market", distinct=True)

    class Meta:
        model = Question
        fields = {
            "source": ["exact"],
            "status": ["exact"],
            "exclusive": ["exact"],
            "closes_at": ["gte", "lt"],
            "first_asked_at": ["gte", "lt"],
            "closed_at": ["gte", "lt"],
            "resolved_at": ["gte", "lt"],
        }


class Questions(Rows):
    """What forecasters were asked, newest first; one of them with each day's prices and what everybody said."""

    queryset = Question.objects.defer("rules")
    serializer_class = QuestionRow
    detail_serializer_class = QuestionDetail
    filterset_class = QuestionFilters
    orderings = {"id": "pk", "closes_at": "closes_at", "first_asked_at": "first_asked_at", "resolved_at": "resolved_at"}
    ordering = ("-pk",)

    def get_queryset(self) -> QuerySet[Question]:
        questions = super().get_queryset()
        if self.shows("options", "outcome"):
            questions = questions.prefetch_related(Prefetch("options", priced_options()))
        if self.detail:
            questions = questions.defer(None)
        if self.shows("difficulties"):
            questions = questions.prefetch_related("difficulties")
        if self.shows("asked"):
            entries = QuestionEntry.objects.select_related("question_set")
            questions = questions.prefetch_related(Prefetch("entries", entries.order_by("question_set__day", "pk")))
        if self.shows("forecasts"):
            said = Forecast.objects.select_related("family", "score").order_by("made_at", "arm", "family", "pk")
            questions = questions.prefetch_related(Prefetch("forecasts", said))
        return questions
