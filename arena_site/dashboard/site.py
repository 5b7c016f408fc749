"""The admin site: the operator dashboard as its front page, and a page for each action."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils import timezone
from django_otp import devices_for_user, user_has_device
from django_otp.admin import OTPAdminAuthenticationForm
from django_otp.plugins.otp_totp.models import TOTPDevice

from foundation import clock


class LoginForm(OTPAdminAuthenticationForm):
    """Asks for the code of a second factor where the account has one."""

    otp_token = forms.CharField(
        required=False,
        label="Code of your second factor",
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code"}),
    )

    def clean_otp(self, user: Any) -> None:
        if user is None or (settings.ARENA_ADMIN_2FA == "optional" and not user_has_device(user)):
            return
        if not user_has_device(user):
            raise forms.ValidationError(
                "This account needs a second factor: manage.py add_second_factor NAME makes one."
            )
        super().clean_otp(user)

    def _chosen_device(self, user: Any) -> Any:
        """The device by the form of the code: six digits are an authenticator's, letters a recovery code's."""
        digits = (self.cleaned_data.get("otp_token") or "").isdigit()
        devices = [device for device in devices_for_user(user) if isinstance(device, TOTPDevice) == digits]
        return devices[0] if devices else None


class OperatorSite(AdminSite):
    login_form = LoginForm
    login_template = "admin/login_with_code.html"
    site_header = "Forecaster Arena"
    site_title = "Forecaster Arena"
    index_title = "Operator dashboard"
    enable_nav_sidebar = False  # lists need the width

    def has_permission(self, request: HttpRequest) -> bool:
        """Staff alone; where an account has a second factor, or all need one, only a session that was begun with it."""
        if not super().has_permission(request):
            return False
        user: Any = request.user
        return user.is_verified() or (settings.ARENA_ADMIN_2FA == "optional" and not user_has_device(user))

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
