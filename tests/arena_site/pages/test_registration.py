"""Makers register agents: form, mail, approval, token, owner's page, and what each refuses."""

import re
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core import mail
from django.test import Client
from django.utils import timezone

from agents.models import AgentVersion, Application, Family, Registration
from agents.services.registrations import hash_token, register_external_agent
from arena_site.models import AuditEntry
from tests.arena_site.dashboard.accounts import perform, sign_in

pytestmark = pytest.mark.django_db
NEW, OWNER = "/agents/new/", "/agents/owner/"
FIELDS = {"name": "Deep Thought", "track": "open", "protocol": "both", "maker_name": "Ada", "address": "Ada@a.example"}
TOKEN = re.compile(r"arena_[\w-]{43}")


@pytest.fixture
def open_registration(settings: Any) -> None:
    settings.ARENA_REGISTRATION = "open"
    settings.ARENA_SITE_URL = "https://arena.example"


def apply(client: Client, **fields: str) -> str:
    """The path of the link that the maker gets by mail."""
    page = client.post(NEW, FIELDS | fields)
    assert (page.status_code, "A link was sent" in page.text) == (200, True), page.text
    message = mail.outbox[-1]
    assert message.to == [(FIELDS | fields)["address"].lower()]
    (link,) = re.findall(r"https://arena\.example(/agents/application/\S+)", str(message.body))
    return str(link)


def take_token(client: Client, link: str) -> str:
    client.post(link, {"step": "unconfirmed"})
    page = client.post(link, {"step": "approved"})
    (token,) = TOKEN.findall(page.text)
    assert "no-store" in page["Cache-Control"]
    return str(token)


def test_confirmed_maker_registers_and_sees_the_token_once(client: Client, open_registration: None) -> None:
    link = apply(client)
    assert "Confirm my address" in client.get(link).text
    assert Application.objects.get().status == "unconfirmed"
    assert "Show the token" in client.post(link, {"step": "unconfirmed"}).text
    assert "Show the token" in client.post(link, {"step": "unconfirmed"}).text
    assert not TOKEN.search(client.get(link).text)
    token = take_token(client, link)
    registration = Registration.objects.select_related("family__maker").get()
    family = registration.family
    assert (registration.token_sha256, family.slug, family.track) == (hash_token(token), "deep-thought", "open")
    assert family.maker is not None
    assert (family.maker.name, family.maker.address) == ("Ada", "ada@a.example")
    replayed = client.post(link, {"step": "approved"})
    assert (replayed.status_code, "shown already" in replayed.text) == (410, True)
    assert Registration.objects.count() == 1
    assert "ada@a.example" not in client.get("/api/v1/families/deep-thought/").content.decode()


def test_request_waits_for_an_operator_whose_decision_is_on_record(
    client: Client, open_registration: None, settings: Any
) -> None:
    settings.ARENA_REGISTRATION = "request"
    link = apply(client)
    assert "waiting for the operator" in client.post(link, {"step": "unconfirmed"}).text
    assert client.post(link, {"step": "approved"}).status_code == 410
    application = Application.objects.get()
    perform(sign_in("operator"), "approve-agent", "a known group", application=application.pk)
    entry = AuditEntry.objects.get(action="approve-agent")
    assert (entry.before, entry.after) == ({"status": "waiting"}, {"status": "approved"})
    assert "ada@" not in repr([entry.message, entry.target])
    assert mail.outbox[-1].subject == "Approved: show the token of Deep Thought"
    assert take_token(client, link)
    second = apply(client, name="Second")
    client.post(second, {"step": "unconfirmed"})
    perform(sign_in("operator"), "reject-agent", "spam", application=Application.objects.latest("pk").pk)
    assert client.post(second, {"step": "approved"}).status_code == 410
    assert not Family.objects.filter(slug="second").exists()


