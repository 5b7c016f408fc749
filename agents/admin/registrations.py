"""Admin of external agents: registration, with the token shown once, and revocation; receipts and attempts."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone

from agents.admin.letters import LetterAdmin
from agents.models import (
    AgentVersion,
    Application,
    Attempt,
    Family,
    Maker,
    Receipt,
    Registration,
    SigningKey,
    Submission,
)
from agents.services.registrations import check_name, register_external_agent, revoke_registration
from foundation.admin.readonly import ReadOnlyAdmin


class RegistrationForm(forms.ModelForm):
    name = forms.CharField(max_length=60, help_text="The name on the leaderboards.")
    track = forms.ChoiceField(
        choices=Family.Track.choices,
        required=False,
        help_text="What the agent may use: closed unless chosen. It never changes.",
    )

    class Meta:
        model = Registration
        fields = ("protocol",)

    def clean(self) -> None:
        if name := self.cleaned_data.get("name"):
            check_name(name)


@admin.register(Registration)
class RegistrationAdmin(ReadOnlyAdmin):
    """Registrations. A new one shows its token once, on the next page; revoking needs a confirmation by POST."""

    list_display = ("family", "protocol", "registered_at", "last_used_at", "revoked_at")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter), "protocol")
    list_select_related = ("family",)
    search_fields = ("family__slug", "family__display_name")
    actions: Any = ("revoke",)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_add_permission(self, request)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("agents.change_registration"))  # type: ignore[union-attr]

    def get_fields(self, request: HttpRequest, obj: Registration | None = None) -> Any:
        return ("name", "protocol", "track") if obj is None else self.list_display

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        return super().get_form(request, obj, change, **({"form": RegistrationForm} if obj is None else {}), **options)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        new = register_external_agent(
            name=form.cleaned_data["name"],
            protocol=obj.protocol,
            track=form.cleaned_data["track"] or Family.Track.CLOSED,
            at=timezone.now(),
        )
        obj.pk, obj.token = new.pk, new.token
        obj.refresh_from_db()

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        context = {"title": "Token", "registration": obj, "token": obj.token, "opts": self.opts}
        return TemplateResponse(
            request, "admin/agents/registration/token.html", self.admin_site.each_context(request) | context
        )

    @admin.action(description="Revoke the selected registrations", permissions=["revoke"])
    def revoke(self, request: HttpRequest, registrations: QuerySet[Registration]) -> HttpResponse | None:
        live = registrations.filter(revoked_at=None).select_related("family")
        if "confirmed" not in request.POST:
            context = {"title": "Are you sure?", "registrations": live, "opts": self.opts}
            return TemplateResponse(
                request, "admin/agents/registration/revoke.html", self.admin_site.each_context(request) | context
            )
        revoked = 0
        for registration in live:
            with transaction.atomic():
                if revoke_registration(registration, at=timezone.now()):
                    self.log_change(request, registration, "Revoked.")
                    revoked += 1
        self.message_user(request, f"{revoked} revoked.")
        return None


@admin.register(Application)
class ApplicationAdmin(ReadOnlyAdmin):
    """Applications; those that wait are approved or rejected by actions of the dashboard."""

    list_display = ("name", "track", "protocol", "maker_name", "address", "status", "requested_at", "decided_by")
    list_filter = ("status", "track")
    search_fields = ("slug", "name", "maker_name", "address")
    exclude = ("registration",)


@admin.register(Maker)
class MakerAdmin(ReadOnlyAdmin):
    list_display = ("name", "address", "confirmed_at")
    search_fields = ("name", "address")


@admin.register(AgentVersion)
class AgentVersionAdmin(ReadOnlyAdmin):
    list_display = ("family", "number", "began_at", "note")
    list_select_related = ("family",)
    search_fields = ("family__slug", "note")


@admin.register(Submission)
class SubmissionAdmin(LetterAdmin):
    list_display = ("id", "family", "call", "status", "key", "received_at")
    list_filter = ("status", "registration__family")
    list_select_related = ("registration__family", "call__decision", "call__elicitation")
    list_defer = ("call__raw_response", "call__content", "call__parsed", "call__portfolio_block", "response")
    search_fields = ("=key", "registration__family__slug")

    def family(self, submission: Submission) -> str:
        return str(submission.registration.family)


@admin.register(Receipt)
class ReceiptAdmin(LetterAdmin):
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
class AttemptAdmin(LetterAdmin):
    list_display = ("family", "version", "kind", "reason", "noted_at")
    list_filter = ("kind",)
    list_select_related = ("registration__family",)
    search_fields = ("registration__family__slug", "reason")
    ordering = ("-noted_at", "-pk")
    fields = ("family", "version", "kind", "reason", "key", "noted_at")

    def family(self, attempt: Attempt) -> str:
        return str(attempt.registration.family)
