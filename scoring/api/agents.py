"""Agents with their values and records, their snapshots, and the Brier scores of their bets."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import Q
from rest_framework import serializers

from agents.api.ledger import AgentRecordSerializer, AgentRecordViewSet
from agents.list_filters import position_changed
from agents.models import Agent, Family, Position
from cohorts.models import Cohort
from foundation.rest.cursors import StrictCursorPagination
from foundation.rest.filters import ChangedSinceFilter, ReferenceFilter
from foundation.rest.serializers import DecimalStringField, MoneyStringField, ReadSerializer
from foundation.rest.viewsets import ReadOnlyViewSet
from scoring.models import BrierScore, Snapshot
from scoring.selectors.after_costs import AgentAfterCosts, stored_after_costs
from scoring.selectors.competition import attach_competition
from scoring.selectors.valuations import NO_RECORD, bet_records, valuations


def agent_changed(since: datetime) -> Q:
    """The agent, its positions or their value, or its record of resolved bets."""
    positions = Position.objects.filter(position_changed(since)).order_by()
    scores = BrierScore.objects.filter(updated_at__gte=since).order_by()
    return Q(updated_at__gte=since) | Q(pk__in=positions.values("agent")) | Q(pk__in=scores.values("agent"))


def brier_score_changed(since: datetime) -> Q:
    return Q(updated_at__gte=since)


class AgentSerializer(ReadSerializer):
    cohort = serializers.IntegerField(source="cohort.number", read_only=True)
    family = serializers.CharField(source="family.slug", read_only=True)
    positions_value = MoneyStringField(source="valuation.positions_value")
    total_value = MoneyStringField(source="valuation.total")
    pnl = MoneyStringField(source="valuation.pnl")
    pnl_percent = DecimalStringField(
        places=4, source="valuation.pnl_percent", help_text="P/L as a share of the starting balance."
    )
    brier = serializers.FloatField(
        source="record.brier", read_only=True, allow_null=True,
        help_text="Mean bet-sizing score. Confidence is a share of cash, not a probability: not a proper score.",
    )  # fmt: skip
    resolved_bets = serializers.IntegerField(source="record.resolved_bets", read_only=True)
    win_rate = serializers.FloatField(source="record.win_rate", read_only=True, allow_null=True)
    return_after_costs = serializers.FloatField(
        source="costed.return_after_costs", read_only=True, allow_null=True,
        help_text="In per cent, as last computed; null where a trade has no captured order book.",
    )  # fmt: skip
    liquidation_value = MoneyStringField(
        source="costed.liquidation_value", allow_null=True,
        help_text="Cash with the holdings sold to the bids of the last order books; null likewise.",
    )  # fmt: skip
    trades_without_book = serializers.IntegerField(
        source="costed.trades_without_book", read_only=True, allow_null=True,
        help_text="Trades without a captured order book or a known fee.",
    )  # fmt: skip

    class Meta:
        model = Agent
        fields = (
            "id", "cohort", "family", "release", "model_id", "display_name", "status", "cash",
            "positions_value", "total_value", "pnl", "pnl_percent", "brier", "resolved_bets", "win_rate",
            "return_after_costs", "liquidation_value", "trades_without_book",
        )  # fmt: skip


VALUATION_FIELDS = ("positions_value", "total_value", "pnl", "pnl_percent")
RECORD_FIELDS = ("brier", "resolved_bets", "win_rate")


class AgentViewSet(ReadOnlyViewSet):
    """Agents: one family's release in one cohort, valued at the last accepted prices."""

    queryset = Agent.objects.all()
    serializer_class = AgentSerializer
    filterset_fields = ("release", "status")
    filters = {
        "cohort": ReferenceFilter(Cohort, by="number"), "family": ReferenceFilter(Family, by="slug"),
        "updated_since": ChangedSinceFilter(agent_changed),
    }  # fmt: skip
    orderings = ("id", "cohort", "family", "cash")
    ordering_paths = {"cohort": "cohort__number", "family": "family__slug"}

    def complete_rows(self, agents: Sequence[Any]) -> Sequence[Any]:
        """The agents with `valuation`, `record` and `costed`; each costs one query, none if unseen."""
        if self.is_requested("cohort", "family", *VALUATION_FIELDS):
            agents = attach_competition(agents)
        if self.is_requested(*VALUATION_FIELDS):
            values = valuations(agents)
            for agent in agents:
                agent.valuation = values[agent.pk]
        if self.is_requested(*RECORD_FIELDS):
            scores = bet_records(agents)
            for agent in agents:
                agent.record = scores.get(agent.pk, NO_RECORD)
        if self.is_requested(*AgentAfterCosts._fields):
            costed = stored_after_costs()
            for agent in agents:
                agent.costed = costed.get(agent.pk, AgentAfterCosts())
        return agents


class SnapshotSerializer(AgentRecordSerializer):
    class Meta:
        model = Snapshot
        fields = (
            "id", "agent", "cohort", "family", "taken_at", "cash", "positions_value", "total_value", "pnl",
            "pnl_percent", "brier", "resolved_bets", "open_positions", "stale_positions",
        )  # fmt: skip


class SnapshotViewSet(AgentRecordViewSet):
    """Portfolio values on the ten-minute grid, newest first."""

    # Prefetched, not joined: for a join the planner may read all snapshots of every agent to find the newest few.
    queryset = Snapshot.objects.prefetch_related("agent__cohort", "agent__family")
    serializer_class = SnapshotSerializer
    filterset_fields = ("agent", "taken_at")
    orderings = ("taken_at",)
    ordering = ("-taken_at",)
    pagination_class = StrictCursorPagination


class BrierScoreSerializer(AgentRecordSerializer):
    outcome = serializers.IntegerField(read_only=True, help_text="1 if the side won, else 0.")

    class Meta:
        model = BrierScore
        fields = (
            "id", "trade", "agent", "cohort", "family", "market", "probability", "outcome", "score",
            "market_probability", "market_score", "resolved_at", "scored_at",
        )  # fmt: skip


class BrierScoreViewSet(AgentRecordViewSet):
    """The bet-sizing score of each purchase on a market that resolved with a winner."""

    queryset = BrierScore.objects.select_related("agent__cohort", "agent__family")
    serializer_class = BrierScoreSerializer
    filters = {**AgentRecordViewSet.filters, "updated_since": ChangedSinceFilter(brier_score_changed)}
    filterset_fields = ("trade", "agent", "market", "outcome", "resolved_at", "scored_at")
    orderings = ("id", "score", "resolved_at", "scored_at")
