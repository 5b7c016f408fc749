"""Admin of alerts and their deliveries."""

from operator import attrgetter
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseRedirect
from django.urls import reverse

from foundation.admin.readonly import ReadOnlyAdmin, ReadOnlyTabularInline
from foundation.models import Alert, AlertItem, Notice


class AlertItemInline(ReadOnlyTabularInline):
    model = AlertItem
    fields = ("name", "subject", "cleared_at")


@admin.register(AlertItem)
class AlertItemAdmin(ReadOnlyAdmin):
    """The things that alerts are about."""

    list_display = ("name", "kind", "subject", "alert", "cleared_at")
    list_filter = (("cleared_at", admin.EmptyFieldListFilter), "kind")
    list_select_related = ("alert",)
    search_fields = ("name", "=subject")
    ordering = ("-pk",)


@admin.register(Alert)
class AlertAdmin(ReadOnlyAdmin):
    """Alerts, with an action that acknowledges some of them and is recorded."""

    list_display = ("message", "kind", "subject", "raised_at", "cleared_at")
    inlines = (AlertItemInline,)
    list_filter = (("cleared_at", admin.EmptyFieldListFilter), "kind")
    search_fields = ("message", "=subject", "kind")
    date_hierarchy = "raised_at"
    ordering = ("-raised_at",)
    actions: Any = ("acknowledge",)

    def has_acknowledge_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("arena_site.acknowledge_alerts")  # type: ignore[union-attr]

    @admin.action(description="Acknowledge the chosen alerts", permissions=["acknowledge"])
    def acknowledge(self, request: HttpRequest, alerts: QuerySet[Alert]) -> HttpResponseRedirect:
        ids = list(map(attrgetter("pk"), alerts))
        return HttpResponseRedirect(reverse("admin:action", args=["acknowledge"], query={"alert": ids}))


@admin.register(Notice)
class NoticeAdmin(ReadOnlyAdmin):
    list_display = ("alert", "channel", "tries", "next_try_at", "sent_at", "error")
    list_filter = (("sent_at", admin.EmptyFieldListFilter), "channel")
    list_select_related = ("alert",)
    search_fields = ("alert__message", "error")
