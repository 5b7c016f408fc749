"""Families, releases, decisions and the ledger, for readers."""

from decimal import Decimal
from typing import Any, cast

from django.db.models import Prefetch, QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.models import (
    Decision,
    Family,
    Instruction,
    JournalEntry,
    ModelCall,
    Position,
    Release,
    Reversal,
    Settlement,
    Trade,
)
from agents.models.agent import FamilyQuerySet
from cohorts.models import Cohort
from markets.blocks import decimal_text
from markets.rest import DecimalText, Filters, Money, ReferenceFilter, Row, Rows, lean

ZERO = Decimal(0)


class ReleaseRow(Row):
    family = serializers.CharField(source="family.slug", read_only=True)

    class Meta:
        model = Release
        fields = ("id", "family", "model_id", "display_name", "price_prompt", "price_completion", "effective_from")


class ReleaseFilters(Filters):
    family = ReferenceFilter(Family, by="slug")

    class Meta:
        model = Release
        fields = {"effective_from": ["gte", "lt"]}


class Releases(Rows):
    """The exact models behind the families, with their prices per token."""

    queryset = Release.objects.all()
    serializer_class = ReleaseRow
    filterset_class = ReleaseFilters
    flat = True
    orderings = {"id": "pk", "family": "family__slug", "effective_from": "effective_from"}


class FamilyRow(Row):
    release = serializers.CharField(
        read_only=True, allow_null=True, help_text="The model behind it now, as its gateway names it."
    )

    class Meta:
        model = Family
        fields = ("slug", "display_name", "provider", "color", "active", "external", "release")


class FamilyFilters(Filters):
    class Meta:
        model = Family
        fields = {"active": ["exact"], "external": ["exact"]}


class Families(Rows):
    """Competitors: stable slots, whatever model is behind them."""

    queryset = Family.objects.all()
    serializer_class = FamilyRow
    filterset_class = FamilyFilters
    lookup_field = "slug"
    lookup_value_regex = r"[a-z0-9][a-z0-9.\-]*"
    orderings = {"slug": "slug", "display_name": "display_name", "provider": "provider"}

    def get_queryset(self) -> QuerySet[Family]:
        families = cast(FamilyQuerySet[Any], super().get_queryset())
        return families.with_release(timezone.now()) if self.shows("release") else families


OF_AGENT = ("agent__cohort__number", "agent__family__slug")
"""The columns that rows of an agent show of it."""


class OfAgent(Row):
    """What all rows of an agent name: the agent, its cohort, its family."""

    cohort = serializers.IntegerField(source="agent.cohort.number", read_only=True)
    family = serializers.CharField(source="agent.family.slug", read_only=True)


class OfAgentFilters(Filters):
    cohort = ReferenceFilter(Cohort, "agent__cohort", by="number")
    family = ReferenceFilter(Family, "agent__family", by="slug")


class TradeRow(OfAgent):
    side = serializers.CharField(source="outcome.side", read_only=True)

    class Meta:
        model = Trade
        fields = (
            "id", "agent", "cohort", "family", "decision", "sequence", "position", "market", "side", "kind",
            "shares", "price", "amount", "implied_confidence", "cost_basis", "realized_pnl", "executed_at",
        )  # fmt: skip


class TradeFilters(OfAgentFilters):
    class Meta:
        model = Trade
        fields = {
            "agent": ["exact"],
            "decision": ["exact"],
            "position": ["exact"],
            "market": ["exact"],
            "kind": ["exact"],
            "executed_at": ["gte", "lt"],
        }


class Trades(Rows):
    """Purchases and sales, each at the frozen price of its run."""

    # Lean for the decision that shows them; a list of them makes no instances.
    queryset = lean(
        Trade.objects.select_related("agent__cohort", "agent__family", "outcome"), *OF_AGENT, "outcome__side"
    )
    serializer_class = TradeRow
    filterset_class = TradeFilters
    flat = True
    orderings = {"id": "pk", "executed_at": "executed_at", "amount": "amount"}


