"""REST API of markets, prices, universes and questions."""

from collections import defaultdict
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from django.db.models import Count, F, OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.functions import Coalesce
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from foundation.json_lines import decimal_text
from foundation.rest.cursors import StrictCursorPagination
from foundation.rest.filters import ChangedSinceFilter, ReferenceFilter, SearchFilter
from foundation.rest.serializers import (
    DecimalStringField,
    ReadSerializer,
    limit_related_fields,
)
from foundation.rest.viewsets import ReadOnlyViewSet
from markets.models import (
    EvidenceSnippet,
    Market,
    Outcome,
    PriceObservation,
    Question,
    QuestionEntry,
    QuestionSet,
    Universe,
    UniverseEntry,
)
from markets.selectors.list_filters import market_changed, matching_markets, matching_questions, question_changed
from markets.selectors.option_prices import option_prices, priced_options, question_outcome


class OutcomeSerializer(ReadSerializer):
    stale = serializers.BooleanField(
        source="price_stale", read_only=True, help_text="True if the price is the last accepted one, not a current one."
    )

    class Meta:
        model = Outcome
        fields = ("side", "name", "price", "price_at", "stale")


class MarketSerializer(ReadSerializer):
    outcomes = OutcomeSerializer(many=True, read_only=True, source="sides")
    winning_side = serializers.CharField(source="winning_outcome.side", read_only=True, allow_null=True)

    class Meta:
        model = Market
        fields = (
            "id", "source", "external_id", "slug", "question", "category", "kind", "status", "outcomes",
            "volume", "liquidity", "closes_at", "over_since", "closed_at", "resolved_at", "winning_side",
        )  # fmt: skip


