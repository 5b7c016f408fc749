"""REST views of trades, positions, settlements, reversals and the cash journal."""

from decimal import Decimal

from rest_framework import serializers

from agents.api.agent_records import AGENT_COLUMNS, AgentRecordSerializer, AgentRecordViewSet
from agents.models import JournalEntry, Position, Reversal, Settlement, Trade
from markets.foundation.json_lines import decimal_text
from markets.foundation.rest.serializers import DecimalStringField, MoneyStringField, limit_related_fields


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
    queryset = limit_related_fields(
        Trade.objects.select_related("agent__cohort", "agent__family", "outcome"), *AGENT_COLUMNS, "outcome__side"
    )
    serializer_class = TradeSerializer
    filterset_fields = ("agent", "decision", "position", "market", "kind", "executed_at")
    reads_tuples = True
    orderings = ("id", "executed_at", "amount")


class PositionSerializer(AgentRecordSerializer):
    side = serializers.CharField(read_only=True)
    entry_price = DecimalStringField(allow_null=True, help_text="The mean price paid for the shares still held.")
    price = serializers.SerializerMethodField(help_text="The last accepted price; null unless open.")
    value = serializers.SerializerMethodField("get_worth", help_text="Shares times that price, or the cost basis.")
    unrealized_pnl = serializers.SerializerMethodField(help_text="Null unless open.")

    class Meta:
        model = Position
        fields = (
            "id", "agent", "cohort", "family", "market", "side", "status", "shares", "cost_basis", "entry_price",
            "price", "value", "unrealized_pnl", "realized_pnl", "opened_at", "closed_at",
        )  # fmt: skip

    def _price(self, position: Position) -> Decimal | None:
        return position.outcome.price if position.status == Position.Status.OPEN else None

    def get_price(self, position: Position) -> str | None:
        price = self._price(position)
        return None if price is None else decimal_text(price)

    def get_worth(self, position: Position) -> str:
        return decimal_text(position.value_at(self._price(position)), places=2)

    def get_unrealized_pnl(self, position: Position) -> str | None:
        if position.status != Position.Status.OPEN:
            return None
        return decimal_text(position.value_at(self._price(position)) - position.cost_basis, places=2)


class PositionViewSet(AgentRecordViewSet):
    """Positions, open and closed, at the last accepted prices."""

    queryset = limit_related_fields(
        Position.objects.select_related("agent__cohort", "agent__family", "outcome"),
        *AGENT_COLUMNS, "outcome__side", "outcome__price",
    )  # fmt: skip
    serializer_class = PositionSerializer
    filterset_fields = ("agent", "market", "status", "opened_at", "closed_at")
    orderings = ("id", "cost_basis", "realized_pnl", "opened_at", "closed_at")


class SettlementSerializer(AgentRecordSerializer):
    side = serializers.CharField(source="position.side", read_only=True)

    class Meta:
        model = Settlement
        fields: tuple[str, ...] = (
            "id", "position", "agent", "cohort", "family", "market", "side", "kind", "shares", "cost_basis",
            "payout", "realized_pnl", "settled_at",
        )  # fmt: skip


class SettlementViewSet(AgentRecordViewSet):
    """Settlements of positions: won, lost or refunded."""

    queryset = limit_related_fields(
        Settlement.objects.select_related("agent__cohort", "agent__family", "position__outcome"),
        *AGENT_COLUMNS, "position__outcome__side",
    )  # fmt: skip
    serializer_class = SettlementSerializer
    filterset_fields = ("agent", "market", "position", "kind", "settled_at")
    orderings = ("id", "payout", "realized_pnl", "settled_at")
    ordering = ("-settled_at",)


class ReversalSerializer(AgentRecordSerializer):
    side = serializers.CharField(source="position.side", read_only=True)
    previous_payout = MoneyStringField(help_text="The payout before the reversal.")
    settlement = serializers.IntegerField(source="position.settlement.pk", read_only=True)

    class Meta:
        model = Reversal
        fields = (
            "id", "settlement", "position", "sequence", "agent", "cohort", "family", "market", "side", "kind",
            "previous_payout", "payout", "reason", "reversed_at",
        )  # fmt: skip


class ReversalViewSet(AgentRecordViewSet):
    """Corrections of wrong settlements by an operator, with the payouts before and after."""

    queryset = Reversal.objects.select_related(
        "agent__cohort", "agent__family", "position__outcome", "position__settlement"
    )
    serializer_class = ReversalSerializer
    filterset_fields = ("agent", "market", "position", "kind", "reversed_at")
    orderings = ("id", "reversed_at")
    ordering = ("-reversed_at",)


class JournalEntrySerializer(AgentRecordSerializer):
    balance = MoneyStringField(help_text="Cash after this entry.")

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
