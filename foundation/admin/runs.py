"""Admin of runs: their list, and a page that follows a run while it goes on."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone

from foundation.admin.filters import FilterPreset, preset_filter, recent_days_filter
from foundation.admin.readonly import ReadOnlyAdmin
from foundation.commands import figure_label, figure_text
from foundation.models import Run


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a run's log, with the admin page of the row that it concerns, if it concerns one."""

    at: datetime | None
    level: str
    text: str
    path: str


def log_lines(run: Run, site: admin.AdminSite) -> Iterator[LogLine]:
    """The lines of a run's log; those of older runs have neither time nor level."""
    models = {model._meta.model_name: model for model in site._registry}
    for line in run.log:
        if not isinstance(line, dict):
            yield LogLine(None, "", str(line), "")
            continue
        address = ""
        for name, key in line.get("rows", {}).items():
            if name in models and not address:
                address = reverse(f"admin:{models[name]._meta.app_label}_{name}_change", args=[key])
        yield LogLine(datetime.fromisoformat(line["at"]), line["level"], line["text"], address)


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    list_display = ("kind", "at", "status", "started_at", "finished_at", "error")
    list_filter = (
        preset_filter(
            FilterPreset("failed", "failed or lost in the last 24 hours", lambda rows, now: rows.filter(
                status__in=(Run.Status.FAILED, Run.Status.LOST), started_at__gt=now - timedelta(hours=24))),
            FilterPreset("long", "running for over an hour", lambda rows, now: rows.filter(
                status=Run.Status.RUNNING, started_at__lt=now - timedelta(hours=1))),
        ),
        "status", "kind", recent_days_filter("started_at"),
    )  # fmt: skip
    list_defer = ("log", "progress")
    search_fields = ("kind", "error")
    date_hierarchy = "at"
    ordering = ("-started_at", "-pk")
    fields = ("kind", "at", "status", "started_at", "finished_at", "error", "summary")
    change_form_template = "admin/foundation/run/change_form.html"

    def get_urls(self) -> list[Any]:
        live = path("<int:run_id>/live/", self.admin_site.admin_view(self.live_view), name="foundation_run_live")
        return [live, *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).as_seen(timezone.now())  # type: ignore[attr-defined]

    def live_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """The part of a run's page that changes while it goes on."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        run = self.get_queryset(request).filter(pk=run_id).first()
        if run is None:
            raise Http404
        return TemplateResponse(request, "admin/foundation/run/live.html", self._live_context(run))

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **options: Any) -> Any:
        run: Run = context["original"]
        context |= self._live_context(run)
        return super().render_change_form(request, context, *args, **options)

    def _live_context(self, run: Run) -> dict[str, Any]:
        figures = run.summary if isinstance(run.summary, dict) else {"summary": run.summary}
        return {
            "run": run,
            "now": timezone.now(),
            "lines": list(log_lines(run, self.admin_site)),
            "figures": [(figure_label(name), figure_text(value)) for name, value in figures.items()],
        }