class MarketViewSet(ReadOnlyViewSet):
    """Markets with the last accepted price of each side."""

    queryset = Market.objects.all()
    serializer_class = MarketSerializer
    filterset_fields = (
        "external_id", "category", "source", "kind", "status", "closes_at", "over_since", "closed_at", "resolved_at",
    )  # fmt: skip
    filters = {"search": SearchFilter(matching_markets), "updated_since": ChangedSinceFilter(market_changed)}
    reads_tuples = True
    orderings = ("id", "volume", "liquidity", "closes_at", "resolved_at")
    ordering = ("-volume",)

    def complete_rows(self, rows: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
        """The markets' tuples with the key in the place of `outcomes` replaced by the sides, by one query for all."""
        if not self.is_requested("outcomes"):
            return rows
        place = [name for name in MarketSerializer.Meta.fields if name in self.requested].index("outcomes")
        keys = list(map(itemgetter(place), rows))
        sides = defaultdict(list)
        for market, *side in Outcome.objects.filter(market__in=keys).values_list(
            "market", *OutcomeSerializer.columns()
        ):
            sides[market].append(tuple(side))
        complete = []
        for row in rows:
            complete.append((*row[:place], sides[row[place]], *row[place + 1 :]))
        return complete


class PriceSerializer(ReadSerializer):
    market = serializers.IntegerField(source="outcome.market_id", read_only=True)
    side = serializers.CharField(source="outcome.side", read_only=True)

    class Meta:
        model = PriceObservation
        fields = (
            "id", "market", "side", "observed_at", "price", "source", "stale", "reason",
            "midpoint", "gamma", "bid", "ask",
        )  # fmt: skip


class PriceViewSet(ReadOnlyViewSet):
    """Price decisions on each side of a market, recorded when they change."""

    queryset = limit_related_fields(PriceObservation.objects.all(), "outcome__market", "outcome__side")
    serializer_class = PriceSerializer
    filterset_fields = ("source", "stale", "observed_at")
    filters = {"market": ReferenceFilter(Market, "outcome__market")}
    orderings = ("observed_at",)
    ordering = ("-observed_at",)
    pagination_class = StrictCursorPagination


class UniverseSerializer(ReadSerializer):
    size = serializers.IntegerField(source="bettable", read_only=True, help_text="The number of bettable markets.")

    class Meta:
        model = Universe
        fields: tuple[str, ...] = ("id", "week_start", "methodology", "frozen_at", "sha256", "size")


class UniverseEntrySerializer(ReadSerializer):
    source = serializers.CharField(read_only=True)  # type: ignore[assignment]
    external_id = serializers.CharField(read_only=True)
    prices = serializers.SerializerMethodField(help_text="The frozen price of each side.")

    class Meta:
        model = UniverseEntry
        fields = ("position", "market", "source", "external_id", "bettable", "open", "prices", "sources")

    def get_prices(self, entry: UniverseEntry) -> dict[str, str]:
        prices = {}
        for side in entry.prices:
            price = entry.price(side)
            if price is not None:
                prices[side] = decimal_text(price)
        return prices


class UniverseDetailSerializer(UniverseSerializer):
    entries = UniverseEntrySerializer(many=True, read_only=True)

    class Meta(UniverseSerializer.Meta):
        fields = (*UniverseSerializer.Meta.fields, "entries", "market_block")


class UniverseViewSet(ReadOnlyViewSet):
    """Frozen markets and prices that every agent of a week's run sees; the detail has the entries."""

    queryset = Universe.objects.all()
    serializer_class = UniverseSerializer
    detail_serializer_class = UniverseDetailSerializer
    filterset_fields = ("methodology", "week_start", "frozen_at")
    orderings = ("id", "week_start", "frozen_at")
    ordering = ("-week_start",)

    def get_queryset(self) -> QuerySet[Universe]:
        universes = super().get_queryset()
        if self.is_requested("size"):
            # A subquery for each row of the page: a join would count the entries of all universes first.
            entries = UniverseEntry.objects.filter(universe=OuterRef("pk"), bettable=True).order_by()
            counts = entries.values("universe").annotate(number=Count("pk")).values("number")
            universes = universes.annotate(bettable=Coalesce(Subquery(counts), 0))
        if self.is_requested("entries"):
            # Two fields of each market: making 500 market instances is a third of the response time.
            entries = UniverseEntry.objects.order_by("position").annotate(
                source=F("market__source"), external_id=F("market__external_id")
            )
            universes = universes.prefetch_related(Prefetch("entries", entries))
        return universes if self.is_requested("market_block") else universes.defer("market_block")


class QuestionOptionSerializer(serializers.Serializer):
    name = serializers.CharField()
    market = serializers.IntegerField(allow_null=True, help_text="Null where no market stands for it.")
    price = DecimalStringField(
        allow_null=True, help_text="The last accepted price; without a market, 1 less the others."
    )
    no_price = DecimalStringField(
        allow_null=True, help_text="The price of the market's other side, else 1 less the price."
    )
    happened = serializers.BooleanField(
        allow_null=True,
        help_text="Null until the question resolves, and for an independent option whose market was cancelled.",
    )


class QuestionSerializer(ReadSerializer):
    event = serializers.CharField(source="event_key", read_only=True, help_text="Shared by the questions of one event.")
    question = serializers.CharField(source="text", read_only=True)
    options = serializers.SerializerMethodField()
    outcome = serializers.SerializerMethodField(
        help_text="The option that happened, or a list where options are not exclusive; null until resolved. "
        "Options without an outcome in `options` are not scored."
    )

    class Meta:
        model = Question
        fields: tuple[str, ...] = (
            "id", "source", "event", "market", "question", "category", "options", "exclusive", "status", "closes_at",
            "first_asked_at", "closed_at", "resolved_at", "outcome",
        )  # fmt: skip

    @extend_schema_field(QuestionOptionSerializer(many=True))
    def get_options(self, question: Question) -> Any:
        # Without a serializer: making one for each row would be most of the page's time.
        options = []
        for priced in option_prices(question):
            option = {
                "name": priced.option.name,
                "market": priced.option.outcome.market_id if priced.option.outcome else None,
                "price": None if priced.price is None else decimal_text(priced.price),
                "no_price": None if priced.no_price is None else decimal_text(priced.no_price),
                "happened": priced.option.happened,
            }
            options.append(option)
        return options

    @extend_schema_field(
        {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]}
    )
    def get_outcome(self, question: Question) -> str | list[str] | None:
        return question_outcome(question)


class FrozenPriceSerializer(serializers.Serializer):
    price = serializers.CharField(allow_null=True, help_text="Mid price.")
    ask = serializers.CharField(allow_null=True)
    no_ask = serializers.CharField(allow_null=True)
    stale = serializers.BooleanField()


class QuestionDaySerializer(serializers.Serializer):
    """A day on which a question was asked, with its prices."""

    question_set = serializers.IntegerField(source="question_set_id", help_text="Where its evidence is listed.")
    day = serializers.DateTimeField(source="question_set.day")
    methodology = serializers.CharField(source="question_set.methodology")
    frozen_at = serializers.DateTimeField(source="question_set.frozen_at")
    reason = serializers.ChoiceField(choices=QuestionEntry.Reason.choices)
    prices = serializers.DictField(child=FrozenPriceSerializer())
    closes_on = serializers.DateField(allow_null=True, help_text="Day of the scheduled close that prompts showed.")


