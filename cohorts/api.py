"""REST API of methodology versions and cohorts."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Count, Max, OuterRef, QuerySet, Subquery
from rest_framework import serializers

from cohorts.models import Cohort, Methodology
from foundation.clock import present
from foundation.rest.filters import ReferenceFilter
from foundation.rest.serializers import ReadSerializer, limit_related_fields
from foundation.rest.viewsets import ReadOnlyViewSet


class MethodologyRulesSerializer(ReadSerializer):
    retry_window_hours = serializers.SerializerMethodField()
    sha256 = serializers.CharField(read_only=True, help_text="Hash of everything that a result depends on.")

    class Meta:
        model = Methodology
        fields: tuple[str, ...] = (
            "version", "title", "published_at", "sha256", "starting_balance", "minimum_bet",
            "maximum_bet_fraction", "universe_size", "universe_rule", "actions", "decision_weeks",
            "retry_window_hours", "malformed_retries", "refused_retries", "temperature", "max_tokens",
            "reasoning", "provider_routing", "provider_pins", "free_form_answers", "system_prompt", "user_prompt",
            "malformed_note", "refused_note", "midpoint_tolerance", "maximum_spread", "jump_tolerance", "rulings",
            "scoring", "forecast",
        )  # fmt: skip

    def get_retry_window_hours(self, methodology: Methodology) -> float:
        return methodology.retry_window.total_seconds() / 3600


class MethodologyRulesViewSet(ReadOnlyViewSet):
    """Methodology versions: everything that a result depends on."""

    queryset = Methodology.objects.all()
    serializer_class = MethodologyRulesSerializer
    filterset_fields = ("published_at", "free_form_answers")
    lookup_field = "version"
    lookup_value_regex = r"[A-Za-z0-9.\-]{1,20}"
    orderings = ("version", "published_at")
    ordering = ("version",)


class CohortSerializer(ReadSerializer):
    methodology = serializers.CharField(source="methodology.version", read_only=True)
    decision_week = serializers.SerializerMethodField(
        help_text="Its decision week now; null before the first, after the last, and once it is voided."
    )
    agents = serializers.IntegerField(source="agent_count", read_only=True)
    chain_head = serializers.CharField(
        source="head", read_only=True, allow_null=True,
        help_text="SHA-256 of the trading chain's link to the cohort's newest decision; null before the first.",
    )  # fmt: skip

    class Meta:
        model = Cohort
        fields = (
            "number", "week_start", "methodology", "status", "started_at", "completed_at", "decision_week",
            "voided_at", "void_reason", "agents", "chain_head",
        )  # fmt: skip

    def get_decision_week(self, cohort: Cohort) -> int | None:
        now = self.context["now"]
        return cohort.decision_week(now) if cohort.is_deciding(now) else None


CHAIN = "trading"
"""The chain whose links record decisions."""


class CohortViewSet(ReadOnlyViewSet):
    """Weekly competitions, newest first."""

    queryset = Cohort.objects.all()
    serializer_class = CohortSerializer
    filterset_fields = ("status", "week_start", "started_at", "completed_at", "voided_at")
    filters = {"methodology": ReferenceFilter(Methodology, by="version")}
    lookup_field = "number"
    lookup_value_regex = "[0-9]{1,9}"
    orderings = ("number", "week_start", "completed_at")
    ordering = ("-number",)

    def get_queryset(self) -> QuerySet[Cohort]:
        cohorts = super().get_queryset()
        if self.is_requested("methodology", "decision_week"):
            rule_fields = ("methodology__version", "methodology__decision_weeks")
            cohorts = limit_related_fields(cohorts, *rule_fields)
        if self.is_requested("agents"):
            # A subquery: joined, the count of a page would group all agents first.
            this_cohort = Cohort.objects.filter(pk=OuterRef("pk")).order_by()
            cohorts = cohorts.annotate(agent_count=Subquery(this_cohort.values(number_of=Count("agents"))))
        return cohorts

    def complete_rows(self, cohorts: Sequence[Any]) -> Sequence[Any]:
        """The cohorts, each with the hash of its newest link as `head` if that is requested, by two queries for all."""
        if self.is_requested("chain_head"):
            rows = Cohort.objects.filter(pk__in=[cohort.pk for cohort in cohorts]).order_by()
            newest: dict[int, Any] = dict(rows.values_list("pk").annotate(Max("decisions__link__sequence")))
            # The chain is that of all decisions; it is named because the index of links begins with it.
            with_newest = Cohort.objects.order_by().filter(
                decisions__link__protocol=CHAIN, decisions__link__sequence__in=filter(None, newest.values())
            )
            heads = dict(with_newest.values_list("decisions__link__sequence", "decisions__link__sha256"))
            for cohort in cohorts:
                cohort.head = heads.get(newest[cohort.pk])
        return cohorts

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "now": present()}
