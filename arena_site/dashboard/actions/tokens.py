"""Actions that create and revoke operators' API tokens."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.utils import timezone

from arena_site.dashboard.action import Action, ActionResult, FormData, Preview, RowIdField, list_path, row_path
from arena_site.models import OperatorToken
from arena_site.operator_tokens import active_operator_token, issue_operator_token, revoke_operator_token

MAX_TOKEN_DAYS = 3650


class TokenForm(forms.Form):
    name = forms.CharField(max_length=60, help_text="The program that will use it.")
    scope = forms.ChoiceField(choices=OperatorToken.Scope.choices, label="It may")
    days = forms.IntegerField(
        min_value=1,
        max_value=MAX_TOKEN_DAYS,
        required=False,
        initial=90,
        label="Lifetime in days",
        help_text="Empty: until it is revoked.",
    )  # fmt: skip

    def clean_name(self) -> str:
        return " ".join(str(self.cleaned_data["name"]).split())


class MakeToken(Action):
    name, title, confirm_label = "make-token", "Create an API token", "Yes, create it"
    description = "Lets a program do one thing over the API in your name."
    permission = "arena_site.manage_tokens"
    form = TokenForm

    def target(self, data: FormData) -> str:
        return str(data["name"])

    def target_path(self, data: FormData) -> str:
        return list_path(OperatorToken, name=data["name"])

    def state(self, data: FormData) -> dict[str, Any]:
        row = active_operator_token(data["name"])
        if row is None:
            return {"token": None}
        return {"token": row.pk, "owner": row.owner.get_username(), "scope": row.scope, "expires at": row.expires_at}

    def obstacle(self, data: FormData, at: datetime) -> str:
        known = active_operator_token(data["name"])
        return f"{known} has this name: revoke that token first." if known else ""

    def effect(self, data: FormData, at: datetime) -> Preview:
        scope, days = OperatorToken.Scope(data["scope"]), data["days"]
        ends = f"for {days} days" if days else "until it is revoked"
        return Preview(
            f"The bearer can {scope.label} {ends}, as long as your role permits it and your account is active. "
            "The token is shown on the next page and never again."
        )

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult:
        owner = data.get("owner") or User.objects.get(username=by)
        now = timezone.now()  # tokens expire by the real clock, also in a demo
        ends = now + timedelta(days=data["days"]) if data["days"] else None
        try:
            row, token = issue_operator_token(
                owner=owner, name=data["name"], scope=data["scope"], at=now, expires_at=ends
            )
        except ValidationError as wrong:
            return ActionResult(f"No token was created: {'; '.join(wrong.messages)}.", changed=False)
        return ActionResult(f"The token {data['name']} is created.", path=row_path(row), secret=token)


class TokenRowForm(forms.Form):
    token = RowIdField(OperatorToken.objects.select_related("owner"), "token")


class RevokeToken(Action):
    name, title, confirm_label = "revoke-token", "Revoke an API token", "Yes, revoke it"
    description = "Ends the token at once."
    permission = "arena_site.manage_tokens"
    form, row_field = TokenRowForm, "token"

    def state(self, data: FormData) -> dict[str, Any]:
        return {"revoked at": OperatorToken.objects.get(pk=data["token"].pk).revoked_at}

    def obstacle(self, data: FormData, at: datetime) -> str:
        return "It is revoked already." if data["token"].revoked_at is not None else ""

    def effect(self, data: FormData, at: datetime) -> Preview:
        row: OperatorToken = data["token"]
        used = f"last used on {row.last_used_at:%d %B %Y, %H:%M} UTC" if row.last_used_at else "never used"
        return Preview(f"{row}, created on {row.created_at:%d %B %Y} and {used}, will be refused from now on.")

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult | None:
        revoked = revoke_operator_token(data["token"], at=timezone.now())
        return ActionResult(f"The token {data['token'].name} is revoked.") if revoked else None
