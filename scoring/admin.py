"""Snapshots, Brier scores and leaderboards, for the operator."""

from django.contrib import admin
from django.utils.safestring import SafeString

from markets.readonly import ReadOnlyAdmin, verbatim_json
from scoring.models import BrierScore, Leaderboard, Snapshot


@admin.register(Snapshot)
class SnapshotAdmin(ReadOnlyAdmin):
    list_display = ("taken_at", "agent", "cash", "positions_value", "total_value", "pnl", "brier", "stale_positions")
    list_filter = ("taken_at", "agent__family", "agent__cohort")
    list_select_related = ("agent",)
    search_fields = ("agent__display_name",)
    ordering = ("-taken_at", "agent_id")


@admin.register(BrierScore)
class BrierScoreAdmin(ReadOnlyAdmin):
    list_display = ("id", "agent", "market", "probability", "outcome", "score", "market_score", "resolved_at")
    list_filter = ("outcome", "agent__family", "agent__cohort")
    list_select_related = ("agent", "market")
    list_defer = ("market__description",)
    search_fields = ("=trade__id", "market__question", "agent__display_name")
    date_hierarchy = "resolved_at"
    ordering = ("-pk",)


@admin.register(Leaderboard)
class LeaderboardAdmin(ReadOnlyAdmin):
    list_display = ("protocol", "methodology", "computed_at")
    list_filter = ("protocol",)
    list_defer = ("entries",)
    search_fields = ("protocol", "methodology")
    ordering = ("protocol", "methodology")
    fields = ("protocol", "methodology", "computed_at", "board")

    @admin.display(description="entries")
    def board(self, leaderboard: Leaderboard) -> SafeString:
        return verbatim_json(leaderboard.entries)
