"""Methodologies, cohorts and missed weeks, for the operator."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest

from cohorts.models import Cohort, Methodology, MissedWeek
from markets.readonly import ReadOnlyAdmin


@admin.register(Methodology)
class MethodologyAdmin(admin.ModelAdmin):
    """A version can be written until a cohort uses it; from then on it is only read."""

    list_display = ("version", "title", "published_at", "decision_weeks", "universe_size")
    search_fields = ("version", "title")
    ordering = ("-version",)
    actions: Any = None
    readonly_fields = ("sha256",)

    def has_change_permission(self, request: HttpRequest, obj: Methodology | None = None) -> bool:
        return super().has_change_permission(request, obj) and not _in_use(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Methodology | None = None) -> bool:
        return super().has_delete_permission(request, obj) and not _in_use(obj)


def _in_use(methodology: Methodology | None) -> bool:
    return methodology is not None and methodology.cohorts.exists()


@admin.register(Cohort)
class CohortAdmin(ReadOnlyAdmin):
    list_display = ("number", "week_start", "methodology", "status", "agents", "started_at", "completed_at")
    list_filter = ("status", "methodology")
    search_fields = ("=number",)
    date_hierarchy = "week_start"
    ordering = ("-number",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Cohort]:
        # Prefetched, not joined: every row would carry the methodology's prompts.
        return super().get_queryset(request).prefetch_related("methodology").annotate(agent_count=Count("agents"))

    def agents(self, cohort: Any) -> int:
        return cohort.agent_count


@admin.register(MissedWeek)
class MissedWeekAdmin(ReadOnlyAdmin):
    list_display = ("week_start", "recorded_at", "reason")
    search_fields = ("reason",)
    date_hierarchy = "week_start"
    ordering = ("-week_start",)
