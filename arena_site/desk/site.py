"""The admin with the desk as its front page, and a page for each act."""

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils import timezone

from markets import clock


class DeskSite(AdminSite):
    site_header = "Forecaster Arena"
    site_title = "Forecaster Arena"
    index_title = "The desk"

    def get_urls(self) -> list[Any]:
        return [path("desk/<slug:name>/", self.admin_view(self.act), name="act"), *super().get_urls()]

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """The desk for whoever may look at runs; the list of records for everybody."""
        from arena_site.desk.acts import ACTS
        from arena_site.desk.front import desk_at

        context = dict(extra_context or {})
        if request.user.has_perm("markets.view_run"):  # type: ignore[union-attr]
            context["desk"] = desk_at(clock.now(), timezone.now())
        context["acts"] = [act for act in ACTS.values() if request.user.has_perm(act.permission)]  # type: ignore[union-attr]
        return super().index(request, context)

    def act(self, request: HttpRequest, name: str) -> HttpResponse:
        from arena_site.desk.views import act_page

        return act_page(request, name, self)
