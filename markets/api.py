"""Markets, their prices, and what ran, for readers."""

from django.db.models import Prefetch, QuerySet
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
    winning_side = serializers.CharField(read_only=True, allow_null=True)

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

    # Only what is shown: whole markets would be a third of a page's time.
    queryset = Market.objects.select_related("winning_outcome").only(
        "source", "external_id", "slug", "question", "category", "kind", "status", "volume", "liquidity",
        "closes_at", "closed_at", "resolved_at", "winning_outcome__side",
    )  # fmt: skip
    serializer_class = MarketRow
    filterset_class = MarketFilters
    orderings = {
        "id": "pk",
        "volume": "volume",
        "liquidity": "liquidity",
        "closes_at": "closes_at",
        "resolved_at": "resolved_at",
    }
    ordering = ("-volume",)

    def get_queryset(self) -> QuerySet[Market]:
        markets = super().get_queryset()
        if not self.shows("outcomes"):
            return markets
        shown = Outcome.objects.only("market", "side", "name", "price", "price_at", "price_stale")
        # As a list: a query set for each market of a page, though it asks nothing, would be a quarter of its time.
        return markets.prefetch_related(Prefetch("outcomes", shown, to_attr="sides"))


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
    orderings = {"id": "pk", "at": "at", "started_at": "started_at"}
    ordering = ("-started_at",)
