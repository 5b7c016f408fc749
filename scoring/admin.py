"""Admin pages of scores, values and leaderboards."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from agents.models import Agent
from foundation.admin.filters import (
    FilterPreset,
    NewestRelatedFilter,
    preset_filter,
    recent_days_filter,
    related_values_filter,
)
from foundation.admin.readonly import ReadOnlyAdmin, json_column
from markets.models import QuestionBatch
from scoring.models import (
    AgentsBoard,
    BrierScore,
    FamilyTotal,
    ForecastScore,
    Leaderboard,
    PublishedBoard,
    QuestionDifficulty,
    Snapshot,
)


@admin.register(Snapshot)
class SnapshotAdmin(ReadOnlyAdmin):
    list_display = ("taken_at", "agent", "cash", "positions_value", "total_value", "pnl", "brier", "stale_positions")
    list_filter = (
        preset_filter(FilterPreset("stale", "with positions at a stale price", lambda rows, now: rows.filter(
            stale_positions__gt=0))),
        recent_days_filter("taken_at"), "agent__family", ("agent__cohort", NewestRelatedFilter),
    )  # fmt: skip
    list_select_related = ("agent",)
    search_fields = ("display_name",)
    search_help_text = "An agent's name. Choose a day to sort by any column."

    def get_sortable_by(self, request: HttpRequest) -> Any:
        # Without a day, sorting by a column without an index would read the whole table.
        return self.list_display if "day" in request.GET else ("taken_at", "agent")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Snapshot], search_term: str
    ) -> tuple[QuerySet[Snapshot], bool]:
        """Snapshots of the agents whose name matches: agents are few, and snapshots are indexed by agent."""
        if not search_term:
            return queryset, False
        agents, _ = super().get_search_results(request, Agent.objects.all(), search_term)
        return queryset.filter(agent__in=list(agents.values_list("pk", flat=True))), False


@admin.register(FamilyTotal)
class FamilyTotalAdmin(ReadOnlyAdmin):
    list_display = ("taken_at", "family", "agents", "total")
    list_filter = (recent_days_filter("taken_at"), "family")
    list_select_related = ("family",)
    search_fields = ("family__slug",)


@admin.register(BrierScore)
class BrierScoreAdmin(ReadOnlyAdmin):
    list_display = ("id", "agent", "market", "probability", "outcome", "score", "market_score", "resolved_at")
    list_filter = ("outcome", "agent__family", ("agent__cohort", NewestRelatedFilter))
    list_select_related = ("agent", "market")
    list_defer = ("market__description",)
    search_fields = ("=trade__id", "market__question", "agent__display_name")
    date_hierarchy = "resolved_at"
    ordering = ("-pk",)


@admin.register(Leaderboard)
class LeaderboardAdmin(ReadOnlyAdmin):
    list_display = ("protocol", "methodology", "arm", "category", "computed_at")
    list_filter = ("protocol", "arm")
    list_defer = ("entries", "report")
    search_fields = ("protocol", "methodology", "category")
    ordering = ("protocol", "methodology", "arm", "category")
    fields = (*list_display, json_column("entries"))


@admin.register(AgentsBoard)
class AgentsBoardAdmin(ReadOnlyAdmin):
    list_display = ("track", "protocol", "computed_at")
    list_filter = ("track", "protocol")
    list_defer = ("entries", "report")
    search_fields = ("track", "protocol")
    fields = (*list_display, json_column("entries"))


@admin.register(PublishedBoard)
class PublishedBoardAdmin(ReadOnlyAdmin):
    list_display = ("protocol", "track", "methodology", "arm", "category", "at")
    list_filter = ("protocol", "track", "arm")
    list_defer = ("entries", "report")
    search_fields = ("protocol", "methodology", "category", "=sha256")
    ordering = ("-at", "-pk")
    fields = (*list_display, "sha256", json_column("entries"))


@admin.register(ForecastScore)
class ForecastScoreAdmin(ReadOnlyAdmin):
    list_display = ("id", "family", "question", "arm", "brier", "log", "accuracy", "market_brier", "resolved_at")
    list_filter = (
        ("forecast__arm", related_values_filter(QuestionBatch, "arm")), "forecast__family",
        recent_days_filter("resolved_at"),
    )  # fmt: skip
    list_select_related = ("forecast__family", "forecast__question")
    list_defer = ("forecast__rationale", "forecast__stated", "forecast__question__rules")
    search_fields = ("=forecast__id", "forecast__question__text")
    ordering = ("-pk",)

    def family(self, score: ForecastScore) -> str:
        return str(score.forecast.family)

    def question(self, score: ForecastScore) -> str:
        return score.forecast.question.text

    def arm(self, score: ForecastScore) -> str:
        return score.forecast.arm


@admin.register(QuestionDifficulty)
class QuestionDifficultyAdmin(ReadOnlyAdmin):
    list_display = ("question", "arm", "difficulty", "difficulty_se", "discrimination", "discrimination_se")
    list_filter = ("arm",)
    list_select_related = ("question",)
    list_defer = ("question__rules",)
    search_fields = ("question__text",)
    ordering = ("-pk",)
