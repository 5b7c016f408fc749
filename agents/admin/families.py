"""Admin of families, releases, line-ups and agents."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from agents.models import (
    Agent,
    Decision,
    Family,
    JournalEntry,
    LineUp,
    LineUpEntry,
    Position,
    Release,
    Settlement,
    Trade,
)
from agents.services.lineups import preview_lineup
from foundation import clock
from foundation.admin.filters import FilterPreset, NewestRelatedFilter, preset_filter
from foundation.admin.readonly import (
    BoundedSearchAdmin,
    FixedOnceUsedAdmin,
    ReadOnlyAdmin,
    ReadOnlyTabularInline,
    changelist_link,
    verbatim,
)
from foundation.json_lines import json_line, json_number
from markets.services.cache_versions import delete_competition_row, save_competition_row

TOKEN_PRICES = ("price_prompt", "price_completion")
MILLION_PRICES = ("prompt_per_million", "completion_per_million")
"""The columns that show them."""
PRICE_HELP = {
    "price_prompt": "US dollars for one prompt token: $1.75 per million is 0.00000175.",
    "price_completion": "US dollars for one completion token: $14 per million is 0.000014.",
}
MILLION = 1_000_000
"""Prices are shown for so many tokens, as providers state them."""


def price_column(kind: str, *, relation: str = "") -> Callable[[Any, Any], str]:
    """A method of an admin class that shows the price of prompt or completion tokens; of a relation if named."""

    @admin.display(description=f"$ per million {kind} tokens", ordering=None if relation else f"price_{kind}")
    def column(_: Any, row: Any) -> str:
        return json_number(getattr(getattr(row, relation) if relation else row, f"price_{kind}") * MILLION)

    return column


@admin.register(Family)
class FamilyAdmin(BoundedSearchAdmin):
    list_display = ("slug", "display_name", "provider", "active", "external", "release")
    list_filter = ("active", "external", "provider")
    search_fields = ("slug", "display_name", "provider")
    actions: Any = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Family]:
        return Family.objects.with_release(timezone.now())

    def get_readonly_fields(self, request: HttpRequest, obj: Family | None = None) -> tuple[str, ...]:
        # A slug joins results over years; the others follow from a registration.
        registered = ("external", "track", "maker")
        return ("slug", *registered) if obj else registered

    def release(self, family: Any) -> str | None:
        return family.release

    def save_model(self, request: HttpRequest, obj: Family, form: Any, change: bool) -> None:
        save_competition_row(obj)

    def delete_model(self, request: HttpRequest, obj: Family) -> None:
        delete_competition_row(obj)


@admin.register(Release)
class ReleaseAdmin(FixedOnceUsedAdmin):
    list_display = ("model_id", "family", "display_name", "effective_from", *MILLION_PRICES)
    list_filter = ("family",)
    list_select_related = ("family",)
    search_fields = ("model_id", "display_name", "family__slug")
    date_hierarchy = "effective_from"
    autocomplete_fields = ("family",)
    readonly_fields = MILLION_PRICES
    actions: Any = None
    prompt_per_million, completion_per_million = price_column("prompt"), price_column("completion")

    def get_fields(self, request: HttpRequest, obj: Release | None = None) -> Any:
        """The form's fields: prices are edited for one token, and shown for a million."""
        hidden = MILLION_PRICES if obj is None else TOKEN_PRICES if self.is_used(obj) else ()
        return [name for name in super().get_fields(request, obj) if name not in hidden]

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        return super().get_form(request, obj, change, help_texts=PRICE_HELP, **options)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return BoundedSearchAdmin.has_change_permission(self, request, obj)  # also in use, for its declared cut-off

    def get_readonly_fields(self, request: HttpRequest, obj: Release | None = None) -> tuple[str, ...]:
        """All fields of a release in use but the one that no catalogue fills."""
        if obj is None or not self.is_used(obj):
            return self.readonly_fields
        fields = [field.name for field in Release._meta.fields if field.editable and field.name != "declared_cutoff"]
        return (*fields, *MILLION_PRICES)

    def is_used(self, row: Release) -> bool:
        return row.agents.exists() or row.line_up_entries.exists()


class LineUpEntryInline(ReadOnlyTabularInline):
    model = LineUpEntry
    fields = ("position", "family", "release", *MILLION_PRICES, "price_overrides")
    readonly_fields = (*MILLION_PRICES, "price_overrides")
    list_select_related = ("family", "release")
    prompt_per_million = price_column("prompt", relation="release")
    completion_per_million = price_column("completion", relation="release")

    @admin.display(description="prices under conditions")
    def price_overrides(self, entry: LineUpEntry) -> SafeString | str:
        overrides = entry.release.price_overrides
        return verbatim("\n".join(map(json_line, overrides))) if overrides else "none"


@admin.register(LineUp)
class LineUpAdmin(ReadOnlyAdmin):
    """Proposed and decided line-ups; the operator dashboard proposes, approves and rejects them."""

    list_display = ("id", "status", "proposed_at", "proposed_by", "reason", "decided_by", "effective_from")
    list_filter = ("status",)
    search_fields = ("=id", "proposed_by", "reason", "decided_by")
    date_hierarchy = "proposed_at"
    inlines = (LineUpEntryInline,)
    fields = (
        "status", ("proposed_at", "proposed_by"), "reason", "catalogue", "changes",
        ("decided_at", "decided_by"), "decision_reason", "effective_from",
    )  # fmt: skip

    @admin.display(description="findings in the catalogue")
    def catalogue(self, line_up: LineUp) -> SafeString:
        return verbatim("\n".join(map(str, line_up.findings)) or "none")

    def changes(self, line_up: LineUp) -> SafeString:
        """The changes that an approval would make now."""
        if line_up.status != LineUp.Status.PROPOSED:
            return verbatim("already decided")
        preview = preview_lineup(line_up, at=clock.now())
        return verbatim("\n".join(map(str, preview.changes)) or "nothing")


@admin.register(LineUpEntry)
class LineUpEntryAdmin(ReadOnlyAdmin):
    list_display = ("line_up", "position", "family", "release")
    list_filter = ("family", ("line_up", NewestRelatedFilter))
    list_select_related = ("line_up", "family", "release")
    list_defer = ("line_up__findings",)
    search_fields = ("=line_up__id", "family__slug", "release__model_id")
    ordering = ("-line_up_id", "position")


@admin.register(Agent)
class AgentAdmin(ReadOnlyAdmin):
    list_display = ("display_name", "cohort", "family", "model_id", "status", "cash", "records")
    list_filter = (
        preset_filter(
            FilterPreset("lagging", "below their starting balance", lambda rows, now: rows.filter(
                cash__lt=F("cohort__methodology__starting_balance"), cohort__status="completed")),
            FilterPreset("playing", "playing now", lambda rows, now: rows.playing()),
        ),
        "status", "family", ("cohort", NewestRelatedFilter),
    )  # fmt: skip
    list_select_related = ("cohort", "family")
    search_fields = ("display_name", "model_id", "family__slug", "=cohort__number")
    ordering = ("-cohort_id", "family_id")
    exclude = TOKEN_PRICES
    readonly_fields = (*MILLION_PRICES, "records")
    prompt_per_million, completion_per_million = price_column("prompt"), price_column("completion")

    def records(self, agent: Agent) -> SafeString:
        links = []
        for model in (Decision, Position, Trade, Settlement, JournalEntry):
            link = changelist_link(model, str(model._meta.verbose_name_plural), agent__id__exact=agent.pk)
            links.append((link,))
        return format_html_join(" · ", "{}", links)
