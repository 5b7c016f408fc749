"""Families, releases, agents, decisions and the ledger, for the operator."""

from decimal import Decimal
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from agents.api import with_release
from agents.models import (
    Agent,
    Decision,
    Family,
    Instruction,
    JournalEntry,
    ModelCall,
    Position,
    Release,
    Settlement,
    Trade,
)
from markets.models import Market
from markets.readonly import ReadOnlyAdmin, ReadOnlyStack, ReadOnlyTable, list_link, verbatim, verbatim_json


@admin.register(Family)
class FamilyAdmin(admin.ModelAdmin):
    list_display = ("slug", "display_name", "provider", "active", "release")
    list_filter = ("active", "provider")
    search_fields = ("slug", "display_name", "provider")
    ordering = ("pk",)
    actions: Any = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Family]:
        return with_release(super().get_queryset(request), timezone.now())

    def get_readonly_fields(self, request: HttpRequest, obj: Family | None = None) -> tuple[str, ...]:
        return ("slug",) if obj else ()  # it joins results over years

    def release(self, family: Any) -> str | None:
        return family.release


@admin.register(Release)
class ReleaseAdmin(admin.ModelAdmin):
    """A release can be corrected until an agent plays with it."""

    list_display = ("model_id", "family", "display_name", "effective_from", "price_prompt", "price_completion")
    list_filter = ("family",)
    list_select_related = ("family",)
    search_fields = ("model_id", "display_name", "family__slug")
    date_hierarchy = "effective_from"
    autocomplete_fields = ("family",)
    ordering = ("family_id", "-effective_from")
    actions: Any = None

    def has_change_permission(self, request: HttpRequest, obj: Release | None = None) -> bool:
        return super().has_change_permission(request, obj) and not _in_use(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Release | None = None) -> bool:
        return super().has_delete_permission(request, obj) and not _in_use(obj)


def _in_use(release: Release | None) -> bool:
    return release is not None and release.agents.exists()


@admin.register(Agent)
class AgentAdmin(ReadOnlyAdmin):
    list_display = ("display_name", "cohort", "family", "model_id", "status", "cash", "records")
    list_filter = ("status", "family", "cohort")
    list_select_related = ("cohort", "family")
    search_fields = ("display_name", "model_id", "family__slug", "=cohort__number")
    ordering = ("-cohort_id", "family_id")
    readonly_fields = ("records",)

    def records(self, agent: Agent) -> SafeString:
        models = (Decision, Position, Trade, Settlement, JournalEntry)
        links = (
            (list_link(model, str(model._meta.verbose_name_plural), agent__id__exact=agent.pk),) for model in models
        )
        return format_html_join(" · ", "{}", links)


class CallStack(ReadOnlyStack):
    model = ModelCall
    fields = (
        ("result", "late", "http_status", "finish_reason"),
        ("model", "returned_model", "provider"),
        ("tokens_input", "tokens_output", "tokens_reasoning", "cost_usd", "cost_stated"),
        ("sent_at", "latency_ms", "attempt"),
        "prompt_sha256", "error", "note", "answer", "raw",
    )  # fmt: skip
    readonly_fields = ("note", "answer", "raw")

    @admin.display(description="retry note")
    def note(self, call: ModelCall) -> SafeString:
        return verbatim(call.retry_note)

    def answer(self, call: ModelCall) -> SafeString:
        return verbatim(call.content or call.refusal)

    @admin.display(description="raw response")
    def raw(self, call: ModelCall) -> SafeString:
        return verbatim(call.raw_response)


class TradeTable(ReadOnlyTable):
    model = Trade
    fields = (
        "sequence",
        "kind",
        "market",
        "outcome",
        "shares",
        "price",
        "amount",
        "implied_confidence",
        "realized_pnl",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Trade]:
        return super().get_queryset(request).select_related("market", "outcome")


