"""Who sits at the desk, and how an act is done there."""

from typing import Any

from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from arena_site.dashboard.actions import ACTIONS
from arena_site.dashboard.roles import ADMINISTRATOR, OPERATOR, VIEWER
from arena_site.operator_tokens import issue_operator_token

REASON = "because the test says so"
ALLOWED = {
    VIEWER: set(),
    OPERATOR: {
        name for name in ACTIONS if not name.endswith("-line-up") or name in ("propose-line-up", "check-line-up")
    },
    ADMINISTRATOR: set(ACTIONS),
}
"""The acts of each role."""


def signed_in(role: str, *, enforce_csrf_checks: bool = False) -> Client:
    """A client of somebody on the staff with this role alone."""
    person, created = User.objects.get_or_create(username=role, defaults={"is_staff": True})
    if created:
        person.groups.add(Group.objects.get(name=role))
    client = Client(enforce_csrf_checks=enforce_csrf_checks)
    client.force_login(person)
    return client


def person(name: str, role: str | None = "operator") -> User:
    """An account of this name with this role alone."""
    account = User.objects.create_user(name, is_staff=role is not None)
    account.groups.set(Group.objects.filter(name=role))
    return account


def token_of(owner: User, *, name: str = "ci", scope: str = "exports", **options: Any) -> str:
    return issue_operator_token(owner=owner, name=name, scope=scope, at=timezone.now(), **options).token


def page(name: str) -> str:
    return reverse("admin:action", args=[name])


def do(client: Client, name: str, /, reason: str = REASON, **asked: Any) -> Any:
    """The act, confirmed."""
    return client.post(page(name), {**asked, "reason": reason, "confirmed": "yes"})
