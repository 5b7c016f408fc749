"""Serializers that both kinds of task share: costs and model calls."""

from decimal import Decimal
from typing import Any

from rest_framework import serializers

from agents.models import ModelCall
from markets.foundation.json_lines import decimal_text
from markets.foundation.rest import ReadSerializer

COST_FIELDS = ("tokens_input", "tokens_output", "cost_usd")
"""The fields that need `TaskQuerySet.with_costs`."""


class TaskCostSerializer(ReadSerializer):
    """Tokens and cost of a task, summed over all its calls."""

    tokens_input = serializers.SerializerMethodField(help_text="Sum over all calls; 0 if none stated any.")
    tokens_output = serializers.SerializerMethodField(help_text="Sum over all calls; 0 if none stated any.")
    cost_usd = serializers.SerializerMethodField(help_text="Sum over all calls, failed ones included.")

    def get_tokens_input(self, task: Any) -> int:
        return task.tokens_input or 0

    def get_tokens_output(self, task: Any) -> int:
        return task.tokens_output or 0

    def get_cost_usd(self, task: Any) -> str:
        return decimal_text(task.cost_usd or Decimal(0))


class ModelCallSerializer(ReadSerializer):
    portfolio = serializers.CharField(source="portfolio_block", read_only=True)
    positions = serializers.CharField(source="positions_block", read_only=True)
    questions = serializers.CharField(source="questions_block", read_only=True)

    class Meta:
        model = ModelCall
        fields = (
            "sequence", "attempt", "model", "returned_model", "provider", "quantization", "generation_id",
            "idempotency_key", "prompt_sha256", "portfolio", "positions", "awaiting", "retry_note", "questions",
            "parameters", "result", "late", "raw_response", "content", "refusal", "parsed", "finish_reason",
            "http_status", "error", "tokens_input", "tokens_output", "tokens_reasoning", "cost_usd", "cost_source",
            "booked_usd", "reconciled_at", "latency_ms", "sent_at",
        )  # fmt: skip