class DecisionRow(OfAgent):
    tokens_input = serializers.SerializerMethodField(help_text="Summed over every call; 0 where none stated any.")
    tokens_output = serializers.SerializerMethodField(help_text="Summed over every call; 0 where none stated any.")
    cost_usd = serializers.SerializerMethodField(help_text="Summed over every call, failed ones too.")

    class Meta:
        model = Decision
        fields: tuple[str, ...] = (
            "id", "agent", "cohort", "family", "universe", "week", "action", "status", "fallback", "reasoning",
            "error", "tokens_input", "tokens_output", "cost_usd", "decided_at",
        )  # fmt: skip

    def get_tokens_input(self, decision: Any) -> int:
        return decision.tokens_input or 0

    def get_tokens_output(self, decision: Any) -> int:
        return decision.tokens_output or 0

    def get_cost_usd(self, decision: Any) -> str:
        return decimal_text(decision.cost_usd or ZERO)


class CallRow(Row):
    portfolio = serializers.CharField(source="portfolio_block", read_only=True)
    positions = serializers.CharField(source="positions_block", read_only=True)

    class Meta:
        model = ModelCall
        fields = (
            "sequence", "attempt", "model", "returned_model", "provider", "generation_id", "idempotency_key",
            "prompt_sha256", "portfolio", "positions", "awaiting", "retry_note", "result", "late", "raw_response",
            "content", "refusal", "parsed", "finish_reason", "http_status", "error", "tokens_input",
            "tokens_output", "tokens_reasoning", "cost_usd", "cost_stated", "latency_ms", "sent_at",
        )  # fmt: skip


class InstructionRow(Row):
    call = serializers.IntegerField(source="call.sequence", read_only=True, help_text="The sequence of its call.")

    class Meta:
        model = Instruction
        fields = ("call", "sequence", "kind", "payload", "executed", "reason")


class DecisionDetail(DecisionRow):
    system_prompt = serializers.SerializerMethodField()
    user_prompt = serializers.SerializerMethodField(
        help_text="Byte for byte as it was sent with the last call; null where nothing was sent."
    )
    calls = CallRow(many=True, read_only=True)
    instructions = serializers.SerializerMethodField()
    trades = TradeRow(many=True, read_only=True)

    class Meta(DecisionRow.Meta):
        fields = (*DecisionRow.Meta.fields, "system_prompt", "user_prompt", "calls", "instructions", "trades")

    def get_system_prompt(self, decision: Decision) -> str | None:
        calls = list(decision.calls.all())
        return calls[-1].system_prompt if calls else None

    def get_user_prompt(self, decision: Decision) -> str | None:
        calls = list(decision.calls.all())
        return calls[-1].user_prompt if calls else None

    @extend_schema_field(InstructionRow(many=True))
    def get_instructions(self, decision: Decision) -> list[dict[str, Any]]:
        of_calls = [instruction for call in decision.calls.all() for instruction in call.instructions.all()]
        return list(InstructionRow(of_calls, many=True).data)


class DecisionFilters(OfAgentFilters):
    cohort = ReferenceFilter(Cohort, by="number")

    class Meta:
        model = Decision
        fields = {
            "agent": ["exact"],
            "universe": ["exact"],
            "week": ["exact"],
            "action": ["exact"],
            "status": ["exact"],
            "fallback": ["exact"],
            "decided_at": ["gte", "lt"],
        }


class Decisions(Rows):
    """What agents decided, newest first; one of them with its prompt, every call and every instruction."""

    queryset = lean(Decision.objects.select_related("agent__cohort", "agent__family"), *OF_AGENT)
    serializer_class = DecisionRow
    detail_serializer_class = DecisionDetail
    filterset_class = DecisionFilters
    orderings = {"id": "pk", "week": "week", "decided_at": "decided_at"}
    ordering = ("-pk",)

    def get_queryset(self) -> QuerySet[Decision]:
        decisions: Any = super().get_queryset()
        if self.shows("tokens_input", "tokens_output", "cost_usd"):
            decisions = decisions.with_costs()
        if self.shows("system_prompt", "user_prompt", "calls", "instructions"):
            calls = ModelCall.objects.order_by("sequence").prefetch_related("instructions__call")
            decisions = decisions.select_related("cohort__methodology", "universe").prefetch_related(
                Prefetch("calls", calls)
            )
        if self.shows("trades"):
            decisions = decisions.prefetch_related(Prefetch("trades", Trades.queryset.order_by("sequence")))
        return decisions if self.shows("reasoning") else decisions.defer("reasoning")


