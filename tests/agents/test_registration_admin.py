"""Admin of external agents: registration, lists, revocation."""

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from agents.models import Registration
from agents.services.registrations import hash_token
from arena_site.models import AuditEntry
from tests.factories import RegistrationFactory

pytestmark = pytest.mark.django_db
LIST = reverse("admin:agents_registration_changelist")
ADD = reverse("admin:agents_registration_add")


def test_registering_shows_the_token_once_and_is_in_the_audit_log(admin_client: Client) -> None:
    page = admin_client.post(ADD, {"name": "Deep Thought", "protocol": "trading"})
    assert page.status_code == 200
    (token,) = re.findall(r"arena_[\w-]{43}", page.content.decode())
    registration = Registration.objects.get()
    assert registration.family.track == "closed"
    assert (registration.token_sha256, registration.family.slug) == (hash_token(token), "deep-thought")
    assert "no-store" in page["Cache-Control"]
    assert LogEntry.objects.filter(object_id=str(registration.pk)).count() == 1
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.by, entry.before, entry.after["protocol"]) == (
        "add-registration",
        "admin",
        {},
        "trading",
    )
    assert registration.token_sha256 not in str(entry.after)
    shown = [LIST, reverse("admin:agents_registration_change", args=[registration.pk])]
    assert all(token not in admin_client.get(url).content.decode() for url in shown)
    assert all(registration.token_sha256 not in admin_client.get(url).content.decode() for url in shown)


def test_name_in_use_is_a_form_error(admin_client: Client) -> None:
    page = admin_client.post(ADD, {"name": "GPT-5.1", "protocol": "both"})
    assert "gpt-5.1 is the name of another forecaster" in page.content.decode()
    assert not Registration.objects.exists()


def test_revoking_needs_confirmation_and_is_in_the_audit_log(admin_client: Client) -> None:
    registration = RegistrationFactory()
    chosen = {"action": "revoke", "_selected_action": [registration.pk]}
    confirmation = admin_client.post(LIST, chosen)
    assert "Yes, revoke" in confirmation.content.decode()
    registration.refresh_from_db()
    assert registration.revoked_at is None
    admin_client.get(LIST, chosen | {"confirmed": "yes"})
    registration.refresh_from_db()
    assert registration.revoked_at is None
    admin_client.post(LIST, chosen | {"confirmed": "yes"})
    registration.refresh_from_db()
    assert registration.revoked_at is not None
    assert LogEntry.objects.get().change_message == "Revoked."
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.by, entry.result) == ("change-registration", "admin", "done")
    assert (entry.before["revoked_at"], entry.after["revoked_at"]) == (None, registration.revoked_at.isoformat())
