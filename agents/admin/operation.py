"""Admin of hash chains, anchors, maintenance, run settings, credit and costs."""

from django.contrib import admin

from agents.models import (
    Chain,
    ChainLink,
    CreditReading,
    DailyAnchor,
    Envelope,
    Maintenance,
    RunSetting,
)
from foundation.admin.readonly import (
    ReadOnlyAdmin,
    cost_column,
)


@admin.register(Chain)
class ChainAdmin(ReadOnlyAdmin):
    list_display = ("protocol", "length", "head")
    search_fields = ("=head",)


@admin.register(ChainLink)
class ChainLinkAdmin(ReadOnlyAdmin):
    list_display = ("id", "protocol", "sequence", "decision", "elicitation", "record_sha256", "sha256")
    list_filter = ("protocol",)
    list_select_related = ("decision__agent", "elicitation__release", "elicitation__batch__question_set")
    list_defer = ("decision__reasoning", "elicitation__batch__block")
    search_fields = ("=sha256", "=record_sha256")
    search_help_text = "A link's hash, or that of its record."
    ordering = ("-pk",)


@admin.register(Envelope)
class EnvelopeAdmin(ReadOnlyAdmin):
    """Envelopes without what they hold: it is shown with its task, under the seal by an action on record."""

    list_display = ("id", "decision", "elicitation", "number", "state", "sealed_until", "opened_at", "sha256")
    list_filter = ("state",)
    list_select_related = ("decision__agent", "elicitation__release", "elicitation__batch__question_set")
    list_defer = ("verdict", "decision__reasoning", "elicitation__batch__block")
    exclude = ("verdict", "nonce")
    search_fields = ("=sha256",)
    search_help_text = "An envelope's hash."
    ordering = ("-pk",)


@admin.register(DailyAnchor)
class DailyAnchorAdmin(ReadOnlyAdmin):
    list_display = ("day", "made_at")
    search_fields = ("day",)


@admin.register(Maintenance)
class MaintenanceAdmin(ReadOnlyAdmin):
    list_display = ("began_at", "ended_at", "reason")
    search_fields = ("reason",)
    ordering = ("-began_at",)


@admin.register(CreditReading)
class CreditReadingAdmin(ReadOnlyAdmin):
    list_display = ("read_at", "key_label", "usage")
    search_fields = ("=key_label",)
    usage = cost_column("used_usd", ordering="used_usd")


@admin.register(RunSetting)
class RunSettingAdmin(ReadOnlyAdmin):
    """The spend caps and pauses, which the dashboard's actions set."""

    list_display = ("protocol", "family", "paused", "spend_limit_usd")
    list_filter = ("protocol", "paused")
    search_fields = ("=family__slug",)
    list_select_related = ("family",)