class PositionRow(OfAgent):
    side = serializers.CharField(read_only=True)
    entry_price = DecimalText(allow_null=True, help_text="The mean price paid for the shares still held.")
    price = serializers.SerializerMethodField(help_text="The last accepted price; null unless open.")
    value = serializers.SerializerMethodField("get_worth", help_text="Shares at that price, else at cost.")
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


class PositionFilters(OfAgentFilters):
    class Meta:
        model = Position
        fields = {
            "agent": ["exact"],
            "market": ["exact"],
            "status": ["exact"],
            "opened_at": ["gte", "lt"],
            "closed_at": ["gte", "lt"],
        }


class Positions(Rows):
    """Shares held and once held, at the last accepted prices."""

    queryset = lean(
        Position.objects.select_related("agent__cohort", "agent__family", "outcome"),
        *OF_AGENT, "outcome__side", "outcome__price",
    )  # fmt: skip
    serializer_class = PositionRow
    filterset_class = PositionFilters
    orderings = {
        "id": "pk",
        "cost_basis": "cost_basis",
        "realized_pnl": "realized_pnl",
        "opened_at": "opened_at",
        "closed_at": "closed_at",
    }


class SettlementRow(OfAgent):
    side = serializers.CharField(source="position.side", read_only=True)

    class Meta:
        model = Settlement
        fields: tuple[str, ...] = (
            "id", "position", "agent", "cohort", "family", "market", "side", "kind", "shares", "cost_basis",
            "payout", "realized_pnl", "settled_at",
        )  # fmt: skip


class SettlementFilters(OfAgentFilters):
    class Meta:
        model = Settlement
        fields = {
            "agent": ["exact"],
            "market": ["exact"],
            "position": ["exact"],
            "kind": ["exact"],
            "settled_at": ["gte", "lt"],
        }


class Settlements(Rows):
    """The ends of positions: paid, worthless or refunded."""

    queryset = lean(
        Settlement.objects.select_related("agent__cohort", "agent__family", "position__outcome"),
        *OF_AGENT, "position__outcome__side",
    )  # fmt: skip
    serializer_class = SettlementRow
    filterset_class = SettlementFilters
    orderings = {"id": "pk", "payout": "payout", "realized_pnl": "realized_pnl", "settled_at": "settled_at"}
    ordering = ("-settled_at",)


class ReversalRow(OfAgent):
    side = serializers.CharField(source="position.side", read_only=True)
    taken_back = Money(help_text="What had been paid.")
    settlement = serializers.IntegerField(source="position.settlement.pk", read_only=True)

    class Meta:
        model = Reversal
        fields = (
            "id", "settlement", "position", "sequence", "agent", "cohort", "family", "market", "side", "kind",
            "taken_back", "payout", "reason", "reversed_at",
        )  # fmt: skip


class ReversalFilters(OfAgentFilters):
    class Meta:
        model = Reversal
        fields = {
            "agent": ["exact"],
            "market": ["exact"],
            "position": ["exact"],
            "kind": ["exact"],
            "reversed_at": ["gte", "lt"],
        }


class Reversals(Rows):
    """Settlements that proved wrong, made good by an operator: what was paid, and what should have been."""

    queryset = Reversal.objects.select_related(
        "agent__cohort", "agent__family", "position__outcome", "position__settlement"
    )
    serializer_class = ReversalRow
    filterset_class = ReversalFilters
    orderings = {"id": "pk", "reversed_at": "reversed_at"}
    ordering = ("-reversed_at",)


class JournalRow(OfAgent):
    balance = Money(help_text="Cash after this entry.")

    class Meta:
        model = JournalEntry
        fields = (
            "id", "agent", "cohort", "family", "sequence", "kind", "amount", "balance", "trade", "settlement",
            "occurred_at",
        )  # fmt: skip


class JournalFilters(OfAgentFilters):
    class Meta:
        model = JournalEntry
        fields = {
            "agent": ["exact"],
            "trade": ["exact"],
            "settlement": ["exact"],
            "kind": ["exact"],
            "occurred_at": ["gte", "lt"],
        }


class Journal(Rows):
    """Every change of every agent's cash, with the balance after it."""

    queryset = JournalEntry.objects.all()
    serializer_class = JournalRow
    filterset_class = JournalFilters
    flat = True
    orderings = {"id": "pk", "sequence": "sequence", "occurred_at": "occurred_at"}
