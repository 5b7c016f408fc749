"""Admin of tasks and their answers: decisions, elicitations, calls, instructions and forecasts."""

from datetime import datetime
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.views.main import ALL_VAR, PAGE_VAR, SEARCH_VAR, ChangeList
from django.db.models import Exists, OuterRef, QuerySet, Value
from django.http import HttpRequest, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from agents.admin.letters import LetterAdmin, readable, reads_sealed
from agents.letters import sealed, with_seals
from agents.models import (
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
from foundation.admin.filters import (
    FilterPreset,
    NewestRelatedFilter,
    preset_filter,
    recent_days_filter,
    related_values_filter,
    rows_above_median,
)
from foundation.admin.readonly import (
    ID_SEARCH_FIELD,
    ReadOnlyAdmin,
    ReadOnlyChangeList,
    ReadOnlyStackedInline,
    ReadOnlyTabularInline,
    cost_column,
    verbatim,
    verbatim_column,
    verbatim_json,
)
from markets.models import QuestionBatch, QuestionSet


def _tasks_of_week(rows: Any, now: datetime) -> Any:
    return rows.filter(rows.model.in_week(week_start(now)))


def _calls_of_week(rows: Any, now: datetime) -> Any:
    start = week_start(now)
    return rows.filter(sent_at__gte=start, sent_at__lt=start + WEEK)


TASK_PRESETS = (
    FilterPreset("week", "of this week", _tasks_of_week),
    FilterPreset("failed", "failed this week", lambda rows, now: _tasks_of_week(rows, now).filter(
        status=Status.FAILED)),
    FilterPreset("missed", "missed this week", lambda rows, now: _tasks_of_week(rows, now).filter(
        status=Status.MISSED)),
    FilterPreset("expired", "claimed, lease expired", lambda rows, now: rows.filter(
        status=Status.CLAIMED, lease_until__lte=timezone.now())),
    FilterPreset("expensive", "cost above this week's median", lambda rows, now: rows_above_median(
        _tasks_of_week(rows, now).filter(cost_usd__gt=0), "cost_usd")),
)  # fmt: skip
PRESETS_OF_STATES = frozenset({"week", "failed", "missed", "expired"})
"""The presets that tell nothing of an answer or its cost, so that they hold while tasks are sealed."""


class VerbatimCallFields:
    """Columns with the texts of a call, byte for byte."""

    retry_note_text = verbatim_column("retry_note", "retry note")
    raw_response_text = verbatim_column("raw_response", "raw response")

    def answer(self, call: ModelCall) -> SafeString:
        return verbatim(call.content or call.refusal)

    @admin.display(description="search results")
    def results_text(self, call: ModelCall) -> SafeString:
        return verbatim_json(call.results)


class ModelCallInline(VerbatimCallFields, ReadOnlyStackedInline):
    model = ModelCall
    fields = (
        ("result", "late", "http_status", "finish_reason"),
        ("model", "returned_model", "provider", "quantization"), "parameters",
        ("tokens_input", "tokens_output", "tokens_reasoning", "cost_usd", "cost_source", "booked_usd", "reconciled_at"),
        ("searches", "search_cost_usd", "excluded"), ("sent_at", "latency_ms", "attempt"),
        "prompt_sha256", "error", "retry_note_text", "answer", "results_text", "raw_response_text",
    )  # fmt: skip
    readonly_fields = ("retry_note_text", "answer", "results_text", "raw_response_text")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return readable(request, super().get_queryset(request))  # type: ignore[no-any-return]


class TradeInline(ReadOnlyTabularInline):
    model = Trade
    fields = (
        "sequence", "kind", "market", "outcome", "shares", "price", "amount", "implied_confidence", "realized_pnl",
    )  # fmt: skip
    list_select_related = ("market", "outcome")


class ForecastInline(ReadOnlyTabularInline):
    model = Forecast
    fields = ("question", "probabilities", "normalised", "rationale")
    list_select_related = ("family", "question")
    list_defer = ("question__rules",)


class TaskChangeList(ReadOnlyChangeList):
    """A list of tasks. One that is filtered or ordered by anything but their states leaves the sealed ones out."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet:
        rows = super().get_queryset(request, exclude_parameters)
        selects_by_state = all(self._is_open(name, str(value)) for name, value in request.GET.items())
        return rows if selects_by_state else rows.exclude(sealed(rows.model))

    def _is_open(self, name: str, value: str) -> bool:
        """Whether a parameter of the address tells nothing of what a task's answer is; a search looks for itself."""
        if name == "preset":
            return value in PRESETS_OF_STATES
        open_names = {PAGE_VAR, ALL_VAR, SEARCH_VAR, "id", "status", *self.model_admin.open_fields}
        return name.partition("__")[0] in open_names


class TaskAdmin(ReadOnlyAdmin):
    """Base for both kinds of task: costs, prompt and place in the chain."""

    open_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields, beside id and status, that operators see of a sealed task."""
    ordering = ("-pk",)
    actions: Any = ("retry",)

    def has_retry_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("arena_site.run_jobs")  # type: ignore[union-attr]

    @admin.action(description="Retry the chosen ones", permissions=["retry"])
    def retry(self, request: HttpRequest, tasks: QuerySet[Any]) -> HttpResponseRedirect:
        query = {str(self.opts.model_name): [task.pk for task in tasks]}
        return HttpResponseRedirect(reverse("admin:action", args=["retry"], query=query))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        tasks: Any = super().get_queryset(request)
        tasks = tasks.annotate(is_sealed=Value(False)) if reads_sealed(request) else with_seals(tasks)
        return tasks.with_costs(readable(request, ModelCall.objects.all()))  # type: ignore[no-any-return]

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return TaskChangeList

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """The tasks that a search finds. One for words, which looks into texts, finds no sealed task."""
        rows, has_duplicates = super().get_search_results(request, queryset, search_term)
        if search_term and not all(map(ID_SEARCH_FIELD.fullmatch, self.get_search_fields(request))):
            rows = rows.exclude(sealed(rows.model))
        return rows, has_duplicates

    def tokens_input(self, task: Any) -> int:
        return task.tokens_input

    def tokens_output(self, task: Any) -> int:
        return task.tokens_output

    cost = cost_column("cost_usd")

    @admin.display(description="error", ordering="error")
    def public_error(self, task: Any) -> str:
        return "" if task.is_sealed else task.error

    def system_prompt(self, task: Any) -> SafeString:
        call = None if task.is_sealed else task.calls.last()
        return verbatim(call.system_prompt if call else "nothing was sent")

    @admin.display(description="user prompt of the last call")
    def user_prompt(self, task: Any) -> SafeString:
        call = None if task.is_sealed else task.calls.last()
        return verbatim(call.user_prompt if call else "nothing was sent")

    def chain_entry(self, task: Any) -> SafeString:
        """The task's link in the chain, with its hashes."""
        link = ChainLink.objects.filter(**{task._meta.model_name: task.pk}).first()
        if link is None:
            return verbatim("none: only completed tasks are in the chain")
        path = reverse("admin:agents_chainlink_change", args=[link.pk])
        hashes = verbatim(f"record   {link.record_sha256}\nprevious {link.previous}\nlink     {link.sha256}")
        return format_html('<a href="{}">{} no. {}</a>{}', path, link.protocol, link.sequence, hashes)


@admin.register(Decision)
class DecisionAdmin(TaskAdmin):
    open_fields = frozenset({"agent", "cohort", "week", "universe", "decided_at"})
    list_display = ("agent", "cohort", "week", "status", "action", "fallback", "cost", "decided_at", "public_error")
    list_filter = (
        preset_filter(
            *TASK_PRESETS,
            FilterPreset("fallback", "fallback holds", lambda rows, now: rows.filter(fallback=True)),
            FilterPreset("refused", "with a rejected instruction", lambda rows, now: rows.filter(
                Exists(Instruction.objects.filter(call__decision=OuterRef("pk"), executed=False)))),
        ),
        "status", "action", "fallback", "agent__family", ("cohort", NewestRelatedFilter),
    )  # fmt: skip
    list_select_related = ("agent", "cohort")
    list_defer = ("reasoning",)
    search_fields = ("=id", "agent__display_name", "reasoning", "error")
    date_hierarchy = "decided_at"
    inlines = (ModelCallInline, TradeInline)
    fields = (
        ("agent", "cohort", "week", "universe"),
        ("status", "action", "fallback", "refusals"),
        ("decided_at", "lease_until"),
        ("tokens_input", "tokens_output", "cost"),
        "reasoning_text", "public_error", "instructions", "chain_entry", "system_prompt", "user_prompt",
    )  # fmt: skip

    reasoning_text = verbatim_column("reasoning", "reasoning")

    def instructions(self, decision: Decision) -> SafeString:
        """The instructions of all answers, with their results."""
        instructions = Instruction.objects.filter(call__decision=decision).select_related("call")
        if decision.is_sealed:
            instructions = instructions.none()
        rows = []
        for row in instructions.order_by("call", "sequence"):
            result = "executed" if row.executed else row.reason
            rows.append((row.call.sequence, row.sequence, row.kind, verbatim_json(row.payload), result))
        head = format_html_join("", "<th>{}</th>", [(n,) for n in ("call", "no.", "kind", "instruction", "result")])
        body = format_html_join("", "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>", rows)
        return format_html('<table class="plain"><tr>{}</tr>{}</table>', head, body)


@admin.register(Elicitation)
class ElicitationAdmin(TaskAdmin):
    open_fields = frozenset({"family", "release", "methodology", "batch", "made_at"})
    list_display = ("id", "release", "question_set", "arm", "status", "declined", "cost", "made_at", "public_error")
    list_filter = (
        preset_filter(
            *TASK_PRESETS, FilterPreset("declined", "declined", lambda rows, now: rows.filter(declined=True))
        ),
        "status", "declined", "family", "batch__arm", ("batch__question_set", NewestRelatedFilter),
    )  # fmt: skip
    list_select_related = ("release", "batch__question_set")
    list_defer = ("batch__block",)
    search_fields = ("=id", "release__model_id", "family__slug", "error")
    date_hierarchy = "made_at"
    inlines = (ModelCallInline, ForecastInline)
    fields = (
        ("family", "release", "methodology", "batch"),
        ("status", "declined", "refusals"),
        ("made_at", "lease_until"),
        ("tokens_input", "tokens_output", "cost"),
        "public_error", "refused_forecasts", "chain_entry", "system_prompt", "user_prompt",
    )  # fmt: skip

    def question_set(self, elicitation: Elicitation) -> str:
        return str(elicitation.batch.question_set)

    def arm(self, elicitation: Elicitation) -> str:
        return elicitation.batch.arm

    def refused_forecasts(self, elicitation: Elicitation) -> SafeString:
        """The questions without a valid forecast, with the reasons."""
        refusals = RefusedForecast.objects.filter(call__elicitation=elicitation).select_related("entry__question")
        if elicitation.is_sealed:
            refusals = refusals.none()
        lines = [(refusal.entry.question.text, refusal.reason) for refusal in refusals]
        return format_html_join("", "<p>{}: {}</p>", lines or [("none", "every forecast was valid")])


@admin.register(ModelCall)
class ModelCallAdmin(VerbatimCallFields, LetterAdmin):
    list_display = ("id", "task", "sequence", "model", "result", "http_status", "cost", "latency_ms", "sent_at")
    list_filter = (
        preset_filter(
            FilterPreset("failed", "failed this week", lambda rows, now: _calls_of_week(rows, now).filter(
                result__in=("failed", "malformed", "cut", "declined", "refused", "lost"))),
            FilterPreset("trading", "counted as this week's trading", lambda rows, now: rows.filter(
                decision__in=_tasks_of_week(Decision.objects.all(), now))),
            FilterPreset("forecast", "counted as this week's forecasts", lambda rows, now: rows.filter(
                elicitation__in=_tasks_of_week(Elicitation.objects.all(), now))),
            FilterPreset("late", "answered after the claim was lost", lambda rows, now: rows.filter(late=True)),
            FilterPreset("expensive", "cost above this week's median", lambda rows, now: rows_above_median(
                _calls_of_week(rows, now), "cost_usd")),
            FilterPreset("booked", "cost booked, not confirmed", lambda rows, now: rows.filter(
                cost_source=ModelCall.CostSource.BOOKED)),
            FilterPreset("slow", "over a minute", lambda rows, now: rows.filter(latency_ms__gt=60_000)),
        ),
        "result", recent_days_filter("sent_at"), "decision__agent__family",
    )  # fmt: skip
    list_select_related = ("decision__agent", "elicitation__release", "elicitation__batch__question_set")
    list_defer = (
        "raw_response", "content", "parsed", "results", "portfolio_block", "positions_block", "questions_block",
        "decision__reasoning", "elicitation__batch__block",
    )  # fmt: skip
    search_fields = ("=decision__id", "=elicitation__id", "=generation_id", "=idempotency_key", "=prompt_sha256")
    search_help_text = "The id of a decision, an elicitation or a generation, an idempotency key or a prompt's hash."
    ordering = ("-pk",)
    fields = (
        "task", ("sequence", "attempt", "idempotency_key"), ("result", "late", "http_status", "finish_reason"),
        ("model", "returned_model", "provider", "quantization", "generation_id"), "parameters",
        ("tokens_input", "tokens_output", "tokens_reasoning", "cost_usd", "cost_source", "booked_usd", "reconciled_at"),
        ("searches", "search_cost_usd", "excluded"), ("sent_at", "latency_ms"),
        "prompt_sha256", "error", "answer", "results_text", "raw_response_text", "retry_note_text", "prompt",
    )  # fmt: skip

    cost = cost_column("cost_usd", ordering="cost_usd")

    def task(self, call: ModelCall) -> str:
        return str(call.task)

    @admin.display(description="system and user message, as sent")
    def prompt(self, call: ModelCall) -> SafeString:
        return verbatim(f"{call.system_prompt}\n\n{call.user_prompt}")


@admin.register(Instruction)
class InstructionAdmin(LetterAdmin):
    list_display = ("id", "decision", "kind", "payload", "executed", "reason")
    list_filter = ("executed", "kind")
    list_select_related = ("call__decision__agent",)
    list_defer = (
        "call__raw_response", "call__content", "call__parsed", "call__portfolio_block", "call__positions_block",
    )  # fmt: skip
    search_fields = ("reason", "=call__decision__id")
    ordering = ("-pk",)

    def decision(self, instruction: Instruction) -> Decision | None:
        return instruction.call.decision


@admin.register(Forecast)
class ForecastAdmin(ReadOnlyAdmin):
    list_display = ("id", "family", "question", "arm", "probabilities", "normalised", "made_at")
    list_filter = (
        ("arm", related_values_filter(QuestionBatch, "arm")),
        ("methodology", related_values_filter(QuestionSet, "methodology")),
        "family", "normalised", recent_days_filter("made_at"),
    )  # fmt: skip
    list_select_related = ("family", "question")
    list_defer = ("rationale", "question__rules")
    search_fields = ("=id", "question__text")


@admin.register(RefusedForecast)
class RefusedForecastAdmin(LetterAdmin):
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
