"""Admin of accounts, the audit log and the queue."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice
from django_q.models import Failure, OrmQ, Schedule, Success

from agents.admin.families import FamilyAdmin, ReleaseAdmin
from agents.admin.registrations import RegistrationAdmin
from agents.models import Family, Registration, Release
from arena_site import jobs
from arena_site.dashboard import roles
from arena_site.dashboard.audit import AuditedAdminMixin, audit_form
from arena_site.models import AuditEntry, Backup, HostClaim, Worker
from arena_site.operations.queue_messages import STARTED
from foundation.admin.filters import FilterPreset, preset_filter
from foundation.admin.readonly import BoundedSearchAdmin, ReadOnlyAdmin, json_column, verbatim

for model in (User, Group, Family, Release, Registration, Schedule, Success, Failure, OrmQ):
    admin.site.unregister(model)


@admin.register(Family)
class AuditedFamilyAdmin(AuditedAdminMixin, FamilyAdmin):
    """Families, with changes in the audit log."""


@admin.register(Release)
class AuditedReleaseAdmin(AuditedAdminMixin, ReleaseAdmin):
    """Releases and their prices, with changes in the audit log."""


@admin.register(Registration)
class AuditedRegistrationAdmin(AuditedAdminMixin, RegistrationAdmin):
    """External agents. No form changes one: the only change logged is a revocation."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        audit_form(request, obj)
        return super().log_change(request, obj, message)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """The audit log, read-only."""

    list_display = ("at", "by", "action", "target", "result", "reason")
    list_filter = ("result", "action", "by")
    list_defer = ("form_data", "before", "after")
    search_fields = ("=by", "action", "target", "reason", "message")
    date_hierarchy = "at"
    ordering = ("-at", "-pk")
    fields = (
        "at", "by", "action", "target_link", "result", "reason", "message", json_column("form_data", "form"),
        json_column("before"), json_column("after"),
    )  # fmt: skip

    @admin.display(description="target")
    def target_link(self, entry: AuditEntry) -> SafeString | str:
        return format_html('<a href="{}">{}</a>', entry.path, entry.target) if entry.path else entry.target


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    list_display = ("name", "seen_at")
    search_fields = ("name",)


@admin.register(HostClaim)
class HostClaimAdmin(ReadOnlyAdmin):
    list_display = ("host_id", "machine", "claimed_at")
    search_fields = ("host_id", "machine")


@admin.register(Backup)
class BackupAdmin(ReadOnlyAdmin):
    list_display = ("taken_at", "file", "machine", "bytes", "sha256")
    search_fields = ("file", "=sha256")
    ordering = ("-taken_at", "-pk")


@admin.register(Schedule)
class ScheduleAdmin(ReadOnlyAdmin):
    """Schedules, installed by code: one malformed row would stop them all. Actions pause and resume them."""

    list_display = ("name", "cron", "next_run", "active")
    search_fields = ("name", "func")
    ordering = ("name",)
    fields = ("name", "func", "cron", "next_run", "active")

    @admin.display(boolean=True)
    def active(self, schedule: Schedule) -> bool:
        return bool(schedule.repeats != jobs.PAUSED)


class FinishedJobAdmin(ReadOnlyAdmin):
    """The newest finished jobs; django-q deletes older ones."""

    list_display = ("func", "group", "started", "stopped", "short_result")
    list_filter = ("group",)
    list_defer = ("args", "kwargs")
    search_fields = ("name", "func", "group")
    ordering = ("-stopped",)
    fields = ("name", "func", "group", "started", "stopped", "whole_result")

    @admin.display(description="result")
    def short_result(self, task: Any) -> str:
        return str(task.result or "")[:200]

    @admin.display(description="result")
    def whole_result(self, task: Any) -> SafeString:
        return verbatim(str(task.result or ""))


admin.site.register((Success, Failure), FinishedJobAdmin)


@admin.register(OrmQ)
class QueueAdmin(ReadOnlyAdmin):
    """Jobs that are queued or running; a message is deleted once its job has ended."""

    list_display = ("id", "func", "args", "group", "lock")
    list_filter = (
        preset_filter(
            FilterPreset("waiting", "waiting", lambda rows, now: rows.exclude(key=STARTED)),
            FilterPreset("started", "at work", lambda rows, now: rows.filter(key=STARTED, lock__gt=timezone.now())),
        ),
    )
    list_defer = ()
    search_fields = ("=id",)
    search_help_text = "The message's number."
    ordering = ("pk",)
    fields = ("func", "args", "group", "lock")


@admin.register(User)
class AccountAdmin(BoundedSearchAdmin, UserAdmin):
    """Accounts. Only superusers create or change superusers, or grant permissions outside the roles."""

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        superuser_only = () if _is_superuser(request) else ("is_superuser", "user_permissions")
        return (*super().get_readonly_fields(request, obj), *superuser_only)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Groups that may be given: the roles, or for superusers any."""
        if db_field.name == "groups" and not _is_superuser(request):
            kwargs["queryset"] = Group.objects.filter(name__in=roles.NAMES)
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and _may_edit(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and _may_edit(request, obj)


# A second factor is given by its command alone, whose act is in the audit log.
admin.site.unregister((TOTPDevice, StaticDevice))


@admin.register(Group)
class RoleAdmin(BoundedSearchAdmin, GroupAdmin):
    """Groups. Every migrate resets the roles viewer, operator and administrator.

    Other groups are for superusers to make.
    """


def _is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))


def _may_edit(request: HttpRequest, account: Any) -> bool:
    return account is None or not account.is_superuser or _is_superuser(request)
