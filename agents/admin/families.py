"""Who plays: families, releases, line-ups, agents; for the operator."""

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
from agents.services.lineups import lineup_preview
from markets import clock
from markets.blocks import json_number
from markets.list_filters import Look, NewestRelated, looks
from markets.quick_lists import QuickAdmin
from markets.readonly import ReadOnlyAdmin, ReadOnlyTable, list_link, verbatim


@admin.register(Family)
class FamilyAdmin(admin.ModelAdmin):
    list_display = ("slug", "display_name", "provider", "active", "external", "release")
    list_filter = ("active", "external", "provider")
    search_fields = ("slug", "display_name", "provider")
    ordering = ("pk",)
    actions: Any = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Family]:
        return Family.objects.with_release(timezone.now())

    def get_readonly_fields(self, request: HttpRequest, obj: Family | None = None) -> tuple[str, ...]:
        # A slug joins results over years; whose agent it is is settled by its registration.
        return ("slug", "external") if obj else ("external",)

    def release(self, family: Any) -> str | None:
        return family.release


@admin.register(Release)
class ReleaseAdmin(admin.ModelAdmin):
    """A release can be corrected until an agent plays with it or a line-up names it. It plays by a line-up alone."""

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
    return release is not None and (release.agents.exists() or release.line_up_entries.exists())


class LineUpTable(ReadOnlyTable):
    model = LineUpEntry
    fields = ("position", "family", "release", "price_prompt", "price_completion")
    readonly_fields = ("price_prompt", "price_completion")

    def get_queryset(self, request: HttpRequest) -> QuerySet[LineUpEntry]:
        return super().get_queryset(request).select_related("family", "release")

    @admin.display(description="$ per prompt token")
    def price_prompt(self, entry: LineUpEntry) -> str:
        return json_number(entry.release.price_prompt)

    @admin.display(description="$ per completion token")
    def price_completion(self, entry: LineUpEntry) -> str:
        return json_number(entry.release.price_completion)


@admin.register(LineUp)
class LineUpAdmin(QuickAdmin):
    """Proposals and what became of them; the desk's acts propose, approve and reject."""

    list_display = ("id", "status", "proposed_at", "proposed_by", "reason", "decided_by", "effective_from")
    list_filter = ("status",)
    search_fields = ("=id", "proposed_by", "reason", "decided_by")
    date_hierarchy = "proposed_at"
    ordering = ("-pk",)
    inlines = (LineUpTable,)
    fields = (
        "status", ("proposed_at", "proposed_by"), "reason", "catalogue", "changes",
        ("decided_at", "decided_by"), "decided_because", "effective_from",
    )  # fmt: skip

    @admin.display(description="what the catalogue said")
    def catalogue(self, line_up: LineUp) -> SafeString:
        return verbatim("\n".join(map(str, line_up.findings)) or "it was not asked")

    def changes(self, line_up: LineUp) -> SafeString:
        """What approving it now would change."""
        if line_up.status != LineUp.Status.PROPOSED:
            return verbatim("it was decided on")
        seen = lineup_preview(line_up, at=clock.now())
        return verbatim("\n".join(change.says for change in seen.changes) or "nothing")


@admin.register(LineUpEntry)
class LineUpEntryAdmin(ReadOnlyAdmin):
    list_display = ("line_up", "position", "family", "release")
    list_filter = ("family", ("line_up", NewestRelated))
    list_select_related = ("line_up", "family", "release")
    list_defer = ("line_up__findings",)
    search_fields = ("=line_up__id", "family__slug", "release__model_id")
    ordering = ("-line_up_id", "position")


@admin.register(Agent)
class AgentAdmin(ReadOnlyAdmin):
    list_display = ("display_name", "cohort", "family", "model_id", "status", "cash", "records")
    list_filter = (
        looks(
            Look("lagging", "below their starting balance", lambda rows, now: rows.filter(
                cash__lt=F("cohort__methodology__starting_balance"), cohort__status="completed")),
            Look("playing", "playing now", lambda rows, now: rows.playing()),
        ),
        "status", "family", ("cohort", NewestRelated),
    )  # fmt: skip
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
