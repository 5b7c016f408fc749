"""The admin site: the operator dashboard as its front page, and a page for each action."""

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils import timezone

from foundation import clock


class OperatorSite(AdminSite):
    site_header = "Forecaster Arena"
    site_title = "Forecaster Arena"
    index_title = "Operator dashboard"
    enable_nav_sidebar = False  # lists need the width

    def get_urls(self) -> list[Any]:
        return [path("actions/<slug:name>/", self.admin_view(self.action), name="action"), *super().get_urls()]

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """The overview for accounts that may view runs; the list of models for all others."""
        from arena_site.dashboard.actions import GROUPS
        from arena_site.dashboard.concerns import concerns
        from arena_site.dashboard.overview import Overview

        context = dict(extra_context or {})
        has_perm = request.user.has_perm  # type: ignore[union-attr]
        if has_perm("foundation.view_run"):
            context["overview"] = Overview(clock.now(), timezone.now())
            context["concerns"] = concerns(context["overview"])
        context["actions"], context["action_groups"] = [], []
        for title, group in GROUPS.items():
            if permitted := [action for action in group.values() if has_perm(action.permission)]:
                context["actions"] += permitted
                context["action_groups"].append((title, permitted))
        return super().index(request, context)

    def action(self, request: HttpRequest, name: str) -> HttpResponse:
        from arena_site.dashboard.views import ActionPage

        return ActionPage(request, name, self).response()