def test_closed_registration_takes_no_application(client: Client) -> None:
    page = client.get(NEW).text
    assert "Registration is closed" in page
    assert "arena-agent login --url http://testserver\n" in page
    assert '<a href="/agents/new/">' in client.get("/agents/").text
    assert client.post(NEW, FIELDS).status_code == 403
    assert not Application.objects.exists()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"name": "GPT 5 1"}, "name of another forecaster"),
        ({"name": "\N{FULLWIDTH LATIN CAPITAL LETTER G}PT-5.1"}, "name of another forecaster"),
        ({"name": "\N{CYRILLIC SMALL LETTER O}racle"}, "use letters from a to z"),
        ({"name": "Oracle\N{RIGHT-TO-LEFT OVERRIDE}"}, "use letters from a to z"),
        ({"name": "x" * 61}, "at most 60"),
        ({"name": "New"}, "name of another forecaster"),
        ({"name": "Dee P Thought"}, "name of another forecaster"),
        ({"name": "deep thought"}, "deep-thought is"),
        ({"name": "Late", "track": "fast"}, "Select a valid choice"),
        ({"name": "Late", "address": "a@b.example\nBcc: c@d.example"}, "Enter a valid email"),
    ],
)
def test_bad_input_is_refused_with_its_reason(
    client: Client, open_registration: None, fields: dict[str, str], why: str
) -> None:
    register_external_agent(name="Deep Thought", protocol="both", at=timezone.now())
    page = client.post(NEW, FIELDS | fields)
    assert (page.status_code, why in page.text) == (400, True), page.text
    assert (Application.objects.count(), len(mail.outbox)) == (0, 0)


def test_limits_per_maker_and_per_client(client: Client, open_registration: None) -> None:
    for name in ("One", "Two", "Three"):
        apply(client, name=name)
    assert "3 agents of this maker" in client.post(NEW, FIELDS | {"name": "Four"}).text
    for number in range(6):
        apply(client, name=f"Of another {number}", address=f"b{number}@b.example")
    refused = client.post(NEW, FIELDS | {"name": "Late", "address": "c@c.example"})
    assert (refused.status_code, Application.objects.count()) == (429, 9)
    assert int(refused["Retry-After"]) > 0


def test_tag_of_an_address_makes_no_other_maker_and_a_domain_has_a_limit(
    client: Client, open_registration: None
) -> None:
    for number in range(3):
        apply(client, name=f"Tagged {number}", address=f"me+{number}@own.example")
    assert "3 agents of this maker" in client.post(NEW, FIELDS | {"name": "Four", "address": "Me@own.example"}).text
    for number in range(9):
        apply(Client(REMOTE_ADDR=f"192.0.2.{number}"), name=f"Boxed {number}", address=f"box{number}@own.example")
    refused = client.post(NEW, FIELDS | {"name": "Last", "address": "box99@own.example"})
    assert "12 of own.example applied in 30 days" in refused.text
    apply(client, name="Elsewhere", address="box@not-own.example")


def test_rotated_token_frees_no_place_of_its_maker(client: Client, open_registration: None) -> None:
    for name in ("One", "Two", "Three"):
        token = take_token(client, apply(client, name=name))
        assert client.post(OWNER, {"token": token, "action": "rotate"}).status_code == 200
    with time_machine.travel(timezone.now() + timedelta(days=1), tick=False):
        assert "3 agents of this maker" in client.post(NEW, FIELDS | {"name": "Four"}).text


def test_links_are_signed_expire_and_name_the_arenas_own_host(client: Client, open_registration: None) -> None:
    link = apply(client)
    assert "evil.example" not in str(mail.outbox[-1].body)
    assert client.post(f"{link}x", {"step": "unconfirmed"}).status_code == 410
    assert client.get("/agents/application/?key=1").status_code == 410
    with time_machine.travel(timezone.now() + timedelta(days=7), tick=False):
        late = client.post(link, {"step": "unconfirmed"})
        assert (late.status_code, "has expired" in late.text) == (410, True)
    foreign = client.post(NEW, FIELDS | {"name": "Foreign"}, headers={"Host": "evil.example"})
    assert (foreign.status_code, len(mail.outbox)) == (400, 1)
    assert Client(enforce_csrf_checks=True).post(link, {"step": "unconfirmed"}).status_code == 403
    assert Application.objects.get().status == "unconfirmed"


def test_owner_declares_versions_and_replaces_and_revokes_the_token(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    first = register_external_agent(name="Visitor", protocol="both", at=timezone.now()).token
    page = client.post(OWNER, {"token": first, "action": "version", "note": "Reads the news."})
    assert "in version 2" in page.text
    assert AgentVersion.objects.get(number=2).note == "Reads the news."
    (second,) = TOKEN.findall(client.post(OWNER, {"token": first, "action": "rotate"}).text)
    assert client.post(OWNER, {"token": first, "action": "revoke"}).status_code == 403
    old, new = Registration.objects.order_by("pk")
    assert (old.revoked_at, new.token_sha256) == (new.registered_at, hash_token(second))
    assert "revoked" in client.post(OWNER, {"token": second, "action": "revoke"}).text
    assert not Registration.objects.filter(revoked_at=None).exists()
    assert first not in caplog.text
    for _ in range(10):
        refused = client.post(OWNER, {"token": "arena_guess", "action": "rotate"})
    assert refused.status_code == 429
