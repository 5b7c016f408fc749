"""REST views of trades, positions, settlements, reversals and the cash journal."""

from collections.abc import Sequence
from typing import Any

from rest_framework import serializers

from agents.list_filters import position_changed, settlement_changed, trade_changed
from agents.models import Family, JournalEntry, ManualSettlement, Position, Reversal, Settlement, Trade
from cohorts.models import Cohort
from foundation.rest.cursors import StrictCursorPagination
from foundation.rest.filters import ChangedSinceFilter, ReferenceFilter
from foundation.rest.serializers import DecimalStringField, MoneyStringField, ReadSerializer, limit_related_fields
from foundation.rest.viewsets import ReadOnlyViewSet

AGENT_COLUMNS = ("agent__cohort__number", "agent__family__slug")
"""The columns of the agent that `AgentRecordSerializer` reads."""


class AgentRecordSerializer(ReadSerializer):
    """Base for records of an agent: its cohort and its family."""

    cohort = serializers.IntegerField(source="agent.cohort.number", read_only=True)
    family = serializers.CharField(source="agent.family.slug", read_only=True)


class AgentRecordViewSet(ReadOnlyViewSet):
    """Base of the views of such records: filters for cohort and family besides its own fields."""

    filters = {
        "cohort": ReferenceFilter(Cohort, "agent__cohort", by="number"),
        "family": ReferenceFilter(Family, "agent__family", by="slug"),
    }


class TradeSerializer(AgentRecordSerializer):
    side = serializers.CharField(source="outcome.side", read_only=True)

    class Meta:
        model = Trade
        fields = (
            "id", "agent", "cohort", "family", "decision", "sequence", "position", "market", "side", "kind",
            "shares", "price", "amount", "implied_confidence", "cost_basis", "realized_pnl", "executed_at",
        )  # fmt: skip


class TradeViewSet(AgentRecordViewSet):
    """Trades: purchases and sales at the frozen price of their universe."""

    # Few columns, because a decision's detail loads them as instances; the list reads tuples.
    queryset = limit_related_fields(Trade.objects.all(), *AGENT_COLUMNS, "outcome__side")
    filters = {**AgentRecordViewSet.filters, "updated_since": ChangedSinceFilter(trade_changed)}
    serializer_class = TradeSerializer
    filterset_fields = ("agent", "decision", "position", "market", "kind", "executed_at")
    reads_tuples = True
    orderings = ("id", "executed_at", "amount")
    pagination_class = StrictCursorPagination


class PositionSerializer(AgentRecordSerializer):
    side = serializers.CharField(read_only=True)
    entry_price = DecimalStringField(allow_null=True, help_text="The mean price paid for the shares still held.")
    price = DecimalStringField(allow_null=True, help_text="The last accepted price; null unless open.")
    value = MoneyStringField(help_text="Shares times that price, or the cost basis.")
    unrealized_pnl = MoneyStringField(allow_null=True, help_text="Null unless open.")

    class Meta:
        model = Position
        fields = (
            "id", "agent", "cohort", "family", "market", "side", "status", "shares", "cost_basis", "entry_price",
            "price", "value", "unrealized_pnl", "realized_pnl", "opened_at", "closed_at",
        )  # fmt: skip


class PositionViewSet(AgentRecordViewSet):
    """Positions, open and closed, at the last accepted prices."""

    queryset = limit_related_fields(Position.objects.all(), *AGENT_COLUMNS, "outcome__side", "outcome__price")
    serializer_class = PositionSerializer
    filters = {**AgentRecordViewSet.filters, "updated_since": ChangedSinceFilter(position_changed)}
    filterset_fields = ("agent", "market", "status", "opened_at", "closed_at")
    orderings = ("id", "cost_basis", "realized_pnl", "opened_at", "closed_at")


class ManualSettlementSerializer(ReadSerializer):
    class Meta:
        model = ManualSettlement
        fields = ("reason", "source")


class SettlementSerializer(AgentRecordSerializer):
    side = serializers.CharField(source="position.outcome.side", read_only=True)
    manual = ManualSettlementSerializer(
        read_only=True, allow_null=True,
        help_text="The reason and source where an operator settled the market; null where the venue resolved it.",
    )  # fmt: skip

    class Meta:
        model = Settlement
        fields = (
            "id", "position", "agent", "cohort", "family", "market", "side", "kind", "shares", "cost_basis",
            "payout", "realized_pnl", "settled_at", "manual",
        )  # fmt: skip


class SettlementViewSet(AgentRecordViewSet):
    """Settlements of positions: paid, worthless or refunded."""

    queryset = limit_related_fields(Settlement.objects.all(), *AGENT_COLUMNS, "position__outcome__side")
    serializer_class = SettlementSerializer
    filters = {**AgentRecordViewSet.filters, "updated_since": ChangedSinceFilter(settlement_changed)}
    filterset_fields = ("agent", "market", "position", "kind", "settled_at")
    orderings = ("id", "payout", "realized_pnl", "settled_at")
    ordering = ("-settled_at",)

    def complete_rows(self, settlements: Sequence[Any]) -> Sequence[Any]:
        """The settlements with `manual` set, in one query, if the field is shown."""
        if self.is_requested("manual"):
            markets = {settlement.market_id for settlement in settlements}
            manual = ManualSettlement.objects.filter(kind=ManualSettlement.Kind.SETTLEMENT, market__in=markets)
            by_market = {row.market_id: row for row in manual}
            for settlement in settlements:
                settlement.manual = by_market.get(settlement.market_id)
        return settlements


class ReversalSerializer(AgentRecordSerializer):
    side = serializers.CharField(source="position.outcome.side", read_only=True)
    settlement = serializers.IntegerField(source="position.settlement.pk", read_only=True)

    class Meta:
        model = Reversal
        fields = (
            "id", "settlement", "position", "sequence", "agent", "cohort", "family", "market", "side", "kind",
            "previous_payout", "payout", "reason", "reversed_at",
        )  # fmt: skip


class ReversalViewSet(AgentRecordViewSet):
    """Corrections of wrong settlements by an operator, with the payouts before and after."""

    queryset = Reversal.objects.all()
    serializer_class = ReversalSerializer
    reads_tuples = True
    filterset_fields = ("agent", "market", "position", "kind", "reversed_at")
    orderings = ("id", "reversed_at")
    ordering = ("-reversed_at",)


class JournalEntrySerializer(AgentRecordSerializer):
    class Meta:
        model = JournalEntry
        fields = (
            "id", "agent", "cohort", "family", "sequence", "kind", "amount", "balance", "trade", "settlement",
            "occurred_at",
        )  # fmt: skip


class JournalViewSet(AgentRecordViewSet):
    """The cash journal: every change of an agent's cash, with the balance after it."""

    queryset = JournalEntry.objects.all()
    serializer_class = JournalEntrySerializer
    filterset_fields = ("agent", "trade", "settlement", "kind", "occurred_at")
    reads_tuples = True
    orderings = ("id", "sequence", "occurred_at")
