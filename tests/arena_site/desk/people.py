"""Who sits at the desk, and how an act is done there."""

from typing import Any

from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

REASON = "because the test says so"


def signed_in(role: str, *, enforce_csrf_checks: bool = False) -> Client:
    """A client of somebody on the staff with this role alone."""
    person, created = User.objects.get_or_create(username=role, defaults={"is_staff": True})
    if created:
        person.groups.add(Group.objects.get(name=role))
    client = Client(enforce_csrf_checks=enforce_csrf_checks)
    client.force_login(person)
    return client


def page(name: str) -> str:
    return reverse("admin:act", args=[name])


def do(client: Client, name: str, reason: str = REASON, **asked: Any) -> Any:
    """The act, confirmed."""
    return client.post(page(name), {**asked, "reason": reason, "confirmed": "yes"})
