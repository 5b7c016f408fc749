"""Accounts of each role, and the forms and confirmation of actions."""

from typing import Any

from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from arena_site.dashboard.actions import ACTIONS
from arena_site.dashboard.roles import ADMINISTRATOR, OPERATOR, VIEWER
from markets.models import Market

REASON = "because the test says so"
FOR_ADMINISTRATORS = {"approve-line-up", "reject-line-up", "void-week"}
ALLOWED = {VIEWER: set(), OPERATOR: set(ACTIONS) - FOR_ADMINISTRATORS, ADMINISTRATOR: set(ACTIONS)}
"""The actions of each role."""


def sign_in(role: str, *, enforce_csrf_checks: bool = False) -> Client:
    """A client signed in as the staff account that has this role alone."""
    account = User.objects.filter(username=role).first() or create_account(role, role)
    client = Client(enforce_csrf_checks=enforce_csrf_checks)
    client.force_login(account)
    return client


def create_account(name: str, role: str | None = "operator") -> User:
    """An account of this name with this role alone."""
    account = User.objects.create_user(name, is_staff=role is not None)
    account.groups.set(Group.objects.filter(name=role))
    return account


def action_path(name: str) -> str:
    return reverse("admin:action", args=[name])


def perform(client: Client, name: str, /, reason: str = REASON, **parameters: Any) -> Any:
    """The response to a confirmed action."""
    return client.post(action_path(name), {**parameters, "reason": reason, "confirmed": "yes"})


def outcome_form(market: Market, side: str | None, source: str = "the venue") -> dict[str, Any]:
    """The form that settles or reverses a market: `side` won, or nobody did."""
    result = "cancelled" if side is None else f"outcome-{market.outcomes.get(side=side).pk}"
    return {"market": market.pk, "result": result, "source": source}
