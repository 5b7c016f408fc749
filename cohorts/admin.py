"""Admin of methodologies, cohorts and missed weeks."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from cohorts.forms import MethodologyForm, differences
from cohorts.models import Cohort, Methodology, MissedWeek
from foundation.admin.readonly import FixedOnceUsedAdmin, ReadOnlyAdmin
from markets.services.cache_versions import delete_competition_row, save_competition_row

CONFIRMED = "_differences_seen"


@admin.register(Methodology)
class MethodologyAdmin(FixedOnceUsedAdmin):
    """Methodology versions: editable until a cohort uses them, copied to make a new one.

    Saving first shows the differences to the stored or copied version, which must be confirmed.
    """

    form = MethodologyForm

    list_display = ("version", "title", "published_at", "decision_weeks", "universe_size")
    search_fields = ("version", "title")
    ordering = ("-version",)
    actions: Any = None
    readonly_fields = ("sha256",)

    class Media:
        css = {"all": ["arena/admin.css"]}

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """The values of the copied or current version, without those that must be unique to a version."""
        source = _source(request)
        unique = ("id", "version", "published_at")
        return {f.name: getattr(source, f.name) for f in Methodology._meta.concrete_fields if f.name not in unique}

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if request.method == "POST" and CONFIRMED not in request.POST:
            edited = self.get_object(request, object_id) if object_id else None  # type: ignore[arg-type]
            has_permission = (
                self.has_change_permission(request, edited) if object_id else self.has_add_permission(request)
            )
            # Loaded again, because the form writes to `edited`.
            before = Methodology.objects.get(pk=(edited or _source(request)).pk)
            form = self.get_form(request, edited, change=bool(object_id))(request.POST, instance=edited)
            if has_permission and form.is_valid():
                return self._confirm_differences(request, before, form.instance)
        return super().changeform_view(request, object_id, form_url, extra_context)

    def _confirm_differences(self, request: HttpRequest, before: Methodology, after: Methodology) -> HttpResponse:
        posted: list[tuple[str, Any]] = []
        for name, values in request.POST.lists():
            if name != "csrfmiddlewaretoken":
                posted += [(name, value) for value in values]
        context = {
            "title": f"{after.version}: what differs from {before.version}",
            "opts": self.opts,
            "differences": differences(before, after),
            "posted": posted,
            "confirmed": CONFIRMED,
        }
        request.current_app = self.admin_site.name  # type: ignore[attr-defined]
        page = "admin/cohorts/methodology/differences.html"
        return TemplateResponse(request, page, self.admin_site.each_context(request) | context)

    def save_model(self, request: HttpRequest, obj: Methodology, form: Any, change: bool) -> None:
        save_competition_row(obj)

    def delete_model(self, request: HttpRequest, obj: Methodology) -> None:
        delete_competition_row(obj)

    def is_used(self, row: Methodology) -> bool:
        return row.cohorts.exists()


def _source(request: HttpRequest) -> Methodology:
    """The version that a new one is copied from: the one in `?copy=`, else the current one."""
    number = request.GET.get("copy", "")
    methodology = Methodology.objects.filter(pk=number).first() if number.isascii() and number.isdigit() else None
    return methodology or Methodology.objects.current()


@admin.register(Cohort)
class CohortAdmin(ReadOnlyAdmin):
    list_display = (
        "number",
        "week_start",
        "methodology",
        "status",
        "agents",
        "started_at",
        "completed_at",
        "voided_at",
    )
    list_filter = ("status", "methodology")
    search_fields = ("=number",)
    date_hierarchy = "week_start"
    ordering = ("-number",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Cohort]:
        # Prefetched: a join would repeat the methodology's prompts in every row.
        return super().get_queryset(request).prefetch_related("methodology").annotate(agent_count=Count("agents"))

    def agents(self, cohort: Any) -> int:
        return cohort.agent_count


@admin.register(MissedWeek)
class MissedWeekAdmin(ReadOnlyAdmin):
    list_display = ("week_start", "recorded_at", "reason")
    search_fields = ("reason",)
    date_hierarchy = "week_start"
    ordering = ("-week_start",)
