"""Snapshots of portfolio values."""

from agents.api.agent_records import AgentRecordFilterSet, AgentRecordSerializer
from markets.foundation.rest import ReadOnlyViewSet, StrictCursorPagination
from scoring.models import Snapshot


class SnapshotSerializer(AgentRecordSerializer):
    class Meta:
        model = Snapshot
        fields = (
            "agent", "cohort", "family", "taken_at", "cash", "positions_value", "total_value", "pnl",
            "pnl_percent", "brier", "resolved_bets", "open_positions", "stale_positions",
        )  # fmt: skip


class SnapshotFilterSet(AgentRecordFilterSet):
    class Meta:
        model = Snapshot
        fields = ("agent", "taken_at")


class SnapshotViewSet(ReadOnlyViewSet):
    """Portfolio values on the ten-minute grid, newest first."""

    # Prefetched, not joined: for a join the planner may read all snapshots of every agent to find the newest few.
    queryset = Snapshot.objects.prefetch_related("agent__cohort", "agent__family")
    serializer_class = SnapshotSerializer
    filterset_class = SnapshotFilterSet
    orderings = ("taken_at",)
    ordering = ("-taken_at",)
    pagination_class = StrictCursorPagination