@admin.register(Decision)
class DecisionAdmin(ReadOnlyAdmin):
    list_display = ("agent", "cohort", "week", "status", "action", "fallback", "cost", "decided_at", "error")
    list_filter = ("status", "action", "fallback", "agent__family", "cohort")
    list_select_related = ("agent", "cohort")
    list_defer = ("reasoning",)
    search_fields = ("=id", "agent__display_name", "reasoning", "error")
    date_hierarchy = "decided_at"
    ordering = ("-pk",)
    inlines = (CallStack, TradeTable)
    fields = (
        ("agent", "cohort", "week", "universe"),
        ("status", "action", "fallback", "refusals"),
        ("decided_at", "lease_until"),
        ("tokens_input", "tokens_output", "cost"),
        "why", "error", "instructions", "system_prompt", "user_prompt",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Decision]:
        return super().get_queryset(request).with_costs()  # type: ignore[attr-defined]

    def tokens_input(self, decision: Any) -> int:
        return decision.tokens_input or 0

    def tokens_output(self, decision: Any) -> int:
        return decision.tokens_output or 0

    def cost(self, decision: Any) -> str:
        return f"{decision.cost_usd or Decimal(0):.6f}"

    @admin.display(description="reasoning")
    def why(self, decision: Decision) -> SafeString:
        return verbatim(decision.reasoning)

    def system_prompt(self, decision: Decision) -> SafeString:
        call = decision.calls.last()
        return verbatim(call.system_prompt if call else "nothing was sent")

    def user_prompt(self, decision: Decision) -> SafeString:
        """As it was sent with the last call."""
        call = decision.calls.last()
        return verbatim(call.user_prompt if call else "nothing was sent")

    def instructions(self, decision: Decision) -> SafeString:
        """What every answer asked for, and what became of it."""
        asked = Instruction.objects.filter(call__decision=decision).select_related("call").order_by("call", "sequence")
        rows = (
            (i.call.sequence, i.sequence, i.kind, verbatim_json(i.payload), "executed" if i.executed else i.reason)
            for i in asked
        )
        head = format_html_join("", "<th>{}</th>", [(name,) for name in ("call", "no.", "kind", "asked", "result")])
        body = format_html_join("", "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>", rows)
        return format_html('<table class="plain"><tr>{}</tr>{}</table>', head, body)


@admin.register(ModelCall)
class ModelCallAdmin(ReadOnlyAdmin):
    list_display = ("id", "decision", "sequence", "model", "result", "http_status", "cost_usd", "latency_ms", "sent_at")
    list_filter = ("result", "late", "sent_at", "decision__agent__family")
    list_select_related = ("decision__agent",)
    list_defer = ("raw_response", "content", "parsed", "portfolio_block", "positions_block", "decision__reasoning")
    search_fields = ("=decision__id", "=generation_id", "=idempotency_key", "=prompt_sha256")
    search_help_text = "A decision's id, a generation's, a key or a prompt's hash."
    ordering = ("-pk",)


@admin.register(Instruction)
class InstructionAdmin(ReadOnlyAdmin):
    list_display = ("id", "decision", "kind", "payload", "executed", "reason")
    list_filter = ("executed", "kind")
    list_select_related = ("call__decision__agent",)
    list_defer = (
        "call__raw_response",
        "call__content",
        "call__parsed",
        "call__portfolio_block",
        "call__positions_block",
    )
    search_fields = ("reason", "=call__decision__id")
    ordering = ("-pk",)

    def decision(self, instruction: Instruction) -> Decision:
        return instruction.call.decision


@admin.register(Position)
class PositionAdmin(ReadOnlyAdmin):
    list_display = ("id", "agent", "market", "outcome", "status", "shares", "cost_basis", "realized_pnl", "opened_at")
    list_filter = ("status", "agent__family", "agent__cohort")
    list_select_related = ("agent", "market", "outcome")
    list_defer = ("market__description",)
    search_fields = ("=id", "market__question", "agent__display_name")
    date_hierarchy = "opened_at"
    ordering = ("-pk",)


@admin.register(Trade)
class TradeAdmin(ReadOnlyAdmin):
    list_display = ("id", "agent", "kind", "market", "outcome", "shares", "price", "amount", "executed_at")
    list_filter = ("kind", "agent__family", "agent__cohort", "executed_at")
    list_select_related = ("agent", "market", "outcome")
    list_defer = ("market__description",)
    search_fields = ("=id", "market__question", "agent__display_name")
    ordering = ("-pk",)


@admin.register(Settlement)
class SettlementAdmin(ReadOnlyAdmin):
    list_display = ("id", "agent", "market", "kind", "shares", "cost_basis", "payout", "realized_pnl", "settled_at")
    list_filter = ("kind", "agent__family", "agent__cohort")
    list_select_related = ("agent", "market")
    list_defer = ("market__description",)
    search_fields = ("=id", "market__question", "agent__display_name")
    date_hierarchy = "settled_at"
    ordering = ("-settled_at", "-pk")


@admin.register(JournalEntry)
class JournalEntryAdmin(ReadOnlyAdmin):
    list_display = ("id", "agent", "sequence", "kind", "amount", "balance", "market", "occurred_at")
    list_filter = ("kind", "agent__family", "agent__cohort", "occurred_at")
    list_select_related = ("agent", "trade__market", "settlement__market")
    search_fields = ("=id", "agent__display_name")
    ordering = ("-pk",)

    def market(self, entry: JournalEntry) -> Market | None:
        cause = entry.trade or entry.settlement
        return cause.market if cause else None
