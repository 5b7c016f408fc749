"""Methodology versions, weekly cohorts and their frozen universes, for readers."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Count, F, Max, OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone
from rest_framework import serializers

from cohorts.models import Cohort, Methodology
from markets.blocks import decimal_text
from markets.models import Universe, UniverseEntry
from markets.rest import Filters, ReferenceFilter, Row, Rows, lean


class MethodologyRow(Row):
    retry_window_hours = serializers.SerializerMethodField()
    sha256 = serializers.CharField(read_only=True, help_text="Of all that a result depends on.")

    class Meta:
        model = Methodology
        fields = (
            "version", "title", "published_at", "sha256", "starting_balance", "minimum_bet",
            "maximum_bet_fraction", "universe_size", "universe_rule", "actions", "decision_weeks",
            "retry_window_hours", "malformed_retries", "refused_retries", "temperature", "max_tokens",
            "reasoning", "provider_routing", "system_prompt", "user_prompt", "malformed_note", "refused_note",
            "midpoint_tolerance", "maximum_spread", "gamma_tolerance", "rulings", "scoring", "forecast",
        )  # fmt: skip

    def get_retry_window_hours(self, methodology: Methodology) -> float:
        return methodology.retry_window.total_seconds() / 3600


class MethodologyFilters(Filters):
    class Meta:
        model = Methodology
        fields = {"published_at": ["gte", "lt"]}


class Methodologies(Rows):
    """Everything that a result depends on, by version."""

    queryset = Methodology.objects.all()
    serializer_class = MethodologyRow
    filterset_class = MethodologyFilters
    lookup_field = "version"
    lookup_value_regex = r"[A-Za-z0-9.\-]{1,20}"
    orderings = {"version": "version", "published_at": "published_at"}
    ordering = ("version",)


class CohortRow(Row):
    methodology = serializers.CharField(source="methodology.version", read_only=True)
    decision_week = serializers.SerializerMethodField(
        help_text="The week it is in now; null before its first and after its last decision week."
    )
    agents = serializers.IntegerField(source="agent_count", read_only=True)
    chain_head = serializers.CharField(
        source="head", read_only=True, allow_null=True,
        help_text="SHA-256 of the trading chain's link of the cohort's newest decision; null before its first.",
    )  # fmt: skip

    class Meta:
        model = Cohort
        fields = (
            "number", "week_start", "methodology", "status", "started_at", "completed_at", "decision_week",
            "agents", "chain_head",
        )  # fmt: skip

    def get_decision_week(self, cohort: Cohort) -> int | None:
        now = self.context["now"]
        return cohort.decision_week(now) if cohort.is_deciding(now) else None


class CohortFilters(Filters):
    methodology = ReferenceFilter(Methodology, by="version")

    class Meta:
        model = Cohort
        fields = {
            "status": ["exact"],
            "week_start": ["gte", "lt"],
            "started_at": ["gte", "lt"],
            "completed_at": ["gte", "lt"],
        }


CHAIN = "trading"
"""The chain whose links are of decisions."""


class Cohorts(Rows):
    """Weekly competitions, newest first."""

    queryset = Cohort.objects.all()
    serializer_class = CohortRow
    filterset_class = CohortFilters
    lookup_field = "number"
    lookup_value_regex = "[0-9]{1,9}"
    orderings = {"number": "number", "week_start": "week_start", "completed_at": "completed_at"}
    ordering = ("-number",)

    def get_queryset(self) -> QuerySet[Cohort]:
        cohorts = super().get_queryset()
        if self.shows("methodology", "decision_week"):
            of_rules = ("methodology__version", "methodology__decision_weeks")
            cohorts = lean(cohorts.select_related("methodology"), *of_rules)
        if self.shows("agents"):
            # Not joined: who counts the rows of a page would group all agents first.
            of_cohort = Cohort.objects.filter(pk=OuterRef("pk")).order_by()
            cohorts = cohorts.annotate(agent_count=Subquery(of_cohort.values(number_of=Count("agents"))))
        return cohorts

    def paginate_queryset(self, queryset: QuerySet[Cohort]) -> Sequence[Cohort]:  # type: ignore[override]
        return self.headed(super().paginate_queryset(queryset) or [])

    def get_object(self) -> Cohort:
        return self.headed([super().get_object()])[0]

    def headed(self, found: Sequence[Any]) -> Sequence[Any]:
        """The cohorts, each with the hash of its newest link as `head`, if that is shown.

        For all of them at once: one by one, every decision of each would be sorted.
        """
        if self.shows("chain_head"):
            linked = Cohort.objects.filter(pk__in=[cohort.pk for cohort in found]).order_by()
            newest: dict[int, Any] = dict(linked.values_list("pk").annotate(Max("decisions__link__sequence")))
            # By the chain too, though it is that of all decisions: the index of links knows them by both.
            of_newest = Cohort.objects.order_by().filter(
                decisions__link__protocol=CHAIN, decisions__link__sequence__in=filter(None, newest.values())
            )
            heads = dict(of_newest.values_list("decisions__link__sequence", "decisions__link__sha256"))
            for cohort in found:
                cohort.head = heads.get(newest[cohort.pk])
        return found

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "now": timezone.now()}


class UniverseRow(Row):
    size = serializers.IntegerField(
        source="bettable", read_only=True, help_text="How many markets may be bet on; markets held besides not counted."
    )

    class Meta:
        model = Universe
        fields: tuple[str, ...] = ("id", "week_start", "methodology", "frozen_at", "sha256", "size")


class EntryRow(Row):
    source = serializers.CharField(read_only=True)  # type: ignore[assignment]
    external_id = serializers.CharField(read_only=True)
    prices = serializers.SerializerMethodField(help_text="The frozen price of each side.")

    class Meta:
        model = UniverseEntry
        fields = ("position", "market", "source", "external_id", "bettable", "open", "prices", "sources")

    def get_prices(self, entry: UniverseEntry) -> dict[str, str]:
        return {side: decimal_text(price) for side in entry.prices if (price := entry.price(side)) is not None}


class UniverseDetail(UniverseRow):
    entries = EntryRow(many=True, read_only=True)

    class Meta(UniverseRow.Meta):
        fields = (*UniverseRow.Meta.fields, "entries", "market_block")


class UniverseFilters(Filters):
    methodology = ReferenceFilter(Methodology, by="version", method="of_version")

    class Meta:
        model = Universe
        fields = {"week_start": ["gte", "lt"], "frozen_at": ["gte", "lt"]}

    def of_version(self, universes: QuerySet[Universe], name: str, value: Methodology) -> QuerySet[Universe]:
        return universes.filter(methodology=value.version)


class Universes(Rows):
    """The markets and prices that every agent of a week's run saw; one of them with its entries."""

    queryset = Universe.objects.all()
    serializer_class = UniverseRow
    detail_serializer_class = UniverseDetail
    filterset_class = UniverseFilters
    orderings = {"id": "pk", "week_start": "week_start", "frozen_at": "frozen_at"}
    ordering = ("-week_start",)

    def get_queryset(self) -> QuerySet[Universe]:
        universes = super().get_queryset()
        if self.shows("size"):
            # A query for each row of the page: joined, every entry of every universe would be counted first.
            entries = UniverseEntry.objects.filter(universe=OuterRef("pk"), bettable=True).order_by()
            counted = entries.values("universe").annotate(number=Count("pk")).values("number")
            universes = universes.annotate(bettable=Coalesce(Subquery(counted), 0))
        if self.shows("entries"):
            # Two words of each market, not the market: five hundred of them would be a third of the answer's time.
            entries = UniverseEntry.objects.order_by("position").annotate(
                source=F("market__source"), external_id=F("market__external_id")
            )
            universes = universes.prefetch_related(Prefetch("entries", entries))
        return universes if self.shows("market_block") else universes.defer("market_block")
