"""What was asked and answered: decisions, elicitations, calls, forecasts and their chain; for the operator."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from agents.models import (
    Chain,
    ChainLink,
    Decision,
    Elicitation,
    Forecast,
    Instruction,
    ModelCall,
    RefusedForecast,
    Release,
    Trade,
)
from agents.models.task import Status
from cohorts.weeks import WEEK, week_start
from markets.list_filters import Look, NewestRelated, above_median, days, looks
from markets.models import QuestionSet, QuestionSheet
from markets.quick_lists import QuickAdmin, values_of
from markets.readonly import ReadOnlyAdmin, ReadOnlyStack, ReadOnlyTable, verbatim, verbatim_json


def this_week(rows: Any, now: datetime) -> Any:
    """Tasks of the week that holds an instant."""
    return rows.filter(rows.model.of_week(week_start(now)))


TASKS = (
    Look("failed", "failed this week", lambda rows, now: this_week(rows, now).filter(status=Status.FAILED)),
    Look("missed", "missed this week", lambda rows, now: this_week(rows, now).filter(status=Status.MISSED)),
    Look(
        "dead", "claimed by a worker that is gone",
        lambda rows, now: rows.filter(status=Status.CLAIMED, lease_until__lte=timezone.now()),
    ),
    Look("dear", "cost above this week's median", lambda rows, now: above_median(this_week(rows, now), "cost_usd")),
)  # fmt: skip


class Verbatim:
    """What a model said, byte for byte."""

    @admin.display(description="retry note")
    def note(self, call: ModelCall) -> SafeString:
        return verbatim(call.retry_note)

    def answer(self, call: ModelCall) -> SafeString:
        return verbatim(call.content or call.refusal)

    @admin.display(description="raw response")
    def raw(self, call: ModelCall) -> SafeString:
        return verbatim(call.raw_response)


class CallStack(Verbatim, ReadOnlyStack):
    model = ModelCall
    fields = (
        ("result", "late", "http_status", "finish_reason"),
        ("model", "returned_model", "provider"),
        ("tokens_input", "tokens_output", "tokens_reasoning", "cost_usd", "cost_stated"),
        ("sent_at", "latency_ms", "attempt"),
        "prompt_sha256", "error", "note", "answer", "raw",
    )  # fmt: skip
    readonly_fields = ("note", "answer", "raw")


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
class DecisionAdmin(QuickAdmin):
    list_display = ("agent", "cohort", "week", "status", "action", "fallback", "cost", "decided_at", "error")
    list_filter = (
        looks(
            *TASKS,
            Look("fallback", "fallback holds", lambda rows, now: rows.filter(fallback=True)),
            Look("refused", "with a rejected instruction", lambda rows, now: rows.filter(
                Exists(Instruction.objects.filter(call__decision=OuterRef("pk"), executed=False)))),
        ),
        "status", "action", "fallback", "agent__family", ("cohort", NewestRelated),
    )  # fmt: skip
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
        "why", "error", "instructions", "chain_entry", "system_prompt", "user_prompt",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Decision]:
        return super().get_queryset(request).with_costs()  # type: ignore[attr-defined]

    def tokens_input(self, decision: Any) -> int:
        return decision.tokens_input or 0

    def tokens_output(self, decision: Any) -> int:
        return decision.tokens_output or 0

    def cost(self, decision: Any) -> str:
        return f"{decision.cost_usd or Decimal(0):.6f}"

    def chain_entry(self, decision: Decision) -> SafeString:
        return _link_of(decision)

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


def _link_of(task: Any) -> SafeString:
    """Its place in the chain, with the hash of its record and of the link."""
    link = ChainLink.objects.filter(**{task._meta.model_name: task.pk}).first()
    if link is None:
        return verbatim("none: only what is completed is chained")
    path = reverse("admin:agents_chainlink_change", args=[link.pk])
    hashes = verbatim(f"record   {link.record_sha256}\nprevious {link.previous}\nlink     {link.sha256}")
    return format_html('<a href="{}">{} no. {}</a>{}', path, link.protocol, link.sequence, hashes)


@admin.register(ModelCall)
class ModelCallAdmin(Verbatim, ReadOnlyAdmin):
    list_display = ("id", "of", "sequence", "model", "result", "http_status", "cost_usd", "latency_ms", "sent_at")
    list_filter = (
        looks(
            Look("failed", "failed this week", lambda rows, now: _calls_of_week(rows, now).filter(
                result__in=("failed", "malformed", "declined", "refused", "lost"))),
            Look("late", "answered too late", lambda rows, now: rows.filter(late=True)),
            Look("dear", "cost above this week's median", lambda rows, now: above_median(
                _calls_of_week(rows, now), "cost_usd")),
            Look("slow", "over a minute", lambda rows, now: rows.filter(latency_ms__gt=60_000)),
        ),
        "result", days("sent_at"), "decision__agent__family",
    )  # fmt: skip
    list_select_related = ("decision__agent", "elicitation__release", "elicitation__sheet__question_set")
    list_defer = (
        "raw_response", "content", "parsed", "portfolio_block", "positions_block", "decision__reasoning",
        "elicitation__sheet__block",
    )  # fmt: skip
    search_fields = ("=decision__id", "=elicitation__id", "=generation_id", "=idempotency_key", "=prompt_sha256")
    search_help_text = "The id of a decision, an elicitation or a generation, a key or a prompt's hash."
    ordering = ("-pk",)

    fields = (
        "of", ("sequence", "attempt", "idempotency_key"), ("result", "late", "http_status", "finish_reason"),
        ("model", "returned_model", "provider", "generation_id"),
        ("tokens_input", "tokens_output", "tokens_reasoning", "cost_usd", "cost_stated"),
        ("sent_at", "latency_ms"), "prompt_sha256", "error", "answer", "raw", "note", "prompt",
    )  # fmt: skip

    @admin.display(description="system and user message, as sent")
    def prompt(self, call: ModelCall) -> SafeString:
        return verbatim(f"{call.system_prompt}\n\n{call.user_prompt}")

    @admin.display(description="asked for")
    def of(self, call: ModelCall) -> str:
        return str(call.task)


def _calls_of_week(rows: Any, now: datetime) -> Any:
    start = week_start(now)
    return rows.filter(sent_at__gte=start, sent_at__lt=start + WEEK)


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

    def decision(self, instruction: Instruction) -> Decision | None:
        return instruction.call.decision


class ForecastTable(ReadOnlyTable):
    model = Forecast
    fields = ("question", "probabilities", "normalised", "rationale")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Forecast]:
        return super().get_queryset(request).select_related("family", "question").defer("question__rules")


@admin.register(Elicitation)
class ElicitationAdmin(QuickAdmin):
    """A sheet of questions put to a release, with every call and what was forecast."""

    list_display = ("id", "release", "asked", "arm", "status", "declined", "cost", "made_at", "error")
    list_filter = (
        looks(*TASKS, Look("declined", "declined", lambda rows, now: rows.filter(declined=True))),
        "status", "declined", "family", "sheet__arm",
    )  # fmt: skip
    list_select_related = ("release", "sheet__question_set")
    list_defer = ("sheet__block",)
    search_fields = ("=id", "release__model_id", "family__slug", "error")
    date_hierarchy = "made_at"
    ordering = ("-pk",)
    inlines = (CallStack, ForecastTable)
    fields = (
        ("family", "release", "methodology", "sheet"),
        ("status", "declined", "refusals"),
        ("made_at", "lease_until"),
        ("tokens_input", "tokens_output", "cost"),
        "error", "refused", "chain_entry", "system_prompt", "user_prompt",
    )  # fmt: skip

    def chain_entry(self, elicitation: Elicitation) -> SafeString:
        return _link_of(elicitation)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Elicitation]:
        return super().get_queryset(request).with_costs()  # type: ignore[attr-defined]

    def asked(self, elicitation: Elicitation) -> str:
        return str(elicitation.sheet.question_set)

    def arm(self, elicitation: Elicitation) -> str:
        return elicitation.sheet.arm

    def tokens_input(self, elicitation: Any) -> int:
        return elicitation.tokens_input or 0

    def tokens_output(self, elicitation: Any) -> int:
        return elicitation.tokens_output or 0

    def cost(self, elicitation: Any) -> str:
        return f"{elicitation.cost_usd or Decimal(0):.6f}"

    def refused(self, elicitation: Elicitation) -> SafeString:
        """Questions for which no forecast could be taken, and why."""
        refusals = RefusedForecast.objects.filter(call__elicitation=elicitation).select_related("entry__question")
        lines = [(refusal.entry.question.text, refusal.reason) for refusal in refusals]
        return format_html_join("", "<p>{}: {}</p>", lines or [("none", "every forecast could be taken")])

    def system_prompt(self, elicitation: Elicitation) -> SafeString:
        call = elicitation.calls.last()
        return verbatim(call.system_prompt if call else "nothing was sent")

    def user_prompt(self, elicitation: Elicitation) -> SafeString:
        """As it was sent with the last call."""
        call = elicitation.calls.last()
        return verbatim(call.user_prompt if call else "nothing was sent")


@admin.register(Forecast)
class ForecastAdmin(ReadOnlyAdmin):
    list_display = ("id", "family", "question", "arm", "probabilities", "normalised", "made_at")
    list_filter = (
        ("arm", values_of(QuestionSheet, "arm")), ("methodology", values_of(QuestionSet, "methodology")),
        "family", "normalised", days("made_at"),
    )  # fmt: skip
    list_select_related = ("family", "question")
    list_defer = ("rationale", "question__rules")
    search_fields = ("=id", "question__text")
    ordering = ("-made_at", "-pk")


@admin.register(RefusedForecast)
class RefusedForecastAdmin(ReadOnlyAdmin):
    list_display = ("id", "release", "question", "stated", "reason")
    list_filter = ("call__elicitation__family",)
    list_select_related = ("call__elicitation__release", "entry__question")
    list_defer = ("call__raw_response", "call__content", "call__parsed", "entry__question__rules")
    search_fields = ("reason", "entry__question__text")
    ordering = ("-pk",)

    def release(self, refused: RefusedForecast) -> Release | None:
        return refused.call.elicitation.release if refused.call.elicitation else None

    def question(self, refused: RefusedForecast) -> str:
        return refused.entry.question.text


@admin.register(Chain)
class ChainAdmin(ReadOnlyAdmin):
    list_display = ("protocol", "length", "head")
    search_fields = ("=head",)
    ordering = ("protocol",)


@admin.register(ChainLink)
class ChainLinkAdmin(ReadOnlyAdmin):
    list_display = ("id", "protocol", "sequence", "decision", "elicitation", "record_sha256", "sha256")
    list_filter = ("protocol",)
    list_select_related = ("decision__agent", "elicitation__release", "elicitation__sheet__question_set")
    list_defer = ("decision__reasoning", "elicitation__sheet__block")
    search_fields = ("=sha256", "=record_sha256")
    search_help_text = "A link's hash, or that of its record."
    ordering = ("-pk",)
