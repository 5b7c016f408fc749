"""Accounts, the audit log and the queue, for the operator."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django_q.models import Failure, OrmQ, Schedule, Success

from agents.admin.families import FamilyAdmin, ReleaseAdmin
from agents.admin.registrations import RegistrationAdmin
from agents.models import Family, Registration, Release
from arena_site import jobs
from arena_site.desk.forms import Audited, changed
from arena_site.models import AuditEntry, Notice, OperatorToken, Tally, Worker
from markets.readonly import ReadOnlyAdmin, verbatim, verbatim_json

for model in (User, Group, Family, Release, Registration, Schedule, Success, Failure, OrmQ):
    admin.site.unregister(model)


@admin.register(Family)
class AuditedFamilyAdmin(Audited, FamilyAdmin):
    """Who may be in a line-up."""


@admin.register(Release)
class AuditedReleaseAdmin(Audited, ReleaseAdmin):
    """What a family plays with, and its prices."""


@admin.register(Registration)
class AuditedRegistrationAdmin(Audited, RegistrationAdmin):
    """External agents. No form changes one: what is logged as a change is that it was revoked."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        changed(request, obj)
        return super().log_change(request, obj, message)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """What operators did and tried to do. Nobody edits it."""

    list_display = ("at", "by", "act", "target", "result", "reason")
    list_filter = ("result", "act", "by")
    list_defer = ("asked", "before", "after")
    search_fields = ("=by", "act", "target", "reason", "message")
    date_hierarchy = "at"
    ordering = ("-at", "-pk")
    fields = ("at", "by", "act", "target_link", "result", "reason", "message", "asked_for", "as_it_was", "as_it_became")

    @admin.display(description="target")
    def target_link(self, entry: AuditEntry) -> SafeString | str:
        return format_html('<a href="{}">{}</a>', entry.path, entry.target) if entry.path else entry.target

    @admin.display(description="form")
    def asked_for(self, entry: AuditEntry) -> SafeString:
        return verbatim_json(entry.asked)

    @admin.display(description="before")
    def as_it_was(self, entry: AuditEntry) -> SafeString:
        return verbatim_json(entry.before)

    @admin.display(description="after")
    def as_it_became(self, entry: AuditEntry) -> SafeString:
        return verbatim_json(entry.after)


@admin.register(OperatorToken)
class OperatorTokenAdmin(ReadOnlyAdmin):
    """Tokens for the API; the desk's acts make and revoke them."""

    list_display = ("name", "owner", "scope", "state", "made_at", "expires_at", "last_used_at", "revoked_at")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter), "scope", "owner")
    list_select_related = ("owner",)
    search_fields = ("name", "=owner__username")
    ordering = ("-pk",)
    fields = list_display

    def state(self, token: OperatorToken) -> str:
        return token.state(timezone.now())


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    list_display = ("name", "seen_at")
    search_fields = ("name",)


@admin.register(Notice)
class NoticeAdmin(ReadOnlyAdmin):
    list_display = ("alert", "channel", "tries", "next_try_at", "sent_at", "error")
    list_filter = (("sent_at", admin.EmptyFieldListFilter), "channel")
    list_select_related = ("alert",)
    search_fields = ("alert__message", "error")


@admin.register(Tally)
class TallyAdmin(ReadOnlyAdmin):
    list_display = ("thing", "client", "ends", "count")
    list_filter = ("thing",)
    search_fields = ("=client",)
    ordering = ("-ends", "-pk")


@admin.register(Schedule)
class ScheduleAdmin(ReadOnlyAdmin):
    """Installed by code: one malformed row would stop them all. The desk pauses and resumes them."""

    list_display = ("name", "cron", "next_run", "rings")
    search_fields = ("name", "func")
    ordering = ("name",)
    fields = ("name", "func", "cron", "next_run", "rings")

    @admin.display(boolean=True)
    def rings(self, schedule: Schedule) -> bool:
        return bool(schedule.repeats != jobs.PAUSED)


class FinishedAdmin(ReadOnlyAdmin):
    """What a worker did of late; django-q keeps the newest."""

    list_display = ("func", "group", "started", "stopped", "outcome")
    list_filter = ("group",)
    list_defer = ("args", "kwargs")
    search_fields = ("name", "func", "group")
    ordering = ("-stopped",)
    fields = ("name", "func", "group", "started", "stopped", "said")

    @admin.display(description="result")
    def outcome(self, task: Any) -> str:
        return str(task.result or "")[:200]

    @admin.display(description="result")
    def said(self, task: Any) -> SafeString:
        return verbatim(str(task.result or ""))


admin.site.register((Success, Failure), FinishedAdmin)


@admin.register(OrmQ)
class QueueAdmin(ReadOnlyAdmin):
    """What waits for a worker, and what is at work: a message goes once its job has ended."""

    list_display = ("id", "func", "args", "group", "lock")
    list_defer = ()
    search_fields = ("=id",)
    search_help_text = "The message's number."
    ordering = ("pk",)
    fields = ("func", "args", "group", "lock")


@admin.register(User)
class AccountAdmin(UserAdmin):
    """Accounts. Only a superuser makes a superuser, changes one, or gives permissions past the roles."""

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        above = () if _is_superuser(request) else ("is_superuser", "user_permissions")
        return (*super().get_readonly_fields(request, obj), *above)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and _may_touch(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and _may_touch(request, obj)


@admin.register(Group)
class RoleAdmin(GroupAdmin):
    """viewer, operator and administrator are what the code says after every migrate; others are free."""


def _is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))


def _may_touch(request: HttpRequest, account: Any) -> bool:
    return account is None or not account.is_superuser or _is_superuser(request)
