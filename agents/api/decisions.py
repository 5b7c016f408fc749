"""REST views of decisions, with their calls and instructions."""

from typing import Any

from django.db.models import Prefetch, QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.api.agent_records import AGENT_COLUMNS, AgentRecordFilterSet, AgentRecordSerializer
from agents.api.ledger import TradeSerializer, TradeViewSet
from agents.api.tasks import COST_FIELDS, ModelCallSerializer, TaskCostSerializer
from agents.models import Decision, Instruction, ModelCall
from cohorts.models import Cohort
from markets.foundation.rest import ReadOnlyViewSet, ReadSerializer, ReferenceFilter, limit_related_fields


class DecisionSerializer(TaskCostSerializer, AgentRecordSerializer):
    class Meta:
        model = Decision
        fields: tuple[str, ...] = (
            "id", "agent", "cohort", "family", "universe", "week", "action", "status", "fallback", "reasoning",
            "error", "tokens_input", "tokens_output", "cost_usd", "decided_at",
        )  # fmt: skip


class InstructionSerializer(ReadSerializer):
    call = serializers.IntegerField(source="call.sequence", read_only=True, help_text="The sequence of its call.")

    class Meta:
        model = Instruction
        fields = ("call", "sequence", "kind", "payload", "executed", "reason")


class DecisionDetailSerializer(DecisionSerializer):
    system_prompt = serializers.SerializerMethodField()
    user_prompt = serializers.SerializerMethodField(
        help_text="Byte for byte as sent with the last call; null if nothing was sent."
    )
    calls = ModelCallSerializer(many=True, read_only=True)
    instructions = serializers.SerializerMethodField()
    trades = TradeSerializer(many=True, read_only=True)

    class Meta(DecisionSerializer.Meta):
        fields = (*DecisionSerializer.Meta.fields, "system_prompt", "user_prompt", "calls", "instructions", "trades")

    def get_system_prompt(self, decision: Decision) -> str | None:
        calls = list(decision.calls.all())
        return calls[-1].system_prompt if calls else None

    def get_user_prompt(self, decision: Decision) -> str | None:
        calls = list(decision.calls.all())
        return calls[-1].user_prompt if calls else None

    @extend_schema_field(InstructionSerializer(many=True))
    def get_instructions(self, decision: Decision) -> list[dict[str, Any]]:
        instructions = [instruction for call in decision.calls.all() for instruction in call.instructions.all()]
        return list(InstructionSerializer(instructions, many=True).data)


class DecisionFilterSet(AgentRecordFilterSet):
    cohort = ReferenceFilter(Cohort, by="number")

    class Meta:
        model = Decision
        fields = ("agent", "universe", "week", "action", "status", "fallback", "decided_at")


class DecisionViewSet(ReadOnlyViewSet):
    """Decisions of agents, newest first; the detail has the prompt, all calls and all instructions."""

    queryset = limit_related_fields(Decision.objects.select_related("agent__cohort", "agent__family"), *AGENT_COLUMNS)
    serializer_class = DecisionSerializer
    detail_serializer_class = DecisionDetailSerializer
    filterset_class = DecisionFilterSet
    orderings = ("id", "week", "decided_at")
    ordering = ("-pk",)

    def get_queryset(self) -> QuerySet[Decision]:
        decisions: Any = super().get_queryset()
        if self.is_requested(*COST_FIELDS):
            decisions = decisions.with_costs()
        if self.is_requested("system_prompt", "user_prompt", "calls", "instructions"):
            calls = ModelCall.objects.order_by("sequence").prefetch_related("instructions__call")
            decisions = decisions.select_related("cohort__methodology", "universe").prefetch_related(
                Prefetch("calls", calls)
            )
        if self.is_requested("trades"):
            decisions = decisions.prefetch_related(Prefetch("trades", TradeViewSet.queryset.order_by("sequence")))
        return decisions if self.is_requested("reasoning") else decisions.defer("reasoning")
