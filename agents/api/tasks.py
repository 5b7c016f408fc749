"""REST views of decisions and elicitations, with their costs, calls and instructions."""

from typing import Any

from django.db.models import Prefetch, QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.api.ledger import AGENT_COLUMNS, AgentRecordSerializer, TradeSerializer, TradeViewSet
from agents.api.sealed import SealableSerializer, SealableViewSet, SealedUntilField
from agents.letters import published
from agents.list_filters import decision_changed, matching_decisions
from agents.models import Decision, Elicitation, Family, Instruction, ModelCall
from cohorts.conditions import stored_conditions
from cohorts.models import Cohort, Methodology
from foundation.rest.filters import (
    ChangedSinceFilter,
    KnownNamesFilter,
    ReferenceFilter,
    SearchFilter,
)
from foundation.rest.serializers import DecimalStringField, ReadSerializer, limit_related_fields

COST_FIELDS = ("tokens_input", "tokens_output", "cost_usd")
"""The fields that need `TaskQuerySet.with_costs`."""


class TaskCostSerializer(SealableSerializer):
    """Tokens and cost of a task, summed over all its calls."""

    open_fields = frozenset({"id", "status", "sealed_until"})
    sealed_until = SealedUntilField()
    tokens_input = serializers.IntegerField(read_only=True, help_text="Sum over all calls; 0 if none stated any.")
    tokens_output = serializers.IntegerField(read_only=True, help_text="Sum over all calls; 0 if none stated any.")
    cost_usd = DecimalStringField(help_text="Sum over all calls, failed ones included.")


class SearchResultSerializer(serializers.Serializer):
    """A search result as the model saw it; strangers wrote it."""

    url = serializers.CharField(help_text="Empty unless it is a web address.")
    title = serializers.CharField(help_text="May be empty.")
    content = serializers.CharField(help_text="The pieces of the page that the gateway cut out for it.")


class ModelCallSerializer(ReadSerializer):
    portfolio = serializers.CharField(source="portfolio_block", read_only=True)
    positions = serializers.CharField(source="positions_block", read_only=True)
    questions = serializers.CharField(source="questions_block", read_only=True)
    results = SearchResultSerializer(
        many=True, read_only=True, allow_null=True, help_text="Null where it had no search tool."
    )

    class Meta:
        model = ModelCall
        fields = (
            "sequence", "attempt", "model", "returned_model", "provider", "quantization", "generation_id",
            "idempotency_key", "prompt_sha256", "portfolio", "positions", "awaiting", "retry_note", "questions",
            "parameters", "result", "late", "raw_response", "content", "refusal", "parsed", "finish_reason",
            "http_status", "error", "tokens_input", "tokens_output", "tokens_reasoning", "cost_usd", "cost_source",
            "booked_usd", "reconciled_at", "searches", "results", "search_cost_usd", "excluded", "latency_ms",
            "sent_at",
        )  # fmt: skip


class TaskViewSet(SealableViewSet):
    """Base of the views of tasks: their costs, and in the detail their calls."""

    calls = ModelCall.objects.order_by("sequence")
    fields_of_calls = frozenset({"calls"})
    """The fields that read the calls."""

    def get_queryset(self) -> Any:
        tasks: Any = super().get_queryset()
        if self.is_requested(*COST_FIELDS):
            tasks = tasks.with_costs(published(ModelCall.objects.all()))
        if self.is_requested(*self.fields_of_calls):
            tasks = tasks.prefetch_related(Prefetch("calls", self.calls))
        return tasks


class DecisionSerializer(TaskCostSerializer, AgentRecordSerializer):
    open_fields = TaskCostSerializer.open_fields | {"agent", "cohort", "family", "universe", "week", "decided_at"}

    class Meta:
        model = Decision
        fields: tuple[str, ...] = (
            "id", "agent", "cohort", "family", "universe", "week", "action", "status", "fallback", "reasoning",
            "error", "tokens_input", "tokens_output", "cost_usd", "decided_at", "nonce", "sealed_until",
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
        instructions: list[Instruction] = []
        for call in decision.calls.all():
            instructions += call.instructions.all()
        return list(InstructionSerializer(instructions, many=True).data)


class DecisionViewSet(TaskViewSet):
    """Decisions of agents, newest first; the detail has the prompt, all calls and all instructions."""

    queryset = limit_related_fields(Decision.objects.all(), *AGENT_COLUMNS)
    serializer_class = DecisionSerializer
    detail_serializer_class = DecisionDetailSerializer
    filterset_fields = ("agent", "universe", "week", "action", "status", "fallback", "decided_at")
    filters = {
        "cohort": ReferenceFilter(Cohort, by="number"), "family": ReferenceFilter(Family, "agent__family", by="slug"),
        "search": SearchFilter(matching_decisions), "updated_since": ChangedSinceFilter(decision_changed),
    }  # fmt: skip
    orderings = ("id", "week", "decided_at")
    ordering = ("-pk",)

    calls = TaskViewSet.calls.prefetch_related("instructions__call")
    fields_of_calls = frozenset({"system_prompt", "user_prompt", "calls", "instructions"})

    def get_queryset(self) -> QuerySet[Decision]:
        decisions = super().get_queryset()
        if self.is_requested("system_prompt", "user_prompt"):
            decisions = decisions.select_related("cohort__methodology", "universe")
        if self.is_requested("trades"):
            decisions = decisions.prefetch_related(Prefetch("trades", TradeViewSet.queryset.order_by("sequence")))
        return decisions if self.is_requested("reasoning") else decisions.defer("reasoning")


class ElicitationSerializer(TaskCostSerializer):
    open_fields = TaskCostSerializer.open_fields | {"family", "release", "methodology", "arm", "day", "made_at"}

    family = serializers.CharField(source="family.slug", read_only=True)
    methodology = serializers.CharField(source="batch.question_set.methodology", read_only=True)
    arm = serializers.CharField(source="batch.arm", read_only=True)
    day = serializers.DateTimeField(source="batch.question_set.day", read_only=True)

    class Meta:
        model = Elicitation
        fields: tuple[str, ...] = (
            "id", "family", "release", "methodology", "arm", "day", "status", "declined", "error", "tokens_input",
            "tokens_output", "cost_usd", "made_at", "nonce", "sealed_until",
        )  # fmt: skip


class ElicitationDetailSerializer(ElicitationSerializer):
    calls = ModelCallSerializer(many=True, read_only=True)

    class Meta(ElicitationSerializer.Meta):
        fields = (*ElicitationSerializer.Meta.fields, "calls")


class ElicitationViewSet(TaskViewSet):
    """The tasks of the forecast protocol: one release and one batch of questions each, with tokens and cost."""

    queryset = Elicitation.objects.select_related("family", "batch__question_set").defer("batch__block")
    serializer_class = ElicitationSerializer
    detail_serializer_class = ElicitationDetailSerializer
    filterset_fields = ("release", "status", "declined", "made_at")
    filters = {
        "family": ReferenceFilter(Family, by="slug"),
        "methodology": ReferenceFilter(Methodology, by="version"),
        "arm": KnownNamesFilter("arm", lambda: stored_conditions().names(), field_name="batch__arm"),
    }
    orderings = ("id", "made_at")
