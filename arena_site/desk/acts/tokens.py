"""Tokens by which an operator's programs use the API: made, shown once, and revoked."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.utils import timezone

from arena_site.desk.act import Act, Asked, Done, Preview, RowField, list_path, nothing, row_path, unchanged
from arena_site.models import OperatorToken
from arena_site.operator_tokens import in_force, token_make, token_revoke

LONGEST_DAYS = 3650


class TokenForm(forms.Form):
    name = forms.CharField(max_length=60, help_text="What is to use it.")
    scope = forms.ChoiceField(choices=OperatorToken.Scope.choices, label="It may")
    days = forms.IntegerField(
        min_value=1, max_value=LONGEST_DAYS, required=False, initial=90, label="Days it lasts", help_text="Or no end."
    )

    def clean_name(self) -> str:
        return " ".join(str(self.cleaned_data["name"]).split())


class MakeToken(Act):
    name, title, confirm = "make-token", "Make an API token", "Yes, make it"
    about = "For a program that is to do one thing over the API in your name."
    permission = "arena_site.keep_tokens"
    form = TokenForm

    def target(self, asked: Asked) -> str:
        return str(asked["name"])

    def target_path(self, asked: Asked) -> str:
        return list_path(OperatorToken, name=asked["name"])

    def state(self, asked: Asked) -> dict[str, Any]:
        row = in_force(asked["name"])
        if row is None:
            return {"token": None}
        return {"token": row.pk, "owner": row.owner.get_username(), "scope": row.scope, "expires at": row.expires_at}

    def preview(self, asked: Asked, *, at: datetime) -> Preview:
        if known := in_force(asked["name"]):
            return nothing(f"{known} has this name: revoke it first.")
        scope, days = OperatorToken.Scope(asked["scope"]), asked["days"]
        ends = f"for {days} days" if days else "until it is revoked"
        return Preview(
            f"Whoever bears it can {scope.label} {ends}, as long as your role permits it and your account is active. "
            "It is shown on the next page and never again."
        )

    def perform(self, asked: Asked, *, at: datetime, by: str, reason: str) -> Done:
        owner = asked.get("owner") or User.objects.get(username=by)
        now = timezone.now()  # whatever instant a demo stands at
        ends = now + timedelta(days=asked["days"]) if asked["days"] else None
        try:
            made = token_make(owner=owner, name=asked["name"], scope=asked["scope"], at=now, expires_at=ends)
        except ValidationError as wrong:
            return unchanged(f"Nothing was made: {'; '.join(wrong.messages)}.", list_path(OperatorToken))
        return Done(f"The token of {asked['name']} is made.", path=row_path(made.row), secret=made.token)


class TokenRowForm(forms.Form):
    token = RowField(OperatorToken.objects.select_related("owner"), "token")


class RevokeToken(Act):
    name, title, confirm = "revoke-token", "Revoke an API token", "Yes, revoke it"
    about = "It opens nothing from then on, whoever bears it."
    permission = "arena_site.keep_tokens"
    form = TokenRowForm

    def target(self, asked: Asked) -> str:
        return str(asked["token"])

    def target_path(self, asked: Asked) -> str:
        return row_path(asked["token"])

    def state(self, asked: Asked) -> dict[str, Any]:
        return {"revoked at": OperatorToken.objects.get(pk=asked["token"].pk).revoked_at}

    def preview(self, asked: Asked, *, at: datetime) -> Preview:
        row: OperatorToken = asked["token"]
        if row.revoked_at is not None:
            return nothing("It is revoked already.")
        used = f"last used on {row.last_used_at:%d %B %Y, %H:%M} UTC" if row.last_used_at else "never used"
        return Preview(f"{row}, made on {row.made_at:%d %B %Y} and {used}, opens nothing any more.")

    def perform(self, asked: Asked, *, at: datetime, by: str, reason: str) -> Done:
        path = row_path(asked["token"])
        if not token_revoke(asked["token"], at=timezone.now()):
            return unchanged("Nothing was revoked: it is revoked already.", path)
        return Done(f"The token {asked['token'].name} is revoked.", path=path)
