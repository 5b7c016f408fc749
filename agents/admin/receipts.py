"""Admin of what the arena owes external agents: receipts, the keys that sign them, and attempts without an answer."""

from django.contrib import admin

from agents.models import Attempt, Receipt, SigningKey
from foundation.admin.readonly import ReadOnlyAdmin


@admin.register(Receipt)
class ReceiptAdmin(ReadOnlyAdmin):
    list_display = ("sequence", "agent", "version", "task", "received_at", "sha256")
    search_fields = ("=agent", "=task", "=sha256")
    ordering = ("-sequence",)
    fields = (
        "sequence", "agent", "version", "task", "answer_sha256", "prompt_sha256", "received_at", "previous", "sha256",
        "signature", "key",
    )  # fmt: skip


@admin.register(SigningKey)
class SigningKeyAdmin(ReadOnlyAdmin):
    list_display = ("fingerprint", "public_key", "began_at", "ended_at")
    search_fields = ("=fingerprint", "=public_key")


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    list_display = ("family", "version", "origin", "kind", "reason", "noted_at")
    list_filter = ("origin", "kind")
    list_select_related = ("registration__family",)
    search_fields = ("registration__family__slug", "reason")
    ordering = ("-noted_at", "-pk")
    fields = ("family", "version", "origin", "kind", "reason", "key", "noted_at")

    def family(self, attempt: Attempt) -> str:
        return str(attempt.registration.family)