class QuestionDetailSerializer(QuestionSerializer):
    days_asked = QuestionDaySerializer(source="entries", many=True, read_only=True)

    class Meta(QuestionSerializer.Meta):
        fields = (*QuestionSerializer.Meta.fields, "rules", "days_asked")


class QuestionViewSet(ReadOnlyViewSet):
    """Questions, newest first; the detail has each day's prices. `scoring` adds forecasts and difficulties to it."""

    queryset = Question.objects.defer("rules")
    serializer_class = QuestionSerializer
    detail_serializer_class = QuestionDetailSerializer
    filterset_fields = (
        "category", "source", "status", "exclusive", "closes_at", "first_asked_at", "closed_at", "resolved_at",
    )  # fmt: skip
    filters = {
        "market": ReferenceFilter(Market, "options__outcome__market", distinct=True),
        "search": SearchFilter(matching_questions),
        "updated_since": ChangedSinceFilter(question_changed),
    }  # fmt: skip
    orderings = ("id", "closes_at", "first_asked_at", "resolved_at")
    ordering = ("-pk",)

    def get_queryset(self) -> QuerySet[Question]:
        questions = super().get_queryset()
        if self.is_requested("options", "outcome"):
            questions = questions.prefetch_related(Prefetch("options", priced_options()))
        if self.detail:
            questions = questions.defer(None)
        if self.is_requested("days_asked"):
            entries = QuestionEntry.objects.select_related("question_set")
            questions = questions.prefetch_related(Prefetch("entries", entries.order_by("question_set__day", "pk")))
        return questions


class EvidenceSerializer(serializers.Serializer):
    sha256 = serializers.CharField(allow_null=True, help_text="Hash of its snippets; null where none were gathered.")
    shown = serializers.IntegerField(help_text="The number of snippets.")
    dropped = serializers.DictField(child=serializers.IntegerField(), help_text="Texts not shown, by reason.")


class SnippetSerializer(ReadSerializer):
    question = serializers.IntegerField(source="entry.question_id", read_only=True)

    class Meta:
        model = EvidenceSnippet
        fields = (
            "question", "position", "title", "source", "url", "published_at", "retrieved_at", "text", "sha256",
            "states_outcome",
        )  # fmt: skip


class QuestionSetSerializer(ReadSerializer):
    evidence = serializers.SerializerMethodField()
    left_out = serializers.DictField(child=serializers.CharField(), read_only=True)

    class Meta:
        model = QuestionSet
        fields: tuple[str, ...] = (
            "id", "day", "methodology", "part", "universe", "frozen_at", "sha256", "evidence", "left_out",
        )  # fmt: skip

    @extend_schema_field(EvidenceSerializer)
    def get_evidence(self, row: Any) -> dict[str, Any]:
        return {"sha256": row.evidence_sha256 or None, "shown": row.snippets, "dropped": row.evidence_dropped}


class QuestionSetDetailSerializer(QuestionSetSerializer):
    snippets = serializers.SerializerMethodField()

    class Meta(QuestionSetSerializer.Meta):
        fields = (*QuestionSetSerializer.Meta.fields, "snippets")

    @extend_schema_field(SnippetSerializer(many=True))
    def get_snippets(self, question_set: QuestionSet) -> Any:
        snippets = EvidenceSnippet.objects.filter(entry__question_set=question_set).select_related("entry")
        return SnippetSerializer(snippets.order_by("entry__position", "position"), many=True).data


class QuestionSetViewSet(ReadOnlyViewSet):
    """The questions of a day, frozen together; the detail has the evidence that was frozen with them."""

    queryset = QuestionSet.objects.all()
    serializer_class = QuestionSetSerializer
    detail_serializer_class = QuestionSetDetailSerializer
    filterset_fields = ("methodology", "part", "day", "universe", "frozen_at")
    orderings = ("id", "day", "frozen_at")
    ordering = ("-day", "part")

    def get_queryset(self) -> QuerySet[QuestionSet]:
        snippets = EvidenceSnippet.objects.filter(entry__question_set=OuterRef("pk")).order_by()
        counts = snippets.values("entry__question_set").annotate(number=Count("pk")).values("number")
        return super().get_queryset().annotate(snippets=Coalesce(Subquery(counts), 0))
