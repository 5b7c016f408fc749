"""Markets, their prices, and what ran, for readers."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from markets.models import Market, Outcome, PriceObservation, Run
from markets.rest import Cursor, Filters, PresentFilter, ReferenceFilter, Row, Rows, lean


class OutcomeRow(Row):
    stale = serializers.BooleanField(source="price_stale", read_only=True, help_text="Is the price an older one?")

    class Meta:
        model = Outcome
        fields = ("side", "name", "price", "price_at", "stale")


class MarketRow(Row):
    outcomes = OutcomeRow(many=True, read_only=True, source="sides")
    winning_side = serializers.CharField(source="winning_outcome.side", read_only=True, allow_null=True)

    class Meta:
        model = Market
        fields = (
            "id", "source", "external_id", "slug", "question", "category", "kind", "status", "outcomes",
            "volume", "liquidity", "closes_at", "closed_at", "resolved_at", "winning_side",
        )  # fmt: skip


class MarketFilters(Filters):
    external_id = PresentFilter()
    category = PresentFilter()

    class Meta:
        model = Market
        fields = {
            "source": ["exact"],
            "kind": ["exact"],
            "status": ["exact"],
            "closes_at": ["gte", "lt"],
            "closed_at": ["gte", "lt"],
            "resolved_at": ["gte", "lt"],
        }


class Markets(Rows):
    """Markets with the last accepted price of each side."""

    queryset = Market.objects.all()
    serializer_class = MarketRow
    filterset_class = MarketFilters
    flat = True
    orderings = {
        "id": "pk",
        "volume": "volume",
        "liquidity": "liquidity",
        "closes_at": "closes_at",
        "resolved_at": "resolved_at",
    }
    ordering = ("-volume",)

    def paginate_queryset(self, queryset: QuerySet[Market]) -> Sequence[Any]:  # type: ignore[override]
        return self.sided(super().paginate_queryset(queryset) or [])

    def get_object(self) -> Any:
        return self.sided([super().get_object()])[0]

    def sided(self, found: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
        """The markets, each with its sides, in one query, where its key stands for them."""
        if not self.shows("outcomes"):
            return found
        place = [name for name in MarketRow.Meta.fields if name in self.asked].index("outcomes")
        keys = [row[place] for row in found]
        sides = defaultdict(list)
        for market, *side in Outcome.objects.filter(market__in=keys).values_list("market", *OutcomeRow.columns()):
            sides[market].append(tuple(side))
        return [(*row[:place], sides[row[place]], *row[place + 1 :]) for row in found]


class PriceRow(Row):
    market = serializers.IntegerField(source="outcome.market_id", read_only=True)
    side = serializers.CharField(source="outcome.side", read_only=True)

    class Meta:
        model = PriceObservation
        fields = (
            "id", "market", "side", "observed_at", "price", "source", "stale", "reason",
            "midpoint", "gamma", "bid", "ask",
        )  # fmt: skip


class PriceFilters(Filters):
    market = ReferenceFilter(Market, "outcome__market")

    class Meta:
        model = PriceObservation
        fields = {"source": ["exact"], "stale": ["exact"], "observed_at": ["gte", "lt"]}


class Prices(Rows):
    """What the price rule made of each side at an instant; a row where the result differs from the last."""

    queryset = lean(PriceObservation.objects.select_related("outcome"), "outcome__market", "outcome__side")
    serializer_class = PriceRow
    filterset_class = PriceFilters
    orderings = {"observed_at": "observed_at"}
    ordering = ("-observed_at",)
    pagination_class = Cursor


class RunRow(Row):
    class Meta:
        model = Run
        fields: tuple[str, ...] = ("id", "kind", "at", "started_at", "finished_at", "status", "summary", "error")


class RunDetail(RunRow):
    log = serializers.ListField(child=serializers.CharField(), read_only=True)

    class Meta(RunRow.Meta):
        fields = (*RunRow.Meta.fields, "log")


class RunFilters(Filters):
    kind = PresentFilter()

    class Meta:
        model = Run
        fields = {
            "status": ["exact"],
            "at": ["gte", "lt"],
            "started_at": ["gte", "lt"],
            "finished_at": ["gte", "lt"],
        }


class Runs(Rows):
    """Every run of a job or command: for which instant, when, and what came of it."""

    queryset = Run.objects.all()
    serializer_class = RunRow
    detail_serializer_class = RunDetail
    filterset_class = RunFilters
    flat = True
    orderings = {"id": "pk", "at": "at", "started_at": "started_at"}
    ordering = ("-started_at",)
